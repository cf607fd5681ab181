"""Negative control: a state that gives the answer away. Never train on it in earnest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.observations import Feature
from toolpick.observations.notebook import Notebook


@dataclass(frozen=True)
class NotebookLeaky:
    """`Notebook` with its seventh feature replaced by `found`: whether a relevant tool is shown already.

    One of the two records of the authors' code has it. It is kept so that the leak test has something to
    catch; the environment hands labels to a preset only through the method below.
    """

    def __call__(self, scores: NDArray[np.float64], max_depth: int) -> list[Feature]:
        return Notebook()(scores, max_depth)[:-1]

    def leak(self, hits: NDArray[np.int64]) -> list[Feature]:
        """The leaking feature, from (Q, D) counts of relevant tools shown at each depth."""
        return [Feature("found", 0.0, 1.0, (hits > 0).astype(float))]
