"""The notebook's state and what the calibrated stopping rule uses beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.observations import RATIO_LIMIT, Feature, ratio
from toolpick.observations.notebook import Notebook, next_scores
from toolpick.rankings import SCORE_LIMIT


@dataclass(frozen=True)
class Rich:
    """`Notebook` plus top score, log depth, score over the mean of the first five, and next-score ratios."""

    def __call__(self, scores: NDArray[np.float64], max_depth: int) -> list[Feature]:
        depth = np.arange(1, max_depth + 1)[None, :]
        current, top = scores[:, :max_depth], scores[:, :1]
        following = next_scores(scores, max_depth)
        first_five = scores[:, :5].mean(axis=1, keepdims=True)
        return [
            *Notebook()(scores, max_depth),
            Feature("top_score", -SCORE_LIMIT, SCORE_LIMIT, top),
            Feature("log_depth", 0.0, float(np.log(scores.shape[1])) + 1e-6, np.log(depth)),
            Feature("score_over_first_five", -RATIO_LIMIT, RATIO_LIMIT, ratio(current, first_five)),
            Feature("next_over_top", -RATIO_LIMIT, RATIO_LIMIT, ratio(following, top)),
            Feature("next_over_score", -RATIO_LIMIT, RATIO_LIMIT, ratio(following, current)),
            Feature("next_over_first_five", -RATIO_LIMIT, RATIO_LIMIT, ratio(following, first_five)),
            Feature("gap_over_top", -RATIO_LIMIT, RATIO_LIMIT, ratio(current - following, top)),
        ]
