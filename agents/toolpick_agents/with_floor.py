"""The least depth that covers a stated share of queries, by a Lagrange multiplier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from toolpick.errors import InputError
from toolpick.rewards.bor_with_floor import BorWithFloor
from toolpick.shortlist_one_shot import ShortlistOneShotEnv
from toolpick.shortlist_rules import ShortlistRules, make_rules
from toolpick_agents import ONE_SHOT, Monitor, Policy
from toolpick_agents.evaluation import evaluate


@dataclass(frozen=True)
class WithFloor:
    """Trains another agent on `BorWithFloor` with the smallest multiplier that meets a coverage floor.

    The multiplier is found by bisection on folds of the training queries: an agent trained on the others plays each
    fold, so that coverage is judged on queries it did not see. Whatever reward the run is configured with, the agent
    maximises that Lagrangian; the run's own reward still scores it.

    Args:
        agent: what is trained; it must play the one-shot environment.
        floor: share of queries to cover, in 0..1.
        largest: the multiplier at which the search gives up, in bits.
        steps: of the bisection.
        folds: of the training queries.

    Raises:
        InputError: a floor outside 0..1, an agent that plays step by step, or a floor not met at `largest`.
    """

    agent: Any  # an Agent; a Protocol cannot say "on the class or on the instance"
    floor: float = 0.85
    largest: float = 64.0
    steps: int = 8
    folds: int = 5

    plays: ClassVar[str] = ONE_SHOT
    oracle: ClassVar[bool] = False
    training_steps: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if not 0 < self.floor < 1:
            raise InputError(f"agent with_floor: floor must lie between 0 and 1, got {self.floor}")
        if self.agent.plays != ONE_SHOT or self.agent.oracle:
            raise InputError("agent with_floor: needs an agent that plays the one-shot environment and is no oracle")

    def train(self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any) -> Policy:
        """See `Agent.train`."""
        fold = np.random.default_rng([seed, 6]).permutation(rules.n_queries) % self.folds
        low, high = 0.0, self.largest
        if self._coverage(rules, fold, high, gamma, seed) < self.floor:
            raise InputError(
                f"agent with_floor: {self.floor:.0%} are not covered within max_depth {rules.max_depth} even at a "
                f"multiplier of {high:g}; lower the floor or raise max_depth"
            )
        for _ in range(self.steps):
            middle = (low + high) / 2
            met = self._coverage(rules, fold, middle, gamma, seed) >= self.floor
            low, high = (low, middle) if met else (middle, high)
        return self._trained(rules, high, gamma, seed)

    def load(self, folder: Path) -> Policy:
        """See `Agent.load`."""
        return self.agent.load(folder)

    def _coverage(self, rules: ShortlistRules, fold: np.ndarray, multiplier: float, gamma: float, seed: int) -> float:
        hits = 0
        for k in range(self.folds):
            seen, unseen = (_subset(rules, np.flatnonzero(part)) for part in (fold != k, fold == k))
            rows = evaluate(self._trained(seen, multiplier, gamma, seed), ShortlistOneShotEnv(unseen))
            hits += int((rows["hits"] > 0).sum())
        return hits / rules.n_queries

    def _trained(self, rules: ShortlistRules, multiplier: float, gamma: float, seed: int) -> Policy:
        lagrangian = _subset(rules, np.arange(rules.n_queries), BorWithFloor(multiplier))
        return self.agent.train(lagrangian, gamma=gamma, seed=seed, monitor=lambda step, policy: None)


def _subset(rules: ShortlistRules, queries: np.ndarray, reward: BorWithFloor | None = None) -> ShortlistRules:
    return make_rules(
        rules.rankings.subset(queries),
        reward=reward or rules.reward,
        max_depth=rules.max_depth,
        step_cost=rules.step_cost,
    )
