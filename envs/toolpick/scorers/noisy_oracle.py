"""A scorer of stated quality, which it can only be by knowing the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.datasets import Corpus, Dataset
from toolpick.errors import InputError


@dataclass(frozen=True)
class NoisyOracle:
    """`quality` for a relevant tool and 0 for another, plus independent standard normal noise.

    `quality` is signal detection's d': how far the means of relevant and irrelevant scores lie apart, in
    deviations of the noise. A relevant tool outscores an irrelevant one with probability Phi(quality / sqrt 2),
    the area under the ROC curve: .5 at 0, .76 at 1, .92 at 2, .983 at 3.

    The noise depends on the seed and on the numbers of queries and tools alone, so that two qualities, or two
    labelings of one dataset, meet the same noise.

    Args:
        quality: d', 0 or more.
        seed: of the noise.

    Raises:
        InputError: a negative or infinite quality; called with a corpus, which has no labels.
    """

    quality: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.quality < np.inf:
            raise InputError(f"scorer noisy_oracle: quality must be 0 or more and finite, got {self.quality}")

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]:
        raise InputError(
            "scorer noisy_oracle needs the labels, which a corpus lacks: hand it to toolpick.rankings.rank, "
            "and not to a scorer that is made of others"
        )

    def oracle_scores(self, dataset: Dataset) -> NDArray[np.float64]:
        """(Q, N) scores, column j for tool j of the registry."""
        noise = np.random.default_rng(self.seed).standard_normal(dataset.labels.shape)
        return self.quality * dataset.labels + noise
