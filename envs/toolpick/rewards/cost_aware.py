"""A price for the tokens that tool cards take up in a prompt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.rewards import Shortlist


@dataclass(frozen=True)
class CostAware:
    """1 on a hit, less `price` for every thousand tokens shown, counted on the real cards.

    Args:
        price: hits a thousand tokens are worth, 0 or more.
    """

    price: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.price < np.inf:
            raise InputError(f"reward cost_aware: price must be 0 or more, got {self.price}")

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]:
        return shortlist.hit - np.float64(self.price) * shortlist.tokens / 1000.0
