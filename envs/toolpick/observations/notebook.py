"""The state of the authors' BFCL notebook, as read by a third party."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.observations import RATIO_LIMIT, Feature, ratio
from toolpick.rankings import SCORE_LIMIT


@dataclass(frozen=True)
class Notebook:
    """K/N, log2(K+1)/log2(N+1), current and next score, their gap, standardised and relative current score.

    At the last rank there is no next tool: its score is taken as the current one, the gap as 0. The current
    score is standardised by mean and standard deviation of the whole list (0 where all scores are equal).
    """

    def __call__(self, scores: NDArray[np.float64], max_depth: int) -> list[Feature]:
        n_tools = scores.shape[1]
        depth = np.arange(1, max_depth + 1)[None, :]
        current = scores[:, :max_depth]
        following = next_scores(scores, max_depth)
        mean = scores.mean(axis=1, keepdims=True)
        std = np.where(np.ptp(scores, axis=1, keepdims=True) > 0, scores.std(axis=1, keepdims=True), 0.0)
        spread = np.sqrt(n_tools)  # no standardised value of N numbers lies further out
        return [
            Feature("depth_share", 0.0, 1.0, depth / n_tools),
            Feature("log_depth_share", 0.0, 1.0, np.log2(depth + 1) / np.log2(n_tools + 1)),
            Feature("score", -SCORE_LIMIT, SCORE_LIMIT, current),
            Feature("next_score", -SCORE_LIMIT, SCORE_LIMIT, following),
            Feature("gap_to_next", 0.0, 2 * SCORE_LIMIT, current - following),
            Feature("score_standardised", -spread, spread, ratio_unclipped(current - mean, std)),
            Feature("score_over_top", -RATIO_LIMIT, RATIO_LIMIT, ratio(current, scores[:, :1])),
        ]


def next_scores(scores: NDArray[np.float64], max_depth: int) -> NDArray[np.float64]:
    """(Q, D) score of the tool after each rank; the last rank of the registry repeats its own."""
    return np.concatenate([scores[:, 1:], scores[:, -1:]], axis=1)[:, :max_depth]


def ratio_unclipped(numerator: NDArray, denominator: NDArray) -> NDArray[np.float64]:
    """Quotient, 0 where the denominator is 0."""
    a, b = np.broadcast_arrays(numerator, denominator)
    return np.divide(a, b, out=np.zeros(a.shape), where=b > 0)
