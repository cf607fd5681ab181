"""The single environments: checkers, hand-worked episodes, observations and rewards."""

import copy
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3 import DQN
from stable_baselines3.common.env_checker import check_env as sb3_check
from stable_baselines3.common.env_util import make_vec_env

from toolpick import InputError
from toolpick.episodes import episode_query
from toolpick.observations.notebook import Notebook
from toolpick.observations.notebook_leaky import NotebookLeaky
from toolpick.observations.rich import Rich
from toolpick.observations.section4 import Section4
from toolpick.rankings import rank
from toolpick.rewards import Shortlist
from toolpick.rewards.bor import Bor
from toolpick.rewards.f1 import F1
from toolpick.rewards.f1_scaled import F1Scaled
from toolpick.rewards.hit_minus_cost import HitMinusCost
from toolpick.scorers.given import Given
from toolpick.shortlist import CONTINUE, STOP, ShortlistEnv
from toolpick.shortlist_one_shot import ShortlistOneShotEnv
from toolpick.shortlist_rules import make_rules

IDS = ("toolpick/Shortlist-v0", "toolpick/ShortlistOneShot-v0")
PRESETS = (Section4(), Notebook(), Rich(), NotebookLeaky())


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_both_environment_checkers_pass_without_a_warning(env_id, render_mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gymnasium_check(gymnasium.make(env_id, render_mode=render_mode).unwrapped)
        sb3_check(gymnasium.make(env_id, render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_passes_the_checkers_on_real_data(preset, bfcl_rankings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(IDS[0], rankings=bfcl_rankings, observation=preset, max_depth=100)
        gymnasium_check(env.unwrapped)
        sb3_check(env.unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_made_bare_it_plays_a_synthetic_registry(env_id):
    env = gymnasium.make(env_id)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(STOP)
    assert (terminated, truncated) == (True, False)
    assert info["n_tools"] == 120
    assert reward == info["pay"]


def test_an_episode_by_hand(three_tools):
    """q1: mul and sub are relevant, ranked 3rd and 2nd; P_rand(3, 2, 1) = 2/3, at K = 2 it is 1."""
    env = ShortlistEnv(rankings=rank(three_tools, Given()), step_cost=0.25)
    _, info = env.reset(options={"query": 1})
    assert info == {"query": 1, "depth": 1}
    _, reward, terminated, _, info = env.step(CONTINUE)
    assert (reward, terminated, info) == (-0.25, False, {"query": 1, "depth": 2})
    _, reward, terminated, _, info = env.step(STOP)
    assert terminated
    assert info == {
        "query": 1, "depth": 2, "hits": 1, "n_relevant": 2, "n_tools": 3, "first_relevant_rank": 2, "pay": reward,
    }  # fmt: skip
    assert reward == 0.0  # at K = 2 any two of three tools hit: chance alone, no bits


def test_continue_at_the_deepest_rank_is_a_forced_stop(three_tools):
    env = ShortlistEnv(rankings=rank(three_tools, Given()), max_depth=2, reward=F1(), step_cost=0.25)
    env.reset(options={"query": 0})
    env.step(CONTINUE)
    _, reward, terminated, truncated, info = env.step(CONTINUE)
    assert (terminated, truncated) == (True, False)
    assert reward == pytest.approx(2 / 3)
    assert info["depth"] == 2


def test_pays_by_hand(three_tools):
    """Rows are queries, columns depths; q0: R=1 at rank 1; q1: R=2 at ranks 2 and 3."""
    rankings = rank(three_tools, Given())
    bits = np.log2([3, 3 / 2, 1])
    assert make_rules(rankings, Bor()).pay == pytest.approx(np.array([bits, [0, 0, 0]]))
    f1 = np.array([[1, 2 / 3, 1 / 2], [0, 1 / 2, 4 / 5]])
    assert make_rules(rankings, F1()).pay == pytest.approx(f1)
    assert make_rules(rankings, F1Scaled()).pay == pytest.approx(f1 * np.log2(3))
    expected = np.array([[0.9, 0.8, 0.7], [-0.1, 0.8, 0.7]])
    assert make_rules(rankings, HitMinusCost(0.1)).pay == pytest.approx(expected)


def test_a_plain_function_serves_as_a_reward(three_tools):
    rules = make_rules(rank(three_tools, Given()), lambda shortlist: shortlist.hit / shortlist.depth)
    assert rules.pay[0].tolist() == [1.0, 0.5, pytest.approx(1 / 3)]


def test_observations_by_hand(three_tools):
    """q0 has scores 3, 2, 1 by rank: mean 2, deviation sqrt(2/3)."""
    rankings = rank(three_tools, Given())
    std = np.sqrt(2 / 3)
    notebook = [2 / 3, np.log2(3) / 2, 2, 1, 1, 0, 2 / 3]
    rich = [*notebook, 3, np.log(2), 1, 1 / 3, 1 / 2, 1 / 2, 1 / 3]
    section4 = [3, 1, std, 2, 3, np.log2(3 / 2)]
    leaky = [*notebook[:-1], 1]
    for preset, expected in zip(PRESETS, (section4, notebook, rich, leaky), strict=True):
        rules = make_rules(rankings, observation=preset)
        assert rules.observations[0, 1] == pytest.approx(np.array(expected, dtype=np.float32), abs=1e-6)
        assert len(rules.feature_names) == len(expected) == rules.observation_space.shape[0]


def test_the_last_rank_has_no_gap_behind_it(three_tools):
    rules = make_rules(rank(three_tools, Given()), observation=Notebook())
    last = dict(zip(rules.feature_names, rules.observations[0, 2], strict=True))
    assert last["next_score"] == last["score"] == 1.0
    assert last["gap_to_next"] == 0.0


@pytest.mark.parametrize("preset", PRESETS)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12), st.data())
@settings(max_examples=40)
def test_any_finite_scores_give_finite_observations_within_bounds(preset, scores, data):
    ranked = np.sort(np.array([scores]))[:, ::-1]
    depth = data.draw(st.integers(1, len(scores)))
    features = preset(ranked, depth)
    for feature in features:
        values = np.broadcast_to(feature.values, (1, depth))
        assert np.isfinite([feature.low, feature.high]).all()
        assert np.isfinite(values).all()
        assert (values >= feature.low - 1e-6).all()
        assert (values <= feature.high + 1e-6).all()


def test_a_one_shot_episode_returns_what_the_steps_would(small_rankings):
    rules = make_rules(small_rankings, step_cost=0.125)
    for query in range(small_rankings.n_queries):
        for depth in (1, 2, 7, 24):
            stepwise = ShortlistEnv(rules)
            stepwise.reset(options={"query": query})
            total = sum(stepwise.step(CONTINUE)[1] for _ in range(depth - 1))
            _, reward, over, _, info = stepwise.step(STOP)
            total += reward
            one_shot = ShortlistOneShotEnv(rules)
            scores, _ = one_shot.reset(options={"query": query})
            assert scores.tolist() == small_rankings.scores[query].astype(np.float32).tolist()
            _, reward, ended, _, facts = one_shot.step(depth - 1)
            assert over
            assert ended
            assert facts == info
            assert reward == pytest.approx(total)


def test_rules_do_not_change_and_are_shared_by_copies(small_rankings):
    rules = make_rules(small_rankings)
    assert copy.deepcopy(rules) is rules
    before = rules.observations.tobytes()
    env = ShortlistEnv(rules)
    observation, _ = env.reset(seed=0)
    observation[:] = -5.0
    assert rules.observations.tobytes() == before
    with pytest.raises(ValueError, match="read-only"):
        rules.pay[0, 0] = 1.0


def test_the_drawing_shows_list_cut_and_pay_but_no_label_before_the_end(three_tools):
    env = ShortlistEnv(rankings=rank(three_tools, Given()), render_mode="ansi")
    env.reset(options={"query": 0})
    running = env.render() or ""
    assert "add it" in running
    assert running.index("add\n") < running.index("---- cut ----") < running.index("mul")
    assert "STOP here pays 1.585" in running
    assert "*" not in running
    env.step(STOP)
    ended = env.render() or ""
    assert "stopped: 1 of 1 relevant (*) shown, paid 1.585" in ended
    assert "*    1" in ended


def test_episode_queries_are_uniform_and_differ_between_environments_and_seeds():
    drawn = episode_query(7, np.arange(200)[:, None], np.arange(500), 10)
    counts = np.bincount(drawn.ravel(), minlength=10)
    assert (abs(counts - 10_000) < 4 * np.sqrt(9000)).all()
    for other in (episode_query(8, np.arange(200)[:, None], np.arange(500), 10), np.roll(drawn, 1, axis=0)):
        assert abs((drawn == other).mean() - 0.1) < 0.005
    assert episode_query(-3, 0, 0, 5) == episode_query(-3 + 2**64, 0, 0, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_depth": 0}, "max_depth must be a whole number in 1..24"),
        ({"max_depth": 25}, "max_depth must be a whole number in 1..24"),
        ({"max_depth": 2.5}, "max_depth must be a whole number"),
        ({"max_depth": True}, "max_depth must be a whole number"),
        ({"step_cost": -0.1}, "step_cost must be 0 or more"),
        ({"step_cost": float("nan")}, "step_cost must be 0 or more"),
        ({"reward": lambda s: s.hit / (s.depth - 1)}, "pays .* at depth 1 of query 'synthetic_"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_settings_are_refused(small_rankings, arguments, message):
    with pytest.raises(InputError, match=message):
        ShortlistEnv(rankings=small_rankings, **arguments)


def test_rules_and_settings_together_are_refused(small_rankings):
    with pytest.raises(InputError, match="not both"):
        ShortlistEnv(make_rules(small_rankings), step_cost=0.1)


@pytest.mark.parametrize("env_class", [ShortlistEnv, ShortlistOneShotEnv])
def test_bad_moves_are_refused(env_class, small_rankings):
    env = env_class(rankings=small_rankings)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(STOP)
    with pytest.raises(InputError, match=r"'query' must be in 0\.\.39"):
        env.reset(options={"query": 40})
    env.reset(seed=0)
    for action in (-1, 24, 0.5):
        with pytest.raises(InputError, match="action must be"):
            env.step(action)
    env.step(STOP)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(STOP)


def test_a_negative_price_is_refused():
    with pytest.raises(InputError, match="cost must be 0 or more"):
        HitMinusCost(-1.0)


def test_the_chance_of_a_shortlist_is_worked_out_from_its_labels_count(small_rankings):
    shortlist = Shortlist(np.array([[True, False]]), np.array([[2]]), 4, np.zeros((1, 2)))
    assert shortlist.hits.tolist() == [[1, 1]]
    assert shortlist.depth.tolist() == [[1, 2]]
    assert shortlist.p_rand.tolist() == [[pytest.approx(1 / 2), pytest.approx(5 / 6)]]


@pytest.mark.parametrize("env_id", IDS)
def test_stable_baselines3_makes_the_environment_by_its_id(env_id):
    """It asks for a render mode that there is not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert make_vec_env(env_id, 2, seed=0).reset().shape[0] == 2  # pyright: ignore[reportAttributeAccessIssue]
        model = DQN("MlpPolicy", env_id, policy_kwargs={"net_arch": [4]}, buffer_size=10)
    assert model.action_space == gymnasium.make(env_id).action_space


def test_nothing_is_drawn_before_the_first_reset(small_rankings):
    env = ShortlistEnv(rankings=small_rankings, render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.render()


@pytest.mark.parametrize("n", [3, 7, 49])
def test_equal_scores_are_standardised_to_zero(n):
    features = {feature.name: feature.values for feature in Notebook()(np.full((1, n), 0.1), n)}
    assert (features["score_standardised"] == 0).all()


def test_the_mean_of_the_first_five_is_of_five():
    scores = np.array([[10.0, 8.0, 6.0, 4.0, 2.0, 1.0, 0.5]])
    features = {feature.name: feature.values for feature in Rich()(scores, 7)}
    assert features["score_over_first_five"][0] == pytest.approx(scores[0] / 6.0)


def test_a_preset_of_ones_own_is_never_handed_labels(small_rankings):
    class Greedy(Notebook):
        def leak(self, hits):
            raise AssertionError("labels were handed out")

    assert len(make_rules(small_rankings, observation=Greedy()).feature_names) == 7
