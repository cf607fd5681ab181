"""toolpick/ShortlistOneShot-v0: the same game in a single move, with every score in view."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.rankings import SCORE_LIMIT
from toolpick.shortlist import ShortlistEnv
from toolpick.shortlist_rules import STOP, ShortlistRules


class ShortlistOneShotEnv(ShortlistEnv):
    """Choose the depth K at once from the whole ranked score list: what STOP/CONTINUE hides.

    Observation: `Box(D,)`, float32: the scores of ranks 1..D, non-increasing.
    Action a in 0..D-1: present the first K = a+1 tools.
    Reward: that of playing K-1 times CONTINUE and then STOP in `toolpick/Shortlist-v0`, undiscounted: what the
    stop pays, less step_cost * (K-1). Every episode is one step.

    Info, reset options, rendering and arguments are those of `ShortlistEnv`; the observation preset has no
    effect here.

    Version history: v0, first release.
    """

    def __init__(
        self,
        rules: ShortlistRules | None = None,
        *,
        env_index: int = 0,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(rules, env_index=env_index, render_mode=render_mode, **settings)
        self.observation_space = Box(-SCORE_LIMIT, SCORE_LIMIT, (self.rules.max_depth,), np.float32)
        self.action_space = Discrete(self.rules.max_depth)

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Present the first `action + 1` tools and end the episode."""
        if not (0 <= action < self.rules.max_depth and int(action) == action):
            raise InputError(f"action must be in 0..{self.rules.max_depth - 1}, got {action!r}")
        if not self._terminated:
            self._depth = int(action) + 1
        observation, pay, terminated, truncated, info = super().step(STOP)
        return observation, pay - self.rules.step_cost * int(action), terminated, truncated, info

    def _observation(self) -> NDArray[np.float32]:
        return self.rules.rankings.scores[self._query, : self.rules.max_depth].astype(np.float32)
