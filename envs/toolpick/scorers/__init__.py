"""How tools are ranked for a query: one file a scorer.

A scorer is a frozen dataclass called with a `Corpus`, which holds texts and no labels; it returns a (Q, N)
array of finite scores, higher is better, column j for tool j of the registry.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from toolpick.datasets import Corpus

__all__ = ["Scorer"]


class Scorer(Protocol):
    """Scores every tool for every query.

    A class attribute `libraries` (distribution names) may list what the scores depend on: their versions
    become part of the cache key.
    """

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]: ...
