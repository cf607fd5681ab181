"""From a configuration to the objects it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv
from hydra.errors import InstantiationException
from hydra.utils import instantiate

from experiments.compose import Config
from toolpick.datasets import Dataset
from toolpick.errors import InputError
from toolpick.rankings import Rankings, rank
from toolpick.shortlist_one_shot import ShortlistOneShotEnv
from toolpick.shortlist_rules import ShortlistRules, make_rules
from toolpick.shortlist_vector import ShortlistVectorEnv
from toolpick.splits import Split
from toolpick_agents import ONE_SHOT, Agent

_BATCH = 1024


@dataclass(frozen=True)
class Task:
    """What a run works on.

    Attributes:
        dataset: registry and labelled queries.
        split: positions of the training, validation and held-out queries.
        train: the game on the training queries; likewise `validation` and `test`.
    """

    dataset: Dataset
    split: Split
    train: ShortlistRules
    validation: ShortlistRules
    test: ShortlistRules


def make(config: Config, key: str) -> Any:
    """The object a configuration group names.

    Raises:
        InputError: an unknown setting or a value that the class refuses.
    """
    try:
        return instantiate(config[key], _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__
        raise InputError(f"configuration, {key}={config['names'].get(key)}: {cause or error}") from error


def make_agent(config: Config) -> Agent:
    """The agent of a configuration."""
    return make(config, "agent")


def make_task(config: Config, dataset: Dataset | None = None) -> Task:
    """Load, rank, split and tabulate; a dataset that is loaded already is not loaded again."""
    dataset = make(config, "dataset")() if dataset is None else dataset
    assert isinstance(dataset, Dataset)
    rankings = rank(dataset, make(config, "scorer"))
    split: Split = make(config, "split")(rankings.n_queries, config["seed"])
    parts = (split.train, split.validation, split.test)
    rules = [_rules(config, rankings.subset(part)) for part in parts]
    return Task(dataset, split, *rules)


def playing_env(rules: ShortlistRules, plays: str) -> gymnasium.Env | VectorEnv:
    """The environment in which an agent that `plays` this id is evaluated."""
    if plays == ONE_SHOT:
        return ShortlistOneShotEnv(rules)
    return ShortlistVectorEnv(min(_BATCH, rules.n_queries), rules)


def _rules(config: Config, rankings: Rankings) -> ShortlistRules:
    return make_rules(
        rankings,
        reward=make(config, "reward"),
        observation=make(config, "observation"),
        max_depth=config["max_depth"],
        step_cost=config["step_cost"],
    )
