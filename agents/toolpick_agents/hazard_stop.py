"""The calibrated stopping rule: the depth with the highest expected pay under a fitted hazard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import ONE_SHOT, Monitor
from toolpick_agents.hazard import Hazard, fit_hazard, load_hazard, save_hazard

_FILE = "hazard.npz"


@dataclass(frozen=True, eq=False)
class HazardStopPolicy:
    """Presents the K with the highest expected pay; for BoR that is P(K) * log2(N/K).

    Attributes:
        hazard: gives the probability of each rank to be the first relevant one.
        pay: (D+1, D) what a stop at each depth pays if that rank is 1..D, or none of them.
    """

    hazard: Hazard
    pay: NDArray[np.float64]

    plays: ClassVar[str] = ONE_SHOT
    unit: ClassVar[str] = "return"

    def action_values(self, observations: NDArray) -> NDArray[np.float64]:
        """(n, D) expected pay of stopping at each depth."""
        found = self.hazard.found_by(np.asarray(observations, dtype=np.float64))
        first = np.diff(found, axis=1, prepend=0.0, append=1.0)  # the last entry: beyond rank D
        return first @ self.pay

    def __call__(self, observations: NDArray) -> NDArray[np.int64]:
        return self.action_values(observations).argmax(axis=1)

    def save(self, folder: Path) -> None:
        save_hazard(folder / _FILE, self.hazard, pay=self.pay)


@dataclass(frozen=True)
class HazardStop:
    """Fits the hazard on the training queries and stops by expected pay.

    With several relevant tools it reckons with the first one alone, and in the reward with their rounded mean
    number.

    Args:
        isotonic: recalibrate the logistic hazards by isotonic regression.
    """

    isotonic: bool = False

    plays: ClassVar[str] = ONE_SHOT
    oracle: ClassVar[bool] = False
    training_steps: ClassVar[int] = 0

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> HazardStopPolicy:
        """See `Agent.train`."""
        hazard = fit_hazard(rules.rankings, rules.max_depth, isotonic=self.isotonic, seed=seed)
        typical = max(1, round(float(rules.rankings.n_relevant.mean())))
        return HazardStopPolicy(hazard, rules.pay_by_first_rank(typical))

    def load(self, folder: Path) -> HazardStopPolicy:
        """See `Agent.load`."""
        hazard, extra = load_hazard(folder / _FILE)
        return HazardStopPolicy(hazard, extra["pay"])
