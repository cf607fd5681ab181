"""Which queries train, choose settings and judge: one file a split.

A split is a frozen dataclass called with the number of queries and the run's seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError

__all__ = ["Split", "SplitRule", "hold_out_validation"]


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint integer positions of queries.

    Attributes:
        train: agents learn on these.
        validation: settings and checkpoints are chosen on these.
        test: held out; results are reported on these alone.
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


class SplitRule(Protocol):
    """Divides `n_queries` queries; the same arguments give the same split."""

    def __call__(self, n_queries: int, seed: int) -> Split: ...


def hold_out_validation(learn: NDArray[np.int64], test: NDArray[np.int64], share: float, seed: int) -> Split:
    """Take a share of the learning queries out for validation, at random by seed.

    Raises:
        InputError: a part would be empty.
    """
    shuffled = np.random.default_rng([seed, 1]).permutation(learn)
    size = round(share * len(learn))
    split = Split(np.sort(shuffled[size:]), np.sort(shuffled[:size]), np.sort(test))
    for name, part in vars(split).items():
        if not len(part):
            raise InputError(
                f"the split leaves no {name} queries out of {len(learn) + len(test)}; use more queries or other shares"
            )
    return split
