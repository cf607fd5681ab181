"""Agents: what they learn, against exact references; saving and loading; the evaluation they share."""

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from stable_baselines3 import DQN, PPO

from experiments.build import make_agent, make_task
from experiments.compose import composed
from toolpick import InputError
from toolpick.datasets.synthetic import Synthetic
from toolpick.observations.section4 import Section4
from toolpick.rankings import rank
from toolpick.rewards.f1 import F1
from toolpick.scorers.given import Given
from toolpick.shortlist import ShortlistEnv
from toolpick.shortlist_one_shot import ShortlistOneShotEnv
from toolpick.shortlist_rules import CONTINUE, STOP, make_rules
from toolpick.shortlist_vector import ShortlistVectorEnv
from toolpick_agents import ONE_SHOT, ValuePolicy
from toolpick_agents.dqn import EpisodeSchedule
from toolpick_agents.evaluation import evaluate
from toolpick_agents.fixed_depth import BestFixedDepth, FixedDepth
from toolpick_agents.oracle import Clairvoyant, backward_induction
from toolpick_agents.q_learning import QLearning, make_binning
from toolpick_agents.sb3 import Sb3

RANKINGS = rank(Synthetic(n_tools=12, n_queries=60, found_at={1: 0.4, 2: 0.6, 5: 0.8})(), Given())
RULES = make_rules(RANKINGS)
SILENT = {"monitor": lambda step, policy: None, "gamma": 1.0, "seed": 0}
TINY = {"policy": "MlpPolicy", "policy_kwargs": {"net_arch": [8]}}
TINY_DQN = partial(DQN, **TINY, learning_starts=32, buffer_size=500)


def test_the_best_fixed_depth_is_the_one_that_pays_most_on_average():
    policy = BestFixedDepth().train(RULES, **SILENT)
    pays = [
        evaluate(FixedDepth(k).train(RULES, **SILENT), ShortlistOneShotEnv(RULES))["pay"].mean() for k in range(1, 13)
    ]
    assert policy.depth == int(np.argmax(pays)) + 1


@pytest.mark.parametrize("depth", [0, 13, -1])
def test_a_fixed_depth_outside_the_registry_is_refused(depth):
    with pytest.raises(InputError, match=r"depth must be in 1\.\.12"):
        FixedDepth(depth).train(RULES, **SILENT)


def test_the_clairvoyant_stops_at_the_first_relevant_tool_and_no_policy_beats_it():
    rows = evaluate(Clairvoyant().train(RULES, **SILENT), ShortlistOneShotEnv(RULES))
    paid = rows[rows["first_relevant_rank"] < 12]  # at K = N a hit pays nothing, so it stops at once
    assert (paid["depth"] == paid["first_relevant_rank"]).all()
    assert (rows["pay"] == RULES.pay.max(axis=1)).all()
    with pytest.raises(TypeError, match="needs labels"):
        Clairvoyant().train(RULES, **SILENT)(np.zeros((1, 12)))


BINS = {"log_depth": [0.5, 0.9, 1.25, 1.5, 1.7, 1.87, 2.0, 2.14, 2.25, 2.35, 2.45], "next_over_top": 3}


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_q_learning_reaches_the_optimum_of_its_own_binned_mdp(gamma):
    """A purely exploring behaviour visits every pair alike, as backward induction weighs them."""
    agent = QLearning(bins=BINS, total_timesteps=400_000, num_envs=16, epsilon_end=1.0, continue_share=0.85, power=0.8)
    policy = agent.train(RULES, **SILENT | {"gamma": gamma})
    states = policy.binning(RULES.observations)
    exact, values = backward_induction(states, RULES, gamma, n_states=policy.binning.n_states)
    optimum = values[states[:, 0]].mean()
    learned = policy.values[states[:, 0]].max(axis=1).mean()
    assert learned == pytest.approx(optimum, rel=0.01)
    greedy = np.where(policy.values[:, CONTINUE] > policy.values[:, STOP], CONTINUE, STOP)
    # Value of the greedy policy in the exact binned MDP: fix its actions and solve for them.
    assert _value_of(greedy, states, gamma)[states[:, 0]].mean() == pytest.approx(optimum, rel=0.01)
    assert exact.shape == (policy.binning.n_states, 2)


def _value_of(greedy, states, gamma):
    value = np.zeros(len(greedy))
    for _ in range(200):
        ahead = np.concatenate([-RULES.step_cost + gamma * value[states[:, 1:]], RULES.pay[:, -1:]], axis=1)
        chosen = np.where(greedy[states] == STOP, RULES.pay, ahead)
        total, weight = np.zeros(len(greedy)), np.zeros(len(greedy))
        np.add.at(total, states, chosen)
        np.add.at(weight, states, 1.0)
        value = np.divide(total, weight, out=total, where=weight > 0)
    return value


def test_backward_induction_equals_a_brute_force_over_all_policies(three_tools):
    """Binned by depth alone, a policy is a depth: its best value is the best fixed depth's."""
    rules = make_rules(rank(three_tools, Given()), F1(), Section4(), step_cost=0.05)
    states = np.tile(np.arange(3), (2, 1))
    _, values = backward_induction(states, rules, 0.9, n_states=3)
    returns = [(0.9**k) * rules.pay[:, k].mean() - 0.05 * sum(0.9**j for j in range(k)) for k in range(3)]
    assert values[0] == pytest.approx(max(returns))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4), st.integers(1, 5))
@settings(max_examples=25)
def test_every_observation_falls_into_one_bin(cuts, quantiles):
    binning = make_binning(RULES, {"score_over_top": cuts, "gap_to_next": quantiles})
    states = binning(RULES.observations)
    assert states.shape == (60, 12)
    assert states.min() >= 0
    assert states.max() < binning.n_states <= (len(cuts) + 1) * quantiles
    assert (binning(RULES.observations[3, 4]) == states[3, 4]).all()


def test_binning_by_hand():
    binning = make_binning(RULES, {"log_depth": [0.5, 1.0]})
    assert binning(RULES.observations)[0, :5].tolist() == [0, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ({"depht": 3}, "unknown feature 'depht'"),
        ({"score": 0}, "needs 1 bin or more"),
        ({}, "at least one feature"),
    ],
)
def test_bad_bins_are_refused(bins, message):
    with pytest.raises(InputError, match=message):
        QLearning(bins=bins, total_timesteps=10).train(RULES, **SILENT)


def test_the_table_of_values_says_what_the_policy_does():
    policy = QLearning(bins=BINS, total_timesteps=5000).train(RULES, **SILENT)
    table = policy.table()
    assert list(table.columns[:2]) == ["log_depth", "next_over_top"]
    assert len(table) == policy.binning.n_states
    actions = np.where(table["action"] == "continue", CONTINUE, STOP)
    assert (policy(RULES.observations) == actions[policy.binning(RULES.observations)]).all()
    assert table[["visits_stop", "visits_continue"]].to_numpy().sum() >= 5000


AGENTS = {
    "fixed": FixedDepth(3),
    "best": BestFixedDepth(),
    "clairvoyant": Clairvoyant(),
    "q_learning": QLearning(bins=BINS, total_timesteps=2000),
    "dqn": Sb3(TINY_DQN, total_timesteps=300, num_envs=2),
    "ppo": Sb3(partial(PPO, **TINY, n_steps=16, batch_size=16), total_timesteps=200, num_envs=2),
    "one_shot": Sb3(TINY_DQN, total_timesteps=200, plays=ONE_SHOT),
}


@pytest.mark.parametrize("name", AGENTS)
def test_a_saved_agent_plays_as_before_without_training(name, tmp_path):
    agent = AGENTS[name]
    policy = agent.train(RULES, **SILENT)
    policy.save(tmp_path)
    env = ShortlistOneShotEnv(RULES) if agent.plays == ONE_SHOT else ShortlistVectorEnv(16, RULES)
    assert_frame_equal(evaluate(policy, env), evaluate(agent.load(tmp_path), env))


def test_training_leaves_no_folders_in_the_temporary_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    AGENTS["dqn"].train(RULES, **SILENT)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["q_learning", "dqn", "ppo"])
def test_the_same_seed_learns_the_same_and_another_does_not(name):
    curves = []
    for seed in (1, 1, 2):
        curves.append([])
        watch = lambda step, policy, curve=curves[-1]: curve.append(_decisions(policy))  # noqa: E731
        AGENTS[name].train(RULES, gamma=1.0, seed=seed, monitor=watch)
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]
    assert torch.get_num_threads() == 1 or name == "q_learning"


def _decisions(policy) -> list[int]:
    return policy(RULES.observations.reshape(-1, RULES.observations.shape[2])).tolist()


def test_the_best_weights_on_validation_are_handed_back():
    agent = Sb3(TINY_DQN, total_timesteps=400, keep_best=True)
    decisions, scores = {}, {}

    def monitor(step, policy):
        if step % 50:
            return None
        decisions[step] = _decisions(policy)
        scores[step] = -abs(step - 150)
        return scores[step]

    policy = agent.train(RULES, gamma=1.0, seed=0, monitor=monitor)
    assert _decisions(policy) == decisions[150]


def test_an_episode_schedule_runs_a_dqn_by_episodes():
    steps = EpisodeSchedule(100, {0.0: 0.5, 0.4: 0.1, 0.7: 0.03}, linear=False)
    assert [steps.epsilon_at(share) for share in (0, 0.39, 0.4, 0.69, 0.7, 1)] == [0.5, 0.5, 0.1, 0.1, 0.03, 0.03]
    line = EpisodeSchedule(100, {0.0: 1.0, 1.0: 0.05}, linear=True)
    assert line.epsilon_at(0.5) == pytest.approx(0.525)
    made = []

    def make():
        made.append(EpisodeSchedule(40, {0.0: 1.0, 0.5: 0.2}, linear=False, copy_every=10))
        return made[-1]

    never = partial(TINY_DQN, target_update_interval=10**9)
    policy = Sb3(never, total_timesteps=100_000, callbacks=(make,)).train(RULES, **SILENT)
    assert made[0].finished == 40
    model = policy.model
    assert isinstance(model, DQN)
    assert model.num_timesteps < 1000
    assert model.exploration_schedule(0.3) == 0.2
    untrained = DQN("MlpPolicy", ShortlistEnv(RULES), seed=0, policy_kwargs=model.policy_kwargs).q_net_target
    pairs = zip(untrained.parameters(), model.q_net_target.parameters(), strict=True)
    assert any((a != b).any() for a, b in pairs), "the target network was copied to"


RANDOM = {
    "function": lambda observations: (observations[:, 0] < 0.3).astype(int),
    "constant": lambda observations: 0,
}


@pytest.mark.parametrize("policy", RANDOM)
@pytest.mark.parametrize("num_envs", [1, 7, 60, 64])
def test_single_wrapped_and_batched_environments_give_the_same_rows(policy, num_envs):
    wrapped = gymnasium.make("toolpick/Shortlist-v0", rules=RULES)
    rows = evaluate(RANDOM[policy], wrapped, gamma=0.9)
    assert_frame_equal(rows, evaluate(RANDOM[policy], ShortlistVectorEnv(num_envs, RULES), gamma=0.9))
    assert rows["query_id"].tolist() == list(RANKINGS.query_ids)


def test_returns_by_hand():
    rows = evaluate(lambda observations: CONTINUE, ShortlistEnv(RULES, env_index=0), queries=[5, 2], gamma=0.5)
    assert rows["depth"].tolist() == [12, 12]
    assert rows["query_id"].tolist() == [RANKINGS.query_ids[5], RANKINGS.query_ids[2]]
    assert rows["return"].tolist() == pytest.approx([-0.01 * (1 - 0.5**11) / 0.5] * 2)
    fixed = evaluate(FixedDepth(3).train(RULES, **SILENT), ShortlistOneShotEnv(RULES))
    assert fixed["return"].tolist() == pytest.approx((fixed["pay"] - 0.02).tolist())


def test_an_sb3_model_is_evaluated_as_it_is():
    model = DQN("MlpPolicy", ShortlistEnv(RULES), seed=0)
    rows = evaluate(model, ShortlistVectorEnv(10, RULES))
    assert len(rows) == 60
    assert_frame_equal(rows, evaluate(model, ShortlistEnv(RULES)))


@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_a_depth_returns_the_same_named_at_once_or_reached_step_by_step(gamma):
    class ThreeSteps:
        def __call__(self, observations):
            return (observations[:, RULES.feature_names.index("log_depth")] < 1.0).astype(int)

    at_once = evaluate(FixedDepth(3), ShortlistOneShotEnv(RULES), gamma=gamma)
    stepwise = evaluate(ThreeSteps(), ShortlistVectorEnv(7, RULES), gamma=gamma)
    assert set(stepwise["depth"]) == {3}
    assert at_once["return"].tolist() == pytest.approx(stepwise["return"].tolist())


def test_a_policy_in_the_wrong_environment_is_refused():
    with pytest.raises(InputError, match=r"plays toolpick/ShortlistOneShot-v0"):
        evaluate(FixedDepth(2), ShortlistEnv(RULES))
    learned = QLearning(bins=BINS, total_timesteps=100).train(RULES, **SILENT)
    with pytest.raises(InputError, match=r"plays toolpick/Shortlist-v0"):
        evaluate(learned, ShortlistOneShotEnv(RULES))


@pytest.mark.parametrize("env", [ShortlistEnv(RULES), ShortlistVectorEnv(5, RULES)], ids=["single", "batched"])
def test_actions_of_the_wrong_shape_are_refused(env):
    for bad in (lambda observations: np.zeros((len(observations), 1)), lambda observations: [0] * 9):
        with pytest.raises(InputError, match="actions of shape"):
            evaluate(bad, env)


def test_an_episode_cut_short_is_refused():
    env = gymnasium.wrappers.TimeLimit(ShortlistEnv(RULES), 3)
    with pytest.raises(InputError, match="truncated before it stopped"):
        evaluate(lambda observations: CONTINUE, env)


def test_queries_may_be_chosen_by_a_mask():
    mask = np.arange(60) % 20 == 3
    chosen = evaluate(lambda observations: 0, ShortlistEnv(RULES), queries=mask)
    assert chosen["query_id"].tolist() == [RANKINGS.query_ids[i] for i in (3, 23, 43)]
    assert RANKINGS.subset(mask).query_ids == RANKINGS.subset([3, 23, 43]).query_ids
    for bad in ([0.5], [True], [-1], [[1]]):
        with pytest.raises(InputError, match="positions in"):
            RANKINGS.subset(bad)


def test_backward_induction_refuses_a_growing_discount():
    with pytest.raises(InputError, match="gamma must lie in"):
        backward_induction(np.zeros((60, 12), dtype=int), RULES, 1.1, n_states=1)


def test_other_environments_and_queries_are_refused():
    with pytest.raises(InputError, match="needs a toolpick shortlist environment"):
        evaluate(lambda observations: 0, gymnasium.make("CartPole-v1"))
    for env in (ShortlistEnv(RULES), ShortlistVectorEnv(3, RULES)):
        with pytest.raises(InputError, match=r"0\.\.59"):
            evaluate(lambda observations: 0, env, queries=[60])


@pytest.mark.parametrize(
    "overrides",
    [
        ["agent=q_learning", "agent.total_timesteps=2000"],
        ["agent=dqn", "agent.total_timesteps=1500"],
        ["agent=ppo", "agent.total_timesteps=512"],
        ["agent=hazard_stop"],
        ["agent=attn_cut", "agent.gradient_steps=3"],
    ],
    ids=lambda overrides: overrides[0],
)
def test_the_decision_is_the_argmax_of_the_values_that_explain_it(overrides):
    config = composed(["dataset=synthetic", "dataset.n_tools=30", "dataset.n_queries=60", "scorer=given", *overrides])
    config |= {"max_depth": 20}
    agent, task = make_agent(config), make_task(config)
    policy = agent.train(task.train, gamma=1.0, seed=0, monitor=lambda step, policy: None)
    assert isinstance(policy, ValuePolicy)
    one_shot = agent.plays == ONE_SHOT
    seen = (
        task.test.rankings.scores[:, :20]
        if one_shot
        else task.test.observations.reshape(-1, task.test.observations.shape[2])
    )
    values = policy.action_values(seen)
    assert values.shape == (len(seen), 20 if one_shot else 2)
    assert (values.argmax(axis=1) == policy(seen)).all()
    assert policy.unit in ("return", "log probability")
    if policy.unit == "log probability":
        assert np.exp(values).sum(axis=1) == pytest.approx(1, abs=1e-5)
