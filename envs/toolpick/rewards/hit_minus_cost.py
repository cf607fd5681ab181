"""A plain linear price for depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.rewards import Shortlist


@dataclass(frozen=True)
class HitMinusCost:
    """1 on a hit, less `cost` for every tool shown, hit or not."""

    cost: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.cost < np.inf:
            raise InputError(f"reward hit_minus_cost: cost must be 0 or more, got {self.cost}")

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]:
        return shortlist.hit.astype(np.float64) - np.float64(self.cost) * shortlist.depth
