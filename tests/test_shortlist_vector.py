"""The batched environment replays the single one step for step."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from stable_baselines3.common.vec_env import DummyVecEnv

from toolpick import InputError
from toolpick.datasets.synthetic import Synthetic
from toolpick.rankings import rank
from toolpick.scorers.given import Given
from toolpick.shortlist import ShortlistEnv
from toolpick.shortlist_rules import make_rules
from toolpick.shortlist_vector import ShortlistVectorEnv
from toolpick_agents.vec_env import Sb3VecEnv

RULES = make_rules(rank(Synthetic(n_tools=9, n_relevant=2, n_queries=13, found_at={1: 0.4, 3: 0.7})(), Given()))


def singles(num_envs):
    makers = [lambda i=i: ShortlistEnv(RULES, env_index=i) for i in range(num_envs)]
    return SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)


@given(seed=st.integers(0, 2**70), num_envs=st.integers(1, 5), stops=st.floats(0, 1), more=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_batched_environment_replays_the_single_one(seed, num_envs, stops, more):
    batched, sync = ShortlistVectorEnv(num_envs, RULES), singles(num_envs)
    assert_same(batched.reset(seed=seed), sync.reset(seed=[seed] * num_envs))
    rng = np.random.default_rng(more)
    for _ in range(40):
        actions = (rng.random(num_envs) >= stops).astype(np.int64)
        assert_same(batched.step(actions), sync.step(actions))
    assert_same(batched.reset(), sync.reset())


def assert_same(ours, theirs):
    for mine, other in zip(ours[:-1], theirs[:-1], strict=True):
        assert_array_equal(mine, other)
        assert mine.dtype == other.dtype
    assert_same_info(ours[-1], theirs[-1])


def assert_same_info(mine, other):
    assert mine.keys() == other.keys()
    for key, value in other.items():
        if isinstance(value, dict):
            assert_same_info(mine[key], value)
        elif key == "final_obs":
            for i in np.flatnonzero(other["_final_obs"]):
                assert_array_equal(mine[key][i], value[i])
        else:
            assert_array_equal(mine[key], value)


def test_gymnasium_makes_the_batched_form():
    env = gymnasium.make_vec("toolpick/Shortlist-v0", num_envs=3, vectorization_mode="vector_entry_point")
    assert isinstance(env.unwrapped, ShortlistVectorEnv)
    observations, _ = env.reset(seed=1)
    assert observations in env.observation_space
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_labels_appear_on_terminal_steps_only():
    env = ShortlistVectorEnv(4, RULES)
    _, info = env.reset(seed=0)
    assert set(info) == {"query", "_query", "depth", "_depth"}
    *_, info = env.step(np.array([1, 1, 1, 1]))
    assert set(info) == {"query", "_query", "depth", "_depth"}
    *_, info = env.step(np.array([0, 1, 1, 0]))
    assert info["_final_info"].tolist() == [True, False, False, True]
    assert (info["final_info"]["n_relevant"] == [2, 0, 0, 2]).all()
    assert (info["final_info"]["first_relevant_rank"][1:3] == 0).all()


@pytest.mark.parametrize("actions", [[0, 1], [0, 1, 2], [0, 0, -1], [[0, 0, 0]]])
def test_bad_actions_are_refused(actions):
    env = ShortlistVectorEnv(3, RULES)
    env.reset(seed=0)
    with pytest.raises(InputError, match="actions must be 3 values"):
        env.step(np.array(actions))


def test_stepping_before_reset_is_refused():
    with pytest.raises(gymnasium.error.ResetNeeded):
        ShortlistVectorEnv(2, RULES).step(np.array([0, 0]))


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="num_envs"):
        ShortlistVectorEnv(0, RULES)
    with pytest.raises(InputError, match="does not render"):
        ShortlistVectorEnv(1, RULES, render_mode="ansi")
    with pytest.raises(InputError, match="not both"):
        ShortlistVectorEnv(1, RULES, step_cost=0.0)
    with pytest.raises(InputError, match=r"positions in 0\.\.12"):
        ShortlistVectorEnv(2, RULES).reset(options={"query": [0, 13]})


@given(seed=st.integers(0, 2**31 - 1), stops=st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_the_sb3_adapter_equals_sb3s_own_wrapper_over_single_environments(seed, stops):
    ours = Sb3VecEnv(ShortlistVectorEnv(3, RULES))
    theirs = DummyVecEnv([lambda i=i: ShortlistEnv(RULES, env_index=i) for i in range(3)])
    ours.seed(seed)
    theirs._seeds = [seed] * 3  # DummyVecEnv would add the index, which episode_query does itself
    assert_array_equal(ours.reset(), theirs.reset())
    assert ours.reset_infos == theirs.reset_infos
    rng = np.random.default_rng(seed)
    for _ in range(25):
        actions = (rng.random(3) >= stops).astype(np.int64)
        (obs, rewards, dones, infos), other = ours.step(actions), theirs.step(actions)
        for mine, its in zip((obs, rewards, dones), other[:3], strict=True):
            assert_array_equal(mine, its)
            assert np.asarray(mine).dtype == np.asarray(its).dtype
        for i in np.flatnonzero(dones):
            assert_array_equal(infos[i].pop("terminal_observation"), other[3][i].pop("terminal_observation"))
            assert infos[i] == other[3][i]


def test_the_sb3_adapter_needs_same_step_autoreset():
    with pytest.raises(InputError, match="SAME_STEP"):
        Sb3VecEnv(SyncVectorEnv([lambda: ShortlistEnv(RULES)]))


def test_the_sb3_adapter_shares_attributes():
    env = Sb3VecEnv(ShortlistVectorEnv(2, RULES))
    assert env.get_attr("rules") == [RULES, RULES]
    env.set_attr("mark", 3)
    assert env.get_attr("mark", indices=1) == [3]
    with pytest.raises(InputError, match="set them for all"):
        env.set_attr("mark", 4, indices=0)
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False, False]
    assert env.seed(5) == [5, 5]
    env.close()
