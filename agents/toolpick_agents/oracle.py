"""Deciders that know the right answer: upper bounds and exact references, never competitors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import ONE_SHOT, Monitor


@dataclass(frozen=True)
class ClairvoyantPolicy:
    """Presents each query's best-paid depth, which takes its labels to know."""

    plays: ClassVar[str] = ONE_SHOT

    def __call__(self, observations: NDArray) -> NoReturn:
        raise TypeError("the clairvoyant needs labels: play it through evaluate(), which calls oracle_actions")

    def oracle_actions(self, rules: ShortlistRules, queries: NDArray[np.int64]) -> NDArray[np.int64]:
        """Actions (n,) of the one-shot environment for queries (n,)."""
        return rules.pay[queries].argmax(axis=1)

    def save(self, folder: Path) -> None:
        """It has no state."""


@dataclass(frozen=True)
class Clairvoyant:
    """For each query the depth whose stop pays most, the smallest of equals: what no agent can beat."""

    plays: ClassVar[str] = ONE_SHOT
    oracle: ClassVar[bool] = True
    training_steps: ClassVar[int] = 0

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> ClairvoyantPolicy:
        """Nothing to learn."""
        return ClairvoyantPolicy()

    def load(self, folder: Path) -> ClairvoyantPolicy:
        """It has no state."""
        return ClairvoyantPolicy()


def backward_induction(
    states: NDArray[np.int64], rules: ShortlistRules, gamma: float, *, n_states: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Optimal action values of the binned MDP that tabular Q-learning faces, computed from its labels.

    A binned state pools (query, depth) pairs; its STOP reward and the successors of its CONTINUE are averages
    over the pool, every pair weighing the same. Solved by sweeps from the deepest depth back, repeated until
    nothing changes, since a bin may span several depths.

    Args:
        states: (Q, D) bin of each query at each depth, in 0..n_states-1.
        rules: the game on the same queries.
        gamma: discount.
        n_states: S.

    Returns:
        (S, 2) action values, STOP and CONTINUE, 0 for bins that no pair falls into; and (S,) state values.
    """
    if not 0 <= gamma <= 1:
        raise InputError(f"backward_induction: gamma must lie in 0..1, got {gamma}")
    weight = np.zeros(n_states)
    np.add.at(weight, states, 1.0)
    present = weight > 0
    stop = np.zeros(n_states)
    np.add.at(stop, states, rules.pay)
    stop = np.divide(stop, weight, out=stop, where=present)
    value = np.where(present, stop, 0.0)
    while True:
        # CONTINUE leads to the bin of the next depth; at the deepest depth it is a forced STOP.
        ahead = np.concatenate([-rules.step_cost + gamma * value[states[:, 1:]], rules.pay[:, -1:]], axis=1)
        onward = np.zeros(n_states)
        np.add.at(onward, states, ahead)
        onward = np.divide(onward, weight, out=onward, where=present)
        updated = np.where(present, np.maximum(stop, onward), 0.0)
        if np.abs(updated - value).max() < 1e-12:
            return np.stack([stop, onward], axis=1), updated
        value = updated
