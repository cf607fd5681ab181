"""F1 on BoR's scale, so that the step cost weighs the same in both arms of an ablation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.rewards import Shortlist
from toolpick.rewards.f1 import F1


@dataclass(frozen=True)
class F1Scaled:
    """F1 times log2 N, the most that BoR can pay with one relevant tool."""

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]:
        return F1()(shortlist) * np.log2(shortlist.n_tools)
