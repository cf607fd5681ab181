"""Bits-over-Random and its companions: pure functions on arrays, no state.

Notation, as in arXiv 2605.18857: N tools in the registry (`n_tools`), R of them relevant to the query
(`n_relevant`), K shown (`depth`). Every function broadcasts its array arguments as NumPy does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Difficulty of a query = rank of its first relevant tool (arXiv 2605.24660): inclusive upper ends, in order.
DIFFICULTY_BUCKETS = {"easy": 1, "medium": 5, "hard": 20, "very_hard": np.inf}


def p_rand(n_tools: ArrayLike, n_relevant: ArrayLike, depth: ArrayLike, *, at_least: int = 1) -> NDArray[np.float64]:
    """Probability that `depth` tools drawn without replacement hold at least `at_least` relevant ones.

    The upper tail of the hypergeometric distribution; K/N when R = 1 and `at_least` = 1.

    Args:
        n_tools: N, integers >= 1, any shape.
        n_relevant: R, integers in 0..N.
        depth: K, integers in 0..N.
        at_least: m >= 1, how many relevant tools count as success.

    Returns:
        Probabilities in [0, 1], of the broadcast shape.

    Raises:
        ValueError: an argument is out of its range or not whole.
    """
    from scipy.stats import hypergeom  # scipy.stats takes half a second to import

    triples = np.broadcast_arrays(n_tools, n_relevant, depth)
    n, r, k = (_whole(values, name) for values, name in zip(triples, ("N", "R", "K"), strict=True))
    if at_least < 1:
        raise ValueError(f"at_least must be 1 or more, got {at_least}")
    if np.any(n < 1) or np.any(r < 0) or np.any(r > n) or np.any(k < 0) or np.any(k > n):
        raise ValueError("p_rand needs N >= 1, 0 <= R <= N and 0 <= K <= N")
    # A study has few distinct triples and many rows: the distribution is asked once for each triple. Three numbers
    # up to N make one key below 2**63 for N up to two million.
    base = int(n.max(initial=1)) + 1
    if base > 2_000_000:
        raise ValueError("p_rand handles registries of up to two million tools")
    distinct, where = np.unique((n * base + r) * base + k, return_inverse=True)
    tail = hypergeom.sf(at_least - 1, distinct // base**2, distinct // base % base, distinct % base)
    return np.clip(tail, 0.0, 1.0)[where].reshape(n.shape)


def bor_bits(hit: ArrayLike, chance: ArrayLike) -> float:
    """Bits-over-Random of a set of queries: log2(mean hit / mean P_rand), the log of a ratio of means.

    Args:
        hit: (n,) success of each query, bool or 0/1.
        chance: (n,) P_rand of each query at the depth it was shown, see `p_rand`.

    Returns:
        Bits. -inf without any hit; nan where chance is zero too; +inf for hits that chance cannot make.

    Raises:
        ValueError: no queries.
    """
    observed, expected = _mean(hit, "hit"), _mean(chance, "chance")
    if expected == 0.0:
        return float("inf") if observed > 0 else float("nan")
    return float(np.log2(observed / expected)) if observed > 0 else float("-inf")


def bor_ceiling(chance: ArrayLike) -> float:
    """The BoR of a perfect selector at these depths: -log2(mean P_rand), in bits; +inf where chance is zero.

    Args:
        chance: P_rand of each query, any shape with at least one entry.
    """
    expected = _mean(chance, "chance")
    return float(-np.log2(expected)) + 0.0 if expected > 0 else float("inf")


def expected_relevant(n_tools: ArrayLike, n_relevant: ArrayLike, depth: ArrayLike) -> NDArray[np.float64]:
    """lambda = K*R/N, the relevant tools a random shortlist holds on average; chance rules from 3..5 on."""
    return np.asarray(depth, float) * np.asarray(n_relevant, float) / np.asarray(n_tools, float)


def bor_reward(hit: ArrayLike, chance: ArrayLike) -> NDArray[np.float64]:
    """What one stop is paid: -log2 P_rand where it hits, else 0, in bits (arXiv 2605.24660).

    The mean of this over queries is not `bor_bits`: the two can rank policies in opposite orders.
    """
    hit, chance = np.asarray(hit, bool), np.asarray(chance, float)
    with np.errstate(divide="ignore"):
        return np.where(hit, -np.log2(chance), 0.0) + 0.0


def coverage(hit: ArrayLike) -> float:
    """Share of queries whose shortlist holds a relevant tool."""
    return _mean(hit, "hit")


def mean_depth(depth: ArrayLike) -> float:
    """Mean number of tools shown, K."""
    return _mean(depth, "depth")


def f1(hits: ArrayLike, n_relevant: ArrayLike, depth: ArrayLike) -> NDArray[np.float64]:
    """F1 of a shortlist as a set: 2*hits / (K + R); 0 where K + R = 0. 2/(K+1) on a hit when R = 1.

    Args:
        hits: how many relevant tools the shortlist holds (a count, not a flag).
        n_relevant: R.
        depth: K.
    """
    total = np.asarray(depth, float) + np.asarray(n_relevant, float)
    return np.divide(2.0 * np.asarray(hits, float), total, out=np.zeros_like(total), where=total > 0)


def difficulty(first_relevant_rank: ArrayLike) -> NDArray[np.str_]:
    """Bucket of each query by the rank (1-based) of its first relevant tool: see `DIFFICULTY_BUCKETS`."""
    ranks = np.asarray(first_relevant_rank)
    if np.any(ranks < 1):
        raise ValueError("ranks are 1-based; got one below 1")
    return np.asarray(list(DIFFICULTY_BUCKETS))[np.searchsorted(list(DIFFICULTY_BUCKETS.values()), ranks)]


def _whole(values: NDArray, name: str) -> NDArray[np.int64]:
    whole = np.asarray(values).astype(np.int64)
    if np.any(whole != values):
        raise ValueError(f"{name} must be whole numbers")
    return whole


def _mean(values: ArrayLike, name: str) -> float:
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        raise ValueError(f"{name} is empty: there is no query to average over")
    return float(array.mean())
