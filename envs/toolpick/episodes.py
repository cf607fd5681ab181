"""Which query an episode plays: a counter-based function, the same in single and batched environments."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MASK = (1 << 64) - 1


def episode_query(seed: int, env_index: ArrayLike, episode: ArrayLike, n_queries: int) -> NDArray[np.int64]:
    """Position in 0..n_queries-1 of the query that an episode plays, uniform and without any state.

    SplitMix64 (Steele, Lea and Flood, 2014) applied in turn to seed, environment index and episode number.

    Args:
        seed: any integer; its lowest 64 bits count.
        env_index: non-negative integers.
        episode: non-negative integers, broadcast against `env_index`.
        n_queries: below 2**32.
    """
    with np.errstate(over="ignore"):
        word = _mix(np.uint64(seed & _MASK))
        word = _mix(word + np.asarray(env_index, dtype=np.uint64))
        word = _mix(word + np.asarray(episode, dtype=np.uint64))
    # The high half times n, shifted down, is uniform on 0..n-1 up to n / 2**32.
    return (((word >> np.uint64(32)) * np.uint64(n_queries)) >> np.uint64(32)).astype(np.int64)


def _mix(word: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    word = np.asarray(word) + _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
