"""Tabular Q-learning on binned observations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.shortlist_rules import ShortlistRules
from toolpick.shortlist_vector import ShortlistVectorEnv
from toolpick_agents import STEPWISE, Monitor

_FILE = "q_learning.npz"


@dataclass(frozen=True, eq=False)
class Binning:
    """Maps observations to table rows: the product of the bins of some features.

    Attributes:
        features: names of the binned features.
        columns: their positions in the observation.
        edges: for each feature, rising cut points; value v falls in bin `sum(v >= cut)`.
    """

    features: tuple[str, ...]
    columns: tuple[int, ...]
    edges: tuple[NDArray[np.float64], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Bins of each feature."""
        return tuple(len(cuts) + 1 for cuts in self.edges)

    @property
    def n_states(self) -> int:
        """Rows of the table."""
        return int(np.prod(self.shape))

    def __call__(self, observations: NDArray) -> NDArray[np.int64]:
        """States (...,) of observations (..., F)."""
        bins = [
            np.searchsorted(cuts, observations[..., column], side="right")
            for column, cuts in zip(self.columns, self.edges, strict=True)
        ]
        return np.asarray(np.ravel_multi_index(bins, self.shape))


def make_binning(rules: ShortlistRules, bins: Mapping[str, int | list[float]]) -> Binning:
    """Cut points on the training observations.

    Args:
        rules: the game on the training queries.
        bins: for each feature a list of cut points, or a number of bins: then cut at the quantiles of the
            feature over all queries at the first twenty depths, where episodes spend their time.

    Raises:
        InputError: an unknown feature, or a bin count below 1.
    """
    if not bins:
        raise InputError("q_learning: bins must name at least one feature")
    columns, edges = [], []
    for name, wish in bins.items():
        if name not in rules.feature_names:
            raise InputError(f"q_learning: unknown feature {name!r}; known are {list(rules.feature_names)}")
        column = rules.feature_names.index(name)
        if isinstance(wish, int):
            if wish < 1:
                raise InputError(f"q_learning: feature {name!r} needs 1 bin or more, got {wish}")
            seen = rules.observations[:, :20, column].astype(np.float64)
            cuts = np.unique(np.quantile(seen, np.arange(1, wish) / wish))
        else:
            cuts = np.unique(np.asarray(wish, dtype=np.float64))
        columns.append(column)
        edges.append(cuts)
    return Binning(tuple(bins), tuple(columns), tuple(edges))


@dataclass(frozen=True, eq=False)
class QLearningPolicy:
    """The greedy policy of a table; STOP where both values are equal or nothing was ever tried.

    Attributes:
        binning: from observations to rows.
        values: (S, 2) action values.
        visits: (S, 2) updates each value had.
    """

    binning: Binning
    values: NDArray[np.float64]
    visits: NDArray[np.int64]

    plays: ClassVar[str] = STEPWISE
    unit: ClassVar[str] = "return"

    def __call__(self, observations: NDArray) -> NDArray[np.int64]:
        return self.action_values(observations).argmax(axis=-1)

    def action_values(self, observations: NDArray) -> NDArray[np.float64]:
        """(n, 2) values of STOP and CONTINUE."""
        return self.values[self.binning(observations)]

    def table(self) -> pd.DataFrame:
        """A row a state: bin of each feature, both action values, their visits, and the greedy action."""
        bins = np.unravel_index(np.arange(self.binning.n_states), self.binning.shape)
        frame = pd.DataFrame(dict(zip(self.binning.features, bins, strict=True)))
        frame["q_stop"], frame["q_continue"] = self.values.T
        frame["visits_stop"], frame["visits_continue"] = self.visits.T
        frame["action"] = np.where(frame["q_continue"] > frame["q_stop"], "continue", "stop")
        return frame

    def save(self, folder: Path) -> None:
        meta = {"features": self.binning.features, "columns": self.binning.columns}
        edges = {f"edges_{i}": cuts for i, cuts in enumerate(self.binning.edges)}
        arrays = {"values": self.values, "visits": self.visits, **edges}
        np.savez(folder / _FILE, meta=np.array(json.dumps(meta)), **arrays)
        self.table().to_csv(folder / "q_table.csv", index=False)


def _default_bins() -> dict[str, int | list[float]]:
    return {"depth_share": 1}


@dataclass(frozen=True)
class QLearning:
    """Watkins' Q-learning with epsilon-greedy exploration and a step size that falls with visits.

    The step size of the n-th update of a value is `1 / n**power`, at least `min_step_size`. Unvisited
    successors count as 0.

    Args:
        bins: see `make_binning`.
        total_timesteps: environment steps of training.
        num_envs: episodes side by side; an update uses the values as they stand at that moment.
        epsilon_start: chance of a random action at first.
        epsilon_end: at the end, reached linearly over the first `epsilon_share` of the steps.
        epsilon_share: see above.
        continue_share: chance that a random action is CONTINUE.
        power: of the step size's fall, in 0..1.
        min_step_size: its floor.
    """

    bins: Mapping[str, int | list[float]] = field(default_factory=_default_bins)
    total_timesteps: int = 200_000
    num_envs: int = 32
    epsilon_start: float = 1.0
    epsilon_end: float = 0.1
    epsilon_share: float = 0.5
    continue_share: float = 0.5
    power: float = 0.7
    min_step_size: float = 0.0

    plays: ClassVar[str] = STEPWISE
    oracle: ClassVar[bool] = False

    @property
    def training_steps(self) -> int:
        """`total_timesteps`."""
        return self.total_timesteps

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> QLearningPolicy:
        """See `Agent.train`."""
        binning = make_binning(rules, self.bins)
        values = np.zeros((binning.n_states, 2))
        visits = np.zeros((binning.n_states, 2), dtype=np.int64)
        policy = QLearningPolicy(binning, values, visits)
        env = ShortlistVectorEnv(self.num_envs, rules)
        rng = np.random.default_rng([seed, 2])  # [seed, 0] and [seed, 1] draw the split
        observations, _ = env.reset(seed=seed)
        states = binning(observations)
        for step in range(0, self.total_timesteps, self.num_envs):
            progress = min(1.0, step / max(1.0, self.epsilon_share * self.total_timesteps))
            epsilon = self.epsilon_start + (self.epsilon_end - self.epsilon_start) * progress
            actions = policy(observations)
            explores = rng.random(self.num_envs) < epsilon
            actions = np.where(explores, rng.random(self.num_envs) < self.continue_share, actions).astype(int)
            observations, rewards, ended, _, _ = env.step(actions)
            following = binning(observations)
            for i in range(self.num_envs):
                state, action = states[i], actions[i]
                target = rewards[i]
                if not ended[i]:
                    target += gamma * values[following[i]].max()
                visits[state, action] += 1
                step_size = max(self.min_step_size, visits[state, action] ** -self.power)
                values[state, action] += step_size * (target - values[state, action])
            states = following
            monitor(step + self.num_envs, policy)
        return policy

    def load(self, folder: Path) -> QLearningPolicy:
        """See `Agent.load`."""
        with np.load(folder / _FILE, allow_pickle=False) as stored:
            meta = json.loads(str(stored["meta"]))
            edges = tuple(stored[f"edges_{i}"] for i in range(len(meta["features"])))
            binning = Binning(tuple(meta["features"]), tuple(meta["columns"]), edges)
            return QLearningPolicy(binning, stored["values"], stored["visits"])
