"""Any Stable-Baselines3 algorithm as an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv

from toolpick.shortlist_one_shot import ShortlistOneShotEnv
from toolpick.shortlist_rules import ShortlistRules
from toolpick.shortlist_vector import ShortlistVectorEnv
from toolpick_agents import ONE_SHOT, STEPWISE, Monitor
from toolpick_agents.vec_env import Sb3VecEnv

_FILE = "model.zip"


class Standardize(BaseFeaturesExtractor):
    """Shifts and scales observations by fixed numbers, which are saved with the network."""

    def __init__(self, observation_space: gymnasium.spaces.Box, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(observation_space, features_dim=int(np.prod(observation_space.shape)))
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """(n, F) to (n, F)."""
        return (observations - self.mean) / self.std  # pyright: ignore[reportOperatorIssue]


@dataclass(frozen=True, eq=False)
class Sb3Policy:
    """Deterministic decisions of a model."""

    model: BaseAlgorithm
    plays: str = STEPWISE

    def __call__(self, observations: NDArray) -> NDArray[np.int64]:
        return self.model.predict(observations, deterministic=True)[0]

    @property
    def unit(self) -> str:
        """Of `action_values`."""
        return "return" if isinstance(self.model, DQN) else "log probability"

    def action_values(self, observations: NDArray) -> NDArray[np.float32]:
        """(n, A) action values of DQN, log probabilities of an actor-critic algorithm."""
        with torch.no_grad():
            tensor, _ = self.model.policy.obs_to_tensor(np.asarray(observations))
            if isinstance(self.model, DQN):
                return self.model.q_net(tensor).numpy()
            assert isinstance(self.model.policy, ActorCriticPolicy)
            distribution = self.model.policy.get_distribution(tensor).distribution
            assert isinstance(distribution, torch.distributions.Categorical)
            return distribution.logits.numpy()

    def save(self, folder: Path) -> None:
        # Without its class the replay buffer is set up from `n_steps` again on loading, as it was at first.
        self.model.save(folder / _FILE, exclude=["replay_buffer_class"])


@dataclass(frozen=True)
class Sb3:
    """Trains a Stable-Baselines3 algorithm on one torch thread.

    Args:
        algorithm: an algorithm class with its settings filled in, as Hydra's `_partial_: true` makes it; `env`,
            `gamma`, `seed` and `tensorboard_log` are added here.
        total_timesteps: environment steps of training.
        num_envs: episodes side by side.
        plays: `toolpick/Shortlist-v0` or `toolpick/ShortlistOneShot-v0`.
        standardize: scale observations by mean and deviation over the training queries.
        keep_best: hand back the weights with the best mean validation return seen while training, rather than
            the last ones.
        callbacks: factories of Stable-Baselines3 callbacks, for what a preset does besides.
    """

    algorithm: Callable[..., BaseAlgorithm]
    total_timesteps: int
    num_envs: int = 1
    plays: str = STEPWISE
    standardize: bool = True
    keep_best: bool = False
    callbacks: Sequence[Callable[[], BaseCallback]] = ()

    oracle: ClassVar[bool] = False

    @property
    def training_steps(self) -> int:
        """`total_timesteps`."""
        return self.total_timesteps

    def train(
        self,
        rules: ShortlistRules,
        *,
        gamma: float,
        seed: int,
        monitor: Monitor,
        tensorboard: Path | None = None,
        **options: Any,
    ) -> Sb3Policy:
        """See `Agent.train`; `tensorboard` is a folder for the library's own logs."""
        torch.set_num_threads(1)  # the same numbers whatever the machine, and runs side by side do not fight
        settings: dict[str, Any] = {"gamma": gamma, "seed": seed, "verbose": 0, "device": "cpu"}
        if self.standardize:
            given = dict(getattr(self.algorithm, "keywords", {}).get("policy_kwargs") or {})
            settings["policy_kwargs"] = given | _standardizing(rules, self.plays)
        log = None if tensorboard is None else str(tensorboard)
        model = self.algorithm(env=_training_env(rules, self.plays, self.num_envs), tensorboard_log=log, **settings)
        if log is None:
            model.set_logger(Logger(None, []))  # the default one makes a folder in the temporary directory
        watch = _Watch(monitor, plays=self.plays, keep_best=self.keep_best)
        model.learn(self.total_timesteps, callback=CallbackList([watch, *(make() for make in self.callbacks)]))
        watch.restore_best()
        return Sb3Policy(model, self.plays)

    def load(self, folder: Path) -> Sb3Policy:
        """See `Agent.load`. The zip holds pickled parts: load only what you trust."""
        kind = getattr(self.algorithm, "func", self.algorithm)
        model = kind.load(folder / _FILE, device="cpu")  # pyright: ignore[reportFunctionMemberAccess]
        return Sb3Policy(model, self.plays)


def _training_env(rules: ShortlistRules, plays: str, num_envs: int) -> Sb3VecEnv | DummyVecEnv:
    if plays == ONE_SHOT:
        return DummyVecEnv([lambda i=i: ShortlistOneShotEnv(rules, env_index=i) for i in range(num_envs)])
    return Sb3VecEnv(ShortlistVectorEnv(num_envs, rules))


def _standardizing(rules: ShortlistRules, plays: str) -> dict[str, Any]:
    if plays == ONE_SHOT:
        seen = rules.rankings.scores[:, : rules.max_depth]
    else:  # the first twenty depths are where episodes spend their time
        seen = rules.observations[:, :20].reshape(-1, rules.observations.shape[2])
    mean, std = seen.mean(axis=0, dtype=np.float64), seen.std(axis=0, dtype=np.float64)
    std[std < 1e-8] = 1.0  # a constant feature
    moments: Mapping[str, list[float]] = {"mean": mean.tolist(), "std": std.tolist()}
    return {"features_extractor_class": Standardize, "features_extractor_kwargs": moments}


class _Watch(BaseCallback):
    """Reports to the monitor after every step, and remembers the weights it judged best."""

    def __init__(self, monitor: Monitor, *, plays: str, keep_best: bool) -> None:
        super().__init__()
        self._plays = plays
        self._monitor, self._keep_best = monitor, keep_best
        self._best, self._weights = -np.inf, None

    def _on_step(self) -> bool:
        judged = self._monitor(self.num_timesteps, Sb3Policy(self.model, self._plays))
        if self._keep_best and judged is not None and judged > self._best:
            self._best = judged
            state = self.model.policy.state_dict()
            self._weights = {name: tensor.clone() for name, tensor in state.items()}
        return True

    def restore_best(self) -> None:
        """Load the best weights back, if any were kept."""
        if self._weights is not None:
            self.model.policy.load_state_dict(self._weights)
