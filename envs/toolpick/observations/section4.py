"""The state of section 4 of arXiv 2605.24660."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.observations import Feature
from toolpick.rankings import SCORE_LIMIT


@dataclass(frozen=True)
class Section4:
    """Top score, gap top to current, score spread, depth, registry size and BoR ceiling at this depth.

    The paper does not define the spread: it is the standard deviation over the whole list here. The ceiling
    is that of one relevant tool, log2(N/k), since the number of relevant tools is not the agent's to know.
    """

    def __call__(self, scores: NDArray[np.float64], max_depth: int) -> list[Feature]:
        n_tools = scores.shape[1]
        depth = np.arange(1, max_depth + 1)[None, :]
        top = scores[:, :1]
        return [
            Feature("top_score", -SCORE_LIMIT, SCORE_LIMIT, top),
            Feature("gap_to_top", 0.0, 2 * SCORE_LIMIT, top - scores[:, :max_depth]),
            Feature("score_spread", 0.0, SCORE_LIMIT, scores.std(axis=1, keepdims=True)),
            Feature("depth", 1.0, float(n_tools), depth),
            Feature("n_tools", 1.0, float(n_tools), np.full((1, 1), n_tools)),
            Feature("bor_ceiling", 0.0, float(np.log2(n_tools)) + 1e-6, np.log2(n_tools / depth)),
        ]
