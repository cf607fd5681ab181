"""The split of record B: one for all seeds."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from toolpick.splits import Split, hold_out_validation


@dataclass(frozen=True)
class RecordB:
    """Shuffled with seed 42, first 70 % to learn (280 of 400), the rest held out; validation by seed.

    The record says "shuffle(42)"; the standard library's shuffle is our reading of it.
    """

    validation_share: float = 0.2

    def __call__(self, n_queries: int, seed: int) -> Split:
        order = list(range(n_queries))
        random.Random(42).shuffle(order)
        learn = round(0.7 * n_queries)
        return hold_out_validation(np.array(order[:learn]), np.array(order[learn:]), self.validation_share, seed)
