"""The same depth for every query: chosen by hand, or on the training queries."""

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
class FixedDepth(OneShotRule):
    """Always K = `depth`.

    Raises:
        InputError: on training, a depth outside 1..D.
    """

    depth: int = 5

    @property
    def name(self) -> str:
        """Name in result rows."""
        return f"fixed_{self.depth}"

    def depths(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """See `OneShotRule.depths`."""
        return np.full(len(scores), self.depth)

    def train(self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any) -> FixedDepth:
        """Nothing to learn; checks the depth."""
        if not 1 <= self.depth <= rules.max_depth or int(self.depth) != self.depth:
            raise InputError(f"agent fixed_depth: depth must be in 1..{rules.max_depth} (max_depth), got {self.depth}")
        return self


@dataclass(frozen=True)
class BestFixedDepth(OneShotRule):
    """The K with the highest mean pay of a stop on the training queries; the smallest of equals.

    It is chosen by pay alone, without step costs and discount, which makes it the strongest fixed depth on the
    measure that results are compared by.

    Args:
        depth: chosen by training; 0 before.
    """

    depth: int = 0

    def depths(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """See `OneShotRule.depths`."""
        return np.full(len(scores), self.depth)

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> BestFixedDepth:
        """Reads the pay of every training query at every depth."""
        return replace(self, depth=int(rules.pay.mean(axis=0).argmax()) + 1)
