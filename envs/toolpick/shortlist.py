"""toolpick/Shortlist-v0: how many tools to show, one STOP or CONTINUE at a time."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete, Space
from numpy.typing import NDArray

from toolpick.episodes import episode_query
from toolpick.errors import InputError
from toolpick.shortlist_rules import CONTINUE, STOP, ShortlistRules, make_rules

__all__ = ["CONTINUE", "STOP", "ShortlistEnv"]


class ShortlistEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Depth selection as a stop/continue MDP (arXiv 2605.24660).

    An episode is one query whose registry a scorer has ranked. Depth starts at 1.

    Action      Meaning
    0 STOP      present the shortlist: the episode terminates and the reward is what the stop pays
    1 CONTINUE  show the next tool: reward -step_cost; at the deepest rank it is a forced STOP

    Observation: `Box(F,)`, float32, finite bounds; the features of the chosen preset, named in
    `rules.feature_names`. It never depends on which tool is relevant (but for `notebook_leaky`).

    Info: `query` (position in the rankings) and `depth` always; on the terminal step also `hits`,
    `n_relevant`, `n_tools`, `first_relevant_rank` and `pay`, the labels.

    Reset: `options={"query": i}` plays query i; else the query is a counter-based function of the seed,
    `env_index` and the number of episodes since seeding.

    Render: `render_mode="ansi"` shows the ranked list, the cut and what STOP pays.

    Args:
        rules: from `make_rules`; or give its arguments (`rankings`, `reward`, `observation`, `max_depth`,
            `step_cost`) here. Without any, a synthetic registry is played for BoR.
        env_index: position within a batch of environments, see `episode_query`.
        render_mode: None or "ansi"; any other counts as None.

    Version history: v0, first release.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's convention

    def __init__(
        self,
        rules: ShortlistRules | None = None,
        *,
        env_index: int = 0,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        if rules is not None and settings:
            raise InputError(f"give rules or their settings, not both: {sorted(settings)}")
        self.rules = rules if rules is not None else make_rules(**settings)
        self.observation_space: Space[NDArray[np.float32]] = self.rules.observation_space  # pyright: ignore
        self.action_space = Discrete(2)
        # Gymnasium warns of a mode that is not in the metadata, and Stable-Baselines3 always asks for one that is not.
        self.render_mode = render_mode if render_mode in self.metadata["render_modes"] else None
        self._env_index = env_index
        self._episode = -1
        self._query, self._depth, self._terminated = 0, 0, True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start the next episode; see the class for `options`."""
        super().reset(seed=seed)
        self._episode = 0 if seed is not None else self._episode + 1
        chosen = (options or {}).get("query")
        if chosen is None:
            chosen = episode_query(int(self.np_random_seed or 0), self._env_index, self._episode, self.rules.n_queries)
        elif not 0 <= chosen < self.rules.n_queries:
            raise InputError(f"option 'query' must be in 0..{self.rules.n_queries - 1}, got {chosen}")
        self._query, self._depth, self._terminated = int(chosen), 1, False
        return self._observation(), {"query": self._query, "depth": 1}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Stop or continue; see the class."""
        if self._terminated:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() before step()")
        if action not in (STOP, CONTINUE):
            raise InputError(f"action must be 0 (STOP) or 1 (CONTINUE), got {action!r}")
        depth, reward, terminated = self.rules.transition(self._query, self._depth, action)
        self._depth, self._terminated = int(depth), bool(terminated)
        info: dict[str, Any] = {"query": self._query, "depth": self._depth}
        if self._terminated:
            facts = self.rules.facts(self._query, self._depth)
            info |= {key: value.item() for key, value in facts.items()}
        return self._observation(), float(reward), self._terminated, False, info

    def render(self) -> str | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The ranked list with the cut, as text; None without a render mode.

        While the episode runs, nothing in it tells which tools are relevant.
        """
        if self.render_mode is None:
            return None
        if self._depth == 0:
            raise gymnasium.error.ResetNeeded("there is nothing to draw: call reset() before render()")
        return _drawing(self.rules, self._query, self._depth, reveal=self._terminated)

    def _observation(self) -> NDArray[np.float32]:
        return self.rules.observations[self._query, self._depth - 1].copy()


_SHOWN_BELOW_CUT = 3
_SHOWN_ABOVE_CUT = 12


def _drawing(rules: ShortlistRules, query: int, depth: int, *, reveal: bool) -> str:
    rankings = rules.rankings
    lines = [f'query {rankings.query_ids[query]}: "{rankings.query_texts[query][:80]}"']
    lines.append(f"depth {depth} of at most {rules.max_depth}, registry of {rankings.n_tools} tools")
    first = max(0, depth - _SHOWN_ABOVE_CUT)
    if first:
        lines.append(f"  ... {first} shown above")
    for index in range(first, min(depth + _SHOWN_BELOW_CUT, rankings.n_tools)):
        if index == depth:
            lines.append("  ---- cut ----")
        mark = "*" if reveal and rankings.relevant[query, index] else " "
        name = rankings.tool_names[rankings.order[query, index]]
        lines.append(f"{mark} {index + 1:4d} {rankings.scores[query, index]:10.3f}  {name}")
    if reveal:
        hits, relevant = rules.hits[query, depth - 1], rankings.n_relevant[query]
        lines.append(f"stopped: {hits} of {relevant} relevant (*) shown, paid {rules.pay[query, depth - 1]:.3f}")
    else:
        pays = rules.pay_by_first_rank(max_depth=depth)[:depth, depth - 1]
        span = f"{pays[0]:.3f}" if np.ptp(pays) == 0 else f"{pays.min():.3f} to {pays.max():.3f}"
        lines.append(f"STOP here pays {span} if it shows the one relevant tool")
    return "\n".join(lines)
