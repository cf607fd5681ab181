"""Bits-over-Random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.metrics import bor_reward
from toolpick.rewards import Shortlist


@dataclass(frozen=True)
class Bor:
    """-log2 P_rand(K) on a hit, else 0, in bits (arXiv 2605.24660)."""

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]:
        return bor_reward(shortlist.hit, shortlist.p_rand)
