"""A fresh split for every seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolpick.errors import InputError
from toolpick.splits import Split, hold_out_validation


@dataclass(frozen=True)
class Random:
    """`test_share` of the queries held out by seed (280/120 of BFCL's 400), validation taken from the rest.

    Args:
        test_share: within 0..1, exclusive.
        validation_share: of the learning queries, within 0..1, exclusive.
    """

    test_share: float = 0.3
    validation_share: float = 0.2

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            if not 0 < share < 1:
                raise InputError(f"split random: {name} must lie between 0 and 1, got {share}")

    def __call__(self, n_queries: int, seed: int) -> Split:
        order = np.random.default_rng([seed, 0]).permutation(n_queries)
        held = round(self.test_share * n_queries)
        return hold_out_validation(order[held:], order[:held], self.validation_share, seed)
