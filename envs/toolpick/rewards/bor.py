"""Bits-over-Random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.metrics import bor_reward, p_rand
from toolpick.rewards import Shortlist


@dataclass(frozen=True)
class Bor:
    """-log2 P_rand(K) on a hit, else 0, in bits (arXiv 2605.24660).

    Args:
        at_least: relevant tools that make a hit; P_rand is then the chance of at least so many.
    """

    at_least: int = 1

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise InputError(f"reward bor: at_least must be 1 or more, got {self.at_least}")

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]:
        chance = p_rand(shortlist.n_tools, shortlist.n_relevant, shortlist.depth, at_least=self.at_least)
        return bor_reward(shortlist.hits >= self.at_least, chance)
