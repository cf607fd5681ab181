"""What the agent sees at each depth: one file a preset.

A preset is a frozen dataclass called with the ranked scores alone; it returns its features in order. No
preset can read a label, but for the negative control `notebook_leaky`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Feature", "Observation", "ratio"]

RATIO_LIMIT = 10.0


class Feature(NamedTuple):
    """One number of the observation.

    Attributes:
        name: for tables and binning.
        low: finite lower bound.
        high: finite upper bound; values are clipped to the two.
        values: broadcastable to (Q, D): query by depth, entry [:, k-1] at depth k.
    """

    name: str
    low: float
    high: float
    values: NDArray


class Observation(Protocol):
    """Computes the features of all queries at all depths 1..D.

    Args:
        scores: (Q, N) scores by rank, non-increasing.
        max_depth: D <= N.
    """

    def __call__(self, scores: NDArray[np.float64], max_depth: int) -> list[Feature]: ...


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> NDArray[np.float64]:
    """Quotient clipped to ±10; 0 where the denominator is 0 (a query that no tool matches)."""
    a, b = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    with np.errstate(over="ignore"):
        quotient = np.divide(a, b, out=np.zeros(a.shape), where=b != 0)
    return np.clip(quotient, -RATIO_LIMIT, RATIO_LIMIT)
