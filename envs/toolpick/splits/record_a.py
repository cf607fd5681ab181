"""The split of record A: one for all seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolpick.splits import Split, hold_out_validation


@dataclass(frozen=True)
class RecordA:
    """scikit-learn's train_test_split(test_size=.30, random_state=42); validation by seed from the rest.

    The record has no validation part: set `validation_share` small to come close to it.
    """

    validation_share: float = 0.2

    def __call__(self, n_queries: int, seed: int) -> Split:
        from sklearn.model_selection import train_test_split

        learn, test = train_test_split(np.arange(n_queries), test_size=0.30, random_state=42)
        return hold_out_validation(np.asarray(learn), np.asarray(test), self.validation_share, seed)
