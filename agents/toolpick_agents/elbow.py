"""Cut where the curve of scores bends most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick_agents.one_shot import OneShotRule


@dataclass(frozen=True)
class Elbow(OneShotRule):
    """The rank furthest below the straight line from the first score to the last (Satopää et al., Kneedle, 2011).

    The bend belongs to the tail, so that the tools before it are shown; the first of equals, and one tool where
    nothing bends.
    """

    def depths(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """See `OneShotRule.depths`."""
        along = np.linspace(0.0, 1.0, scores.shape[1])
        chord = scores[:, :1] + (scores[:, -1:] - scores[:, :1]) * along
        return np.maximum(1, (chord - scores).argmax(axis=1))
