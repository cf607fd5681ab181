"""Normalised discounted cumulative gain of a cut list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.rewards import Shortlist


@dataclass(frozen=True)
class Ndcg:
    """Gain 1/log2(rank+1) of each relevant tool shown, less `penalty` times it of each irrelevant one.

    Divided by the gain of all R relevant tools at the top (Järvelin and Kekäläinen, 2002). Without a penalty a
    deeper list never scores less, so that NDCG by itself says nothing about where to stop; ranked-list truncation
    charges irrelevant items, as here (Lien et al., BiCut, 2019).

    Args:
        penalty: charge of an irrelevant tool, in gains of a relevant one at the same rank.
    """

    penalty: float = 0.25

    def __call__(self, shortlist: Shortlist) -> NDArray[np.float64]:
        discount = 1.0 / np.log2(shortlist.depth + 1.0)
        gain = np.where(shortlist.relevant, 1.0, -self.penalty) * discount
        ranks = np.arange(1, int(shortlist.n_relevant.max()) + 1)
        ideal = np.cumsum(1.0 / np.log2(ranks + 1.0))[shortlist.n_relevant - 1]
        return np.cumsum(gain, axis=1) / ideal
