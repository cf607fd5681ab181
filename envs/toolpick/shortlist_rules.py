"""The rules of the shortlist game: pure tables and functions behind every shortlist environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from toolpick.errors import InputError
from toolpick.observations import Feature, Observation
from toolpick.observations.notebook_leaky import NotebookLeaky
from toolpick.observations.rich import Rich
from toolpick.rankings import Rankings, rank
from toolpick.rewards import Reward, Shortlist
from toolpick.rewards.bor import Bor

STOP, CONTINUE = 0, 1


@dataclass(frozen=True, eq=False)
class ShortlistRules:
    """Everything that can happen, tabulated by query and depth. Immutable; build it with `make_rules`.

    Attributes:
        rankings: the queries and their ranked lists.
        reward: what a stop is paid by.
        step_cost: what CONTINUE costs.
        feature_names: names of the F features.
        observation_space: Box of shape (F,), finite bounds, float32.
        observations: (Q, D, F) float32, what is seen at depth k in [:, k-1].
        pay: (Q, D) float, what STOP at depth k pays. Depends on the labels.
        hits: (Q, D) int, relevant tools shown at depth k: the labels.
    """

    rankings: Rankings
    reward: Reward
    step_cost: float
    feature_names: tuple[str, ...]
    observation_space: Box
    observations: NDArray[np.float32]
    pay: NDArray[np.float64]
    hits: NDArray[np.int64]

    def __deepcopy__(self, memo: Any) -> ShortlistRules:
        return self  # immutable; gymnasium.make deep-copies its arguments

    @property
    def max_depth(self) -> int:
        """D, the deepest rank that can be shown."""
        return self.pay.shape[1]

    @property
    def n_queries(self) -> int:
        """Q."""
        return self.pay.shape[0]

    def transition(
        self, query: ArrayLike, depth: ArrayLike, action: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """One move of any number of episodes. CONTINUE at depth D is a forced STOP.

        Args:
            query: integer positions of queries.
            depth: depths 1..D, same shape.
            action: STOP (0) or CONTINUE (1), same shape.

        Returns:
            New depths, rewards, and whether each episode terminated.
        """
        query, depth = np.asarray(query), np.asarray(depth)
        stops = (np.asarray(action) == STOP) | (depth == self.max_depth)
        reward = np.where(stops, self.pay[query, depth - 1], -self.step_cost)
        return depth + ~stops, reward, stops

    def pay_by_first_rank(self, n_relevant: int = 1, *, max_depth: int | None = None) -> NDArray[np.float64]:
        """(D+1, D) what STOP at each depth pays if the first of `n_relevant` relevant tools is at rank 1..D or beyond.

        Only that one is reckoned to be shown, and cards to be of mean length. Knows no labels. D is `max_depth`, by
        default that of the rules; the table takes about 9*D*D bytes.
        """
        depth = self.max_depth if max_depth is None else max_depth
        relevant = np.eye(depth + 1, depth, dtype=bool)
        tokens = self.rankings.tool_tokens.mean() * np.arange(1.0, depth + 1)[None, :]
        total = np.full((depth + 1, 1), n_relevant)
        shortlist = Shortlist(relevant, total, self.rankings.n_tools, tokens)
        return np.array(np.broadcast_to(self.reward(shortlist), relevant.shape), dtype=np.float64)

    def facts(self, query: ArrayLike, depth: ArrayLike) -> dict[str, NDArray]:
        """Raw facts of finished episodes, labels included, from which every metric can be recomputed."""
        query, depth = np.asarray(query), np.asarray(depth)
        return {
            "hits": self.hits[query, depth - 1],
            "n_relevant": self.rankings.n_relevant[query],
            "n_tools": np.full(query.shape, self.rankings.n_tools),
            "first_relevant_rank": self.rankings.first_relevant_rank[query],
            "pay": self.pay[query, depth - 1],
        }


def make_rules(
    rankings: Rankings | None = None,
    reward: Reward | None = None,
    observation: Observation | None = None,
    max_depth: int | None = None,
    step_cost: float = 0.01,
) -> ShortlistRules:
    """Tabulate a game.

    Args:
        rankings: from `toolpick.rankings.rank`; the synthetic registry where None.
        reward: what STOP pays; `Bor()` where None.
        observation: the preset; `Rich()` where None.
        max_depth: D in 1..N; N where None.
        step_cost: what CONTINUE costs, 0 or more.

    Memory is Q * D * (4F + 16) bytes.

    Raises:
        InputError: a depth outside 1..N, a negative step cost, a reward or feature that is not finite.
    """
    rankings = _default_rankings() if rankings is None else rankings
    depth_cap = rankings.n_tools if max_depth is None else max_depth
    whole = isinstance(depth_cap, int | np.integer) and not isinstance(depth_cap, bool)
    if not (whole and 1 <= depth_cap <= rankings.n_tools):
        raise InputError(
            f"max_depth must be a whole number in 1..{rankings.n_tools} (the registry's size), got {depth_cap!r}"
        )
    if not 0 <= step_cost < np.inf:
        raise InputError(f"step_cost must be 0 or more, got {step_cost}")
    tokens = np.cumsum(rankings.tool_tokens[rankings.order[:, :depth_cap]], axis=1)
    relevant = rankings.relevant[:, :depth_cap]
    shortlist = Shortlist(relevant, rankings.n_relevant[:, None], rankings.n_tools, tokens)
    hits, reward = shortlist.hits, reward or Bor()
    pay = _pay(reward, shortlist, rankings)
    preset = observation or Rich()
    features = preset(rankings.scores, depth_cap)
    if isinstance(preset, NotebookLeaky):  # the negative control, and no other preset, is handed labels
        features = [*features, *preset.leak(hits)]
    space, observations = _tabulate(features, hits.shape)
    for array in (observations, pay, hits):
        array.flags.writeable = False
    names = tuple(feature.name for feature in features)
    return ShortlistRules(rankings, reward, float(step_cost), names, space, observations, pay, hits)


def _default_rankings() -> Rankings:
    from toolpick.datasets.synthetic import Synthetic
    from toolpick.scorers.given import Given

    return rank(Synthetic()(), Given())


def _pay(reward: Reward, shortlist: Shortlist, rankings: Rankings) -> NDArray[np.float64]:
    pay = np.array(np.broadcast_to(reward(shortlist), shortlist.relevant.shape), dtype=np.float64)
    if not np.isfinite(pay).all():
        query, rank_index = np.argwhere(~np.isfinite(pay))[0]
        raise InputError(
            f"reward {reward!r} pays {pay[query, rank_index]} at depth {rank_index + 1} of query "
            f"{rankings.query_ids[query]!r}; every pay must be finite"
        )
    return pay


def _tabulate(features: list[Feature], shape: tuple[int, int]) -> tuple[Box, NDArray[np.float32]]:
    table = np.empty((*shape, len(features)), dtype=np.float32)
    for column, feature in enumerate(features):
        values = np.broadcast_to(feature.values, shape)
        if not np.isfinite(values).all():
            raise InputError(f"observation feature {feature.name!r} is not finite everywhere")
        table[:, :, column] = values
    low = np.array([feature.low for feature in features], dtype=np.float32)
    high = np.array([feature.high for feature in features], dtype=np.float32)
    return Box(low, high, dtype=np.float32), np.clip(table, low, high)
