"""Scores that came with the dataset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.datasets import Corpus
from toolpick.errors import InputError


@dataclass(frozen=True)
class Given:
    """Hands on the scores a dataset brings, as the synthetic one does.

    Raises:
        InputError: the dataset brings none.
    """

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]:
        if corpus.scores is None:
            raise InputError("scorer `given`: this dataset brings no scores; choose another, e.g. scorer=bm25")
        return np.asarray(corpus.scores, dtype=np.float64)
