"""Split conformal shortlists: a depth that covers with a stated probability."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import ONE_SHOT, Monitor
from toolpick_agents.hazard import Hazard, fit_hazard, load_hazard, save_hazard

_FILE = "conformal.npz"


@dataclass(frozen=True, eq=False)
class ConformalPolicy:
    """Presents all ranks k with P(k-1) <= threshold: the first always, every one where the threshold is infinite.

    Attributes:
        hazard: gives P(k-1), the nonconformity of rank k: the probability that an earlier rank has hit.
        threshold: the conformal quantile.
    """

    hazard: Hazard
    threshold: float

    plays: ClassVar[str] = ONE_SHOT

    def __call__(self, observations: NDArray) -> NDArray[np.int64]:
        before = found_before(self.hazard, np.asarray(observations, dtype=np.float64))
        return (before <= self.threshold).sum(axis=1) - 1

    def save(self, folder: Path) -> None:
        save_hazard(folder / _FILE, self.hazard, threshold=np.array(self.threshold))


@dataclass(frozen=True)
class Conformal:
    """Fits a hazard on one half of the training queries and calibrates its threshold on the other.

    The nonconformity of a query is the probability that it would have been found before the rank at which it is,
    P(rank - 1), so that rank 1 conforms best and no list is empty; the threshold is the
    ceil((n+1) * coverage)-th smallest of the n calibration queries' (Vovk et al., 2005; Papadopoulos et al.,
    2002). For exchangeable queries the shortlist then holds a relevant tool with probability at least
    `coverage`, on average over splits; where `max_depth` is below N, only as far as first relevant tools within
    it allow.

    Args:
        coverage: the guarantee, in 0..1.
        calibration_share: of the training queries.
    """

    coverage: float = 0.9
    calibration_share: float = 0.5

    plays: ClassVar[str] = ONE_SHOT
    oracle: ClassVar[bool] = False
    training_steps: ClassVar[int] = 0

    def __post_init__(self) -> None:
        for name in ("coverage", "calibration_share"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"agent conformal: {name} must lie between 0 and 1, got {getattr(self, name)}")

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> ConformalPolicy:
        """See `Agent.train`."""
        order = np.random.default_rng([seed, 3]).permutation(rules.n_queries)
        n = round(self.calibration_share * len(order))
        if not 0 < n < len(order):
            raise InputError(f"agent conformal: {len(order)} training queries are too few to split")
        hazard = fit_hazard(rules.rankings.subset(order[n:]), rules.max_depth)
        held = rules.rankings.subset(order[:n])
        # Over the whole list: a first relevant tool beyond max_depth has a nonconformity too.
        before = found_before(hazard, held.scores)
        nonconformity = np.sort(before[np.arange(n), held.first_relevant_rank - 1])
        index = int(np.ceil((n + 1) * self.coverage)) - 1
        return ConformalPolicy(hazard, float(nonconformity[index]) if index < n else np.inf)

    def load(self, folder: Path) -> ConformalPolicy:
        """See `Agent.load`."""
        hazard, extra = load_hazard(folder / _FILE)
        return ConformalPolicy(hazard, float(extra["threshold"]))


def found_before(hazard: Hazard, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, D) probability P(k-1) that the first relevant tool comes before rank k."""
    found = hazard.found_by(scores)
    return np.concatenate([np.zeros((len(found), 1)), found[:, :-1]], axis=1)
