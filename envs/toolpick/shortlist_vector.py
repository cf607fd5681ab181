"""The batched form of toolpick/Shortlist-v0: the same rules, one NumPy call for all episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from toolpick.episodes import episode_query
from toolpick.errors import InputError
from toolpick.shortlist_rules import CONTINUE, STOP, ShortlistRules, make_rules


class ShortlistVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]):
    """`num_envs` episodes of `ShortlistEnv` side by side, autoreset within the step (SAME_STEP).

    Environment i seeded with s plays exactly what `ShortlistEnv(env_index=i)` seeded with s plays.

    On the step that ends an episode the observation is already the next episode's first; `final_obs` in info
    holds the (num_envs, F) last observations and `final_info` the single environment's terminal info, each
    with its mask (`_final_obs`, `_final_info`) as Gymnasium lays them out.

    Reset: `options={"query": array}` gives every environment the query of its first episode.

    Args:
        num_envs: episodes side by side.
        rules: from `make_rules`; or give its arguments here, as for `ShortlistEnv`.
        render_mode: None only; render a single environment.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        rules: ShortlistRules | None = None,
        *,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        if num_envs < 1:
            raise InputError(f"num_envs must be 1 or more, got {num_envs}")
        if render_mode is not None:
            raise InputError("the batched environment does not render; make a single one")
        if rules is not None and settings:
            raise InputError(f"give rules or their settings, not both: {sorted(settings)}")
        self.rules = rules if rules is not None else make_rules(**settings)
        self.num_envs = num_envs
        self.single_observation_space = self.rules.observation_space
        self.single_action_space = Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._index = np.arange(num_envs)
        self._episode = np.full(num_envs, -1)
        self._query = np.zeros(num_envs, dtype=np.int64)
        self._depth = np.zeros(num_envs, dtype=np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start an episode in every environment; see the class for `options`."""
        super().reset(seed=seed)
        self._episode = np.zeros_like(self._episode) if seed is not None else self._episode + 1
        chosen = (options or {}).get("query")
        self._query = self._draw() if chosen is None else self._checked(chosen)
        self._depth = np.ones(self.num_envs, dtype=np.int64)
        everyone = np.ones(self.num_envs, dtype=bool)
        return self._observations(), self._info(everyone)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Stop or continue in every environment; see the class."""
        if self._depth[0] == 0:
            raise ResetNeeded("call reset() before step()")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or not np.isin(actions, (STOP, CONTINUE)).all():
            raise InputError(f"actions must be {self.num_envs} values of 0 (STOP) or 1 (CONTINUE)")
        depth, rewards, ended = self.rules.transition(self._query, self._depth, actions)
        self._depth = depth
        if not ended.any():
            return self._observations(), rewards, ended, np.zeros_like(ended), self._info(~ended)
        final_info = self._info(ended)
        for key, values in self.rules.facts(self._query, self._depth).items():
            final_info |= {key: np.where(ended, values, 0), f"_{key}": ended.copy()}
        final = {"final_obs": self._observations(), "_final_obs": ended.copy()}
        final |= {"final_info": final_info, "_final_info": ended.copy()}
        self._episode = self._episode + ended
        self._query = np.where(ended, self._draw(), self._query)
        self._depth = np.where(ended, 1, self._depth)
        everyone = np.ones(self.num_envs, dtype=bool)
        return self._observations(), rewards, ended, np.zeros_like(ended), self._info(everyone) | final

    def _draw(self) -> NDArray[np.int64]:
        seed = int(self.np_random_seed or 0)
        return episode_query(seed, self._index, self._episode, self.rules.n_queries)

    def _checked(self, chosen: ArrayLike) -> NDArray[np.int64]:
        queries = np.array(chosen, dtype=np.int64)
        if queries.shape != (self.num_envs,) or queries.min() < 0 or queries.max() >= self.rules.n_queries:
            raise InputError(f"option 'query' must be {self.num_envs} positions in 0..{self.rules.n_queries - 1}")
        return queries

    def _observations(self) -> NDArray[np.float32]:
        return self.rules.observations[self._query, self._depth - 1]

    def _info(self, present: NDArray[np.bool_]) -> dict[str, Any]:
        info = {"query": np.where(present, self._query, 0), "_query": present.copy()}
        return info | {"depth": np.where(present, self._depth, 0), "_depth": present.copy()}
