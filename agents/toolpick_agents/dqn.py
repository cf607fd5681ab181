"""What the recorded DQN presets do that Stable-Baselines3's DQN has no setting for: schedules by episodes."""

from __future__ import annotations

from collections.abc import Mapping

from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import polyak_update


class EpisodeSchedule(BaseCallback):
    """Runs a DQN by episodes: its length, its exploration and its target copies.

    Args:
        episodes: training stops after this many.
        epsilon: exploration rate from each share of the episodes on, e.g. {0: .5, .4: .1, .7: .03}.
        linear: whether epsilon moves in straight lines between those points rather than in steps.
        copy_every: episodes between hard copies to the target network; 0 leaves that to the algorithm.
    """

    def __init__(self, episodes: int, epsilon: Mapping[float, float], *, linear: bool, copy_every: int = 0) -> None:
        super().__init__()
        self.episodes, self.linear, self.copy_every = episodes, linear, copy_every
        self.points = sorted((float(share), float(rate)) for share, rate in epsilon.items())
        self.finished = 0

    def epsilon_at(self, share: float) -> float:
        """Exploration rate after this share of the episodes."""
        if self.linear:
            import numpy as np

            shares, rates = zip(*self.points, strict=True)
            return float(np.interp(share, shares, rates))
        return [rate for start, rate in self.points if start <= share][-1]

    def _on_training_start(self) -> None:
        assert isinstance(self.model, DQN)
        self.model.exploration_schedule = self._schedule  # pyright: ignore[reportAttributeAccessIssue]

    def _schedule(self, _progress_remaining: float) -> float:
        return self.epsilon_at(min(1.0, self.finished / self.episodes))

    def _on_step(self) -> bool:
        assert isinstance(self.model, DQN)
        for _ in range(int(self.locals["dones"].sum())):
            self.finished += 1
            if self.copy_every and self.finished % self.copy_every == 0:
                polyak_update(self.model.q_net.parameters(), self.model.q_net_target.parameters(), 1.0)
        return self.finished < self.episodes

    def _on_training_end(self) -> None:
        # The schedule is saved with the model, and a callback is not.
        assert isinstance(self.model, DQN)
        rate = self.points[-1][1]
        self.model.exploration_schedule = _Constant(rate)  # pyright: ignore[reportAttributeAccessIssue]


class _Constant:
    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, _progress_remaining: float) -> float:
        return self.value
