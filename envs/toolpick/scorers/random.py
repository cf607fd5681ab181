"""Scores that mean nothing: the baseline that every scorer has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.datasets import Corpus


@dataclass(frozen=True)
class RandomScores:
    """Independent draws, uniform in [0, 1): a function of the seed and of how many queries and tools there are.

    Coverage at depth K is P_rand and BoR is 0 bits, both up to chance.

    Args:
        seed: of the generator; a query's scores stay the same when queries are added behind it.
    """

    seed: int = 0

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]:
        return np.random.default_rng(self.seed).random((len(corpus.queries), len(corpus.tools)))
