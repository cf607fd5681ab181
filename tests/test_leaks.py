"""The right answer stays out of observations and decisions; and the test that says so can fail."""

from functools import partial

import numpy as np
import pytest
from stable_baselines3 import DQN

from toolpick.datasets.synthetic import Synthetic
from toolpick.observations.notebook import Notebook
from toolpick.observations.notebook_leaky import NotebookLeaky
from toolpick.observations.rich import Rich
from toolpick.observations.section4 import Section4
from toolpick.rankings import Rankings, rank
from toolpick.scorers.given import Given
from toolpick.shortlist import ShortlistEnv
from toolpick.shortlist_one_shot import ShortlistOneShotEnv
from toolpick.shortlist_rules import make_rules
from toolpick.shortlist_vector import ShortlistVectorEnv
from toolpick_agents import ONE_SHOT
from toolpick_agents.evaluation import evaluate
from toolpick_agents.fixed_depth import BestFixedDepth
from toolpick_agents.q_learning import QLearning
from toolpick_agents.sb3 import Sb3

RANKINGS = rank(Synthetic(n_tools=20, n_queries=60, found_at={1: 0.4, 2: 0.6, 5: 0.8})(), Given())
TRAIN, TEST = RANKINGS.subset(range(40)), RANKINGS.subset(range(40, 60))
SMALL_DQN = partial(
    DQN,
    policy="MlpPolicy",
    policy_kwargs={"net_arch": [16]},
    learning_rate=3e-3,
    learning_starts=50,
    buffer_size=2000,
    train_freq=1,
    tau=0.05,
    target_update_interval=1,
)

AGENTS = {
    "q_learning": lambda preset: QLearning(
        bins={"found": [0.5], "depth_share": 5} if isinstance(preset, NotebookLeaky) else {_last(preset): 4},
        total_timesteps=3000,
    ),
    "dqn": lambda preset: Sb3(SMALL_DQN, total_timesteps=2500),
}


def _last(preset) -> str:
    return make_rules(TRAIN, observation=preset).feature_names[-1]


def permuted(rankings: Rankings, seed: int) -> Rankings:
    """The same lists with other tools relevant."""
    labels = np.random.default_rng(seed).permuted(rankings.relevant, axis=1)
    assert (labels != rankings.relevant).any()
    texts = (rankings.tool_names, rankings.query_ids, rankings.query_texts)
    return Rankings(*texts, rankings.order, rankings.scores, labels, rankings.tool_tokens)


def observations_and_decisions(preset, agent) -> list:
    """What a trained agent sees and does on the held-out queries under three assignments of labels."""
    policy = agent.train(make_rules(TRAIN, observation=preset), gamma=1.0, seed=0, monitor=lambda step, policy: None)
    seen = []
    for labels in (TEST, permuted(TEST, 1), permuted(TEST, 2)):
        rules = make_rules(labels, observation=preset)
        one_shot = getattr(agent, "plays", "") == ONE_SHOT
        env = ShortlistOneShotEnv(rules) if one_shot else ShortlistVectorEnv(rules.n_queries, rules)
        seen.append((rules.observations.tobytes(), evaluate(policy, env)["depth"].tolist()))
    return seen


def assert_blind(outcomes) -> None:
    first, *others = outcomes
    assert all(other == first for other in others)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("preset", [Section4(), Notebook(), Rich()], ids=lambda preset: type(preset).__name__)
def test_permuting_the_relevant_tools_changes_no_observation_and_no_decision(preset, agent):
    assert_blind(observations_and_decisions(preset, AGENTS[agent](preset)))


def test_nor_does_it_move_a_fixed_depth_chosen_on_other_queries():
    assert_blind(observations_and_decisions(Rich(), BestFixedDepth()))


@pytest.mark.parametrize("agent", AGENTS)
def test_the_same_test_fails_on_the_leaky_preset(agent):
    outcomes = observations_and_decisions(NotebookLeaky(), AGENTS[agent](NotebookLeaky()))
    with pytest.raises(AssertionError):
        assert_blind(outcomes)
    with pytest.raises(AssertionError):  # the decisions themselves follow the leak, not only the observations
        assert_blind([depths for _, depths in outcomes])


def test_a_wrapped_environment_shows_labels_at_the_end_only():
    env = ShortlistEnv(make_rules(TEST))
    _, info = env.reset(seed=0)
    assert set(info) == {"query", "depth"}
    assert set(env.step(1)[-1]) == {"query", "depth"}
    assert {"hits", "first_relevant_rank"} <= set(env.step(0)[-1])
