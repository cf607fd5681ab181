"""Several scorers made one by their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from toolpick.datasets import Corpus
from toolpick.errors import InputError
from toolpick.scorers import Scorer
from toolpick.scorers.cache import cached_scores


@dataclass(frozen=True)
class Hybrid:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009): the sum over scorers of 1 / (k + rank).

    Ranks are 1-based. Tools that a component scores alike share the mean of the ranks they take up: BM25 gives
    0 to most of a registry, and registry order, which settles ties in rankings, would be a signal here.

    Args:
        components: the scorers, each weighing the same.
        k: how little the first ranks count for more than the next; 60 is the paper's.

    Raises:
        InputError: no components, a k that is not positive, a component that returns another shape than (Q, N).
    """

    components: Sequence[Scorer]
    k: float = 60.0

    libraries: ClassVar[tuple[str, ...]] = ("scipy", "numpy")

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", tuple(self.components))  # Hydra hands over a list
        if not self.components:
            raise InputError("scorer hybrid: components is empty; name at least one scorer")
        if not 0 < self.k < np.inf:
            raise InputError(f"scorer hybrid: k must be positive and finite, got {self.k}")

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]:
        fused = np.zeros((len(corpus.queries), len(corpus.tools)))
        for component in self.components:
            scores = np.asarray(cached_scores(corpus, component), dtype=np.float64)
            if scores.shape != fused.shape:
                raise InputError(
                    f"scorer hybrid: component {type(component).__name__} returned shape {scores.shape}, "
                    f"expected {fused.shape}"
                )
            fused += 1.0 / (self.k + rankdata(-scores, axis=1))
        return fused
