"""Cut at the largest drop between neighbouring scores: adaptive-k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick_agents.one_shot import OneShotRule


@dataclass(frozen=True)
class ScoreGap(OneShotRule):
    """Show the tools before the largest gap, and a few more (adaptive-k, arXiv 2506.08479).

    Args:
        search_share: the gap is sought in this share of the list, from the top; the tail of a long list has
            gaps that mean nothing.
        buffer: tools shown beyond the gap.
    """

    search_share: float = 0.9
    buffer: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.search_share <= 1 or self.buffer < 0:
            raise InputError("agent score_gap: search_share must lie in (0, 1] and buffer must not be negative")

    def depths(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """See `OneShotRule.depths`; the first of equal gaps."""
        n_ranks = scores.shape[1]
        sought = max(1, min(n_ranks - 1, int(self.search_share * n_ranks)))
        gaps = (scores[:, :-1] - scores[:, 1:])[:, :sought]
        cut = gaps.argmax(axis=1) + 1 if gaps.shape[1] else np.ones(len(scores), dtype=np.int64)
        return np.minimum(cut + self.buffer, n_ranks)
