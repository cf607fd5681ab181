"""Stable-Baselines3's view of a batched Gymnasium environment, which the library itself lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from toolpick.errors import InputError


class Sb3VecEnv(VecEnv):
    """Wraps a Gymnasium `VectorEnv` whose autoreset mode is SAME_STEP; `final_obs` becomes `terminal_observation`.

    `seed(s)` seeds the whole batch with s at the next reset: its environments spread one seed themselves.
    """

    def __init__(self, env: VectorEnv) -> None:
        if env.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise InputError("Sb3VecEnv needs a vector environment with autoreset mode SAME_STEP")
        self.env = env
        self.render_mode = env.render_mode
        self._actions: NDArray = np.zeros(env.num_envs, dtype=np.int64)
        self._seed: int | None = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> VecEnvObs:
        """Start every episode; returns observations (num_envs, F)."""
        observations, info = self.env.reset(seed=self._seed)
        self._seed = None
        self.reset_infos = [_of_env(info, i) for i in range(self.num_envs)]
        return observations

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """See the class."""
        self._seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        return [self._seed] * self.num_envs

    def step_async(self, actions: NDArray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """One step of every environment, in Stable-Baselines3's layout."""
        observations, rewards, terminated, truncated, info = self.env.step(self._actions)
        done = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(done):
            infos[i] = _of_env(info["final_info"], int(i))
            infos[i]["terminal_observation"] = info["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return observations, rewards.astype(np.float32), done, infos

    def close(self) -> None:
        """Close the wrapped environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The batch shares its attributes: the same value for each index."""
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the whole batch; part of it cannot differ."""
        if len(list(self._get_indices(indices))) != self.num_envs:
            raise InputError("environments of one batch share their attributes: set them for all")
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the batch once; the same result for each index."""
        result = getattr(self.env, method_name)(*method_args, **method_kwargs)
        return [result] * len(list(self._get_indices(indices)))

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """No environment of a batch is wrapped singly."""
        return [False] * len(list(self._get_indices(indices)))


def _of_env(info: dict[str, Any], index: int) -> dict[str, Any]:
    """One environment's info out of a batch's."""
    keys = [key for key in info if not key.startswith("_") and info[f"_{key}"][index]]
    return {key: info[key][index].item() for key in keys}
