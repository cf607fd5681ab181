"""Playing queries greedily and writing down what happened: one row a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.rankings import query_positions
from toolpick.shortlist_one_shot import ShortlistOneShotEnv
from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import ONE_SHOT, STEPWISE

COLUMNS = [
    "query_id",
    "depth",
    "hits",
    "n_relevant",
    "n_tools",
    "first_relevant_rank",
    "pay",
    "return",
]


def evaluate(
    policy: Any,
    env: gymnasium.Env | VectorEnv,
    *,
    queries: Sequence[int] | None = None,
    gamma: float = 1.0,
) -> pd.DataFrame:
    """Play each query once, without exploration.

    Args:
        policy: a Stable-Baselines3 model (its `predict` is called with deterministic=True), or a function from
            observations (n, F) to actions (n,) or to one action for all. A policy with a method
            `oracle_actions(rules, queries)` is asked that instead, and knows the labels.
        env: `toolpick/Shortlist-v0` or its one-shot sibling, wrapped or not; or the batched Shortlist-v0,
            which gives the same rows faster.
        queries: positions in the environment's rankings, or a mask; all where None.
        gamma: discount of the column `return`.

    Returns:
        A frame with a row a query, in order: `COLUMNS`. `depth` is K, `pay` what the stop paid, `return` the
        discounted sum of rewards, step costs included, of reaching that depth step by step; the rest are raw facts
        to recompute any metric from.

    Raises:
        InputError: an environment that is not a shortlist or not the one the policy plays, a query outside it,
            actions of the wrong shape, or an episode that is truncated before it stops.
    """
    rules = getattr(env.unwrapped, "rules", None)
    if not isinstance(rules, ShortlistRules):
        raise InputError(f"evaluate needs a toolpick shortlist environment, got {env}")
    one_shot = isinstance(env.unwrapped, ShortlistOneShotEnv)
    plays = getattr(policy, "plays", None)
    if plays not in (None, ONE_SHOT if one_shot else STEPWISE):
        raise InputError(f"the policy plays {plays}, whose actions mean something else in {env}")
    chosen = query_positions(np.arange(rules.n_queries) if queries is None else queries, rules.n_queries)
    decide = _decider(policy, rules)
    if isinstance(env, VectorEnv):
        depths, returns = _play_batched(decide, env, chosen, gamma)
    else:
        depths, returns = _play_single(decide, env, chosen, gamma)
    facts = rules.facts(chosen, depths)
    if one_shot:  # its reward is that of K-1 times CONTINUE and a STOP, undiscounted
        paid = returns + rules.step_cost * (depths - 1)
        cost = rules.step_cost * ((depths - 1) if gamma == 1 else (1 - gamma ** (depths - 1)) / (1 - gamma))
        returns = gamma ** (depths - 1) * paid - cost
    ids = [rules.rankings.query_ids[query] for query in chosen]
    return pd.DataFrame({"query_id": ids, "depth": depths, **facts, "return": returns})[COLUMNS]


Decider = Callable[[NDArray, NDArray], NDArray]  # observations (n, F), query positions (n,) -> actions (n,)


def _decider(policy: Any, rules: ShortlistRules) -> Decider:
    if hasattr(policy, "oracle_actions"):
        return lambda _, queries: policy.oracle_actions(rules, queries)
    if hasattr(policy, "predict"):
        return lambda observations, _: policy.predict(observations, deterministic=True)[0]
    return lambda observations, _: _one_each(policy(observations), len(observations))


def _one_each(actions: Any, n: int) -> NDArray:
    array = np.asarray(actions)
    if array.shape not in ((), (n,)):
        raise InputError(f"the policy returned actions of shape {array.shape} for {n} observations, expected ({n},)")
    return np.broadcast_to(array, n)


def _refuse_truncated(truncated: bool) -> bool:
    if truncated:
        raise InputError("an episode was truncated before it stopped: evaluate without a time limit, or set max_depth")
    return False


def _play_single(
    decide: Decider, env: gymnasium.Env, queries: NDArray[np.int64], gamma: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    depths, returns = np.zeros(len(queries), dtype=np.int64), np.zeros(len(queries))
    for row, query in enumerate(queries):
        observation, info = env.reset(options={"query": int(query)})
        over, discount = False, 1.0
        while not over:
            action = decide(np.asarray(observation)[None], queries[row : row + 1])[0]
            observation, reward, terminated, truncated, info = env.step(action)
            over = _refuse_truncated(truncated and not terminated) or terminated
            returns[row] += discount * float(reward)
            discount *= gamma
        depths[row] = info["depth"]
    return depths, returns


def _play_batched(
    decide: Decider, env: VectorEnv, queries: NDArray[np.int64], gamma: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    depths, returns = np.zeros(len(queries), dtype=np.int64), np.zeros(len(queries))
    for start in range(0, len(queries), env.num_envs):
        rows = np.arange(start, min(start + env.num_envs, len(queries)))
        filler = np.full(env.num_envs - len(rows), queries[0])  # played and ignored
        batch = np.concatenate([queries[rows], filler])
        observations, _ = env.reset(options={"query": batch})
        playing, discount = np.arange(env.num_envs) < len(rows), 1.0
        while playing.any():
            actions = np.asarray(decide(observations, batch))
            observations, rewards, terminated, truncated, info = env.step(actions)
            returns[rows] += discount * np.where(playing, rewards, 0.0)[: len(rows)]
            discount *= gamma
            _refuse_truncated(bool((playing & truncated & ~terminated).any()))
            ended = playing & terminated
            if ended.any():
                slots = np.flatnonzero(ended)
                depths[rows[slots]] = info["final_info"]["depth"][slots]
                playing &= ~ended
    return depths, returns
