"""Show all tools whose score comes near the best one's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import Monitor
from toolpick_agents.one_shot import OneShotRule


@dataclass(frozen=True)
class RelativeThreshold(OneShotRule):
    """Tools with score >= share * top score, at least one.

    Args:
        share: of the top score; where None, the one of `candidates` with the highest mean pay on the training
            queries, the largest of equals.
        candidates: how many evenly spaced shares in (0, 1] are tried.
    """

    share: float | None = None
    candidates: int = 100

    def __post_init__(self) -> None:
        if self.candidates < 1 or (self.share is not None and not np.isfinite(self.share)):
            raise InputError("agent relative_threshold: share must be finite and candidates at least 1")

    def depths(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """See `OneShotRule.depths`."""
        if self.share is None:
            raise InputError("agent relative_threshold: without a share it must be trained first")
        return _depths(scores, self.share)

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> RelativeThreshold:
        """Choose the share, where none is given."""
        if self.share is not None:
            return self
        scores, rows = rules.rankings.scores[:, : rules.max_depth], np.arange(rules.n_queries)
        shares = np.arange(self.candidates, 0, -1) / self.candidates
        pays = [rules.pay[rows, _depths(scores, share) - 1].mean() for share in shares]
        return replace(self, share=float(shares[int(np.argmax(pays))]))


def _depths(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    # Lists fall, so the tools above the line are the first ones, also where scores are negative.
    return np.maximum(1, np.cumprod(scores >= share * scores[:, :1], axis=1).sum(axis=1))
