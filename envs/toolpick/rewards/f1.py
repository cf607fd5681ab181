"""F1, the paper's ablation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.metrics import f1
from toolpick.rewards import Shortlist


@dataclass(frozen=True)
class F1:
    """2*hits / (K + R): 2/(K+1) on a hit when R = 1. At most 1."""

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]:
        return f1(shortlist.hits, shortlist.n_relevant, shortlist.depth)
