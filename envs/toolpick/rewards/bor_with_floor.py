"""Bits-over-Random with a bonus for coverage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.rewards import Shortlist
from toolpick.rewards.bor import Bor


@dataclass(frozen=True)
class BorWithFloor:
    """BoR plus `multiplier` on a hit: the Lagrangian of "most bits, but cover at least so many queries".

    The multiplier that just meets a floor is found by the agent `with_floor`.

    Args:
        multiplier: bits a covered query is worth beyond BoR, 0 or more.
    """

    multiplier: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.multiplier < np.inf:
            raise InputError(f"reward bor_with_floor: multiplier must be 0 or more, got {self.multiplier}")

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]:
        return Bor()(shortlist) + self.multiplier * shortlist.hit
