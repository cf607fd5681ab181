"""How tools are ranked for a query: one file a scorer.

A scorer is a frozen dataclass called with a `Corpus`, which holds texts and no labels; it returns a (Q, N)
array of finite scores, higher is better, column j for tool j of the registry.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from toolpick.datasets import Corpus, Dataset

__all__ = ["OracleScorer", "Scorer"]


class Scorer(Protocol):
    """Scores every tool for every query.

    What the scores depend on beside the settings becomes part of the cache key, where a scorer says so by

    - a class attribute `libraries`: distribution names, for their versions;
    - a method `fingerprint()`: a string, e.g. a hash of the files it reads;
    - an attribute `components`: the scorers it is made of.
    """

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]: ...


@runtime_checkable
class OracleScorer(Protocol):
    """A scorer that knows the labels. `rank` hands it the dataset itself, and no other scorer anything but texts."""

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]: ...

    def oracle_scores(self, dataset: Dataset) -> NDArray[np.float64]: ...
