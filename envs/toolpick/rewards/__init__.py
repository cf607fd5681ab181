"""What a stop is paid: one file a reward.

A reward is a frozen dataclass, or any function, called with a `Shortlist` batch; it returns the pay of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from toolpick.metrics import p_rand

__all__ = ["Reward", "Shortlist"]


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Presented shortlists: Q queries by depths 1..D, as arrays that broadcast to (Q, D).

    Attributes:
        relevant: (Q, D) bool, whether the tool at each rank is relevant.
        n_relevant: (Q, 1) int, R.
        n_tools: N.
        tokens: (Q, D) float, estimated tokens of the cards of the first k tools.
    """

    relevant: NDArray[np.bool_]
    n_relevant: NDArray[np.int64]
    n_tools: int
    tokens: NDArray[np.float64]

    @cached_property
    def depth(self) -> NDArray[np.int64]:
        """(1, D) k = 1..D."""
        return np.arange(1, self.relevant.shape[1] + 1)[None, :]

    @cached_property
    def hits(self) -> NDArray[np.int64]:
        """(Q, D) relevant tools among the first k."""
        return np.cumsum(self.relevant, axis=1, dtype=np.int64)

    @property
    def hit(self) -> NDArray[np.bool_]:
        """(Q, D) whether at least one relevant tool is shown."""
        return self.hits > 0

    @cached_property
    def p_rand(self) -> NDArray[np.float64]:
        """(Q, D) probability that a random shortlist of this depth hits."""
        return p_rand(self.n_tools, self.n_relevant, self.depth)


class Reward(Protocol):
    """Pays a stop: returns an array broadcastable to (Q, D), finite everywhere."""

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]: ...
