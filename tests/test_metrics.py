"""Exact values by hand, and every metric against an independent implementation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from toolpick import metrics


def brute_force(n: int, r: int, k: int, m: int) -> Fraction:
    """Count the draws of k out of n tools, of which the first r are relevant."""
    draws = list(itertools.combinations(range(n), k))
    return Fraction(sum(sum(tool < r for tool in draw) >= m for draw in draws), len(draws))


def test_p_rand_equals_brute_force_enumeration_on_all_small_registries():
    for n in range(1, 9):
        for r, k in itertools.product(range(n + 1), range(n + 1)):
            for m in range(1, 4):
                found = float(metrics.p_rand(n, r, k, at_least=m))
                assert found == pytest.approx(float(brute_force(n, r, k, m)), abs=1e-12)


@given(st.integers(1, 3000), st.data())
def test_p_rand_equals_the_closed_form(n, data):
    r, k = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    exact = 1 - Fraction(math.comb(n - r, k), math.comb(n, k))
    assert float(metrics.p_rand(n, r, k)) == pytest.approx(float(exact), rel=1e-9, abs=1e-13)


@given(st.integers(1, 500), st.data())
def test_with_one_relevant_tool_p_rand_is_depth_over_size(n, data):
    k = data.draw(st.integers(0, n))
    assert float(metrics.p_rand(n, 1, k)) == pytest.approx(k / n, rel=1e-12)


def test_p_rand_broadcasts_and_handles_its_ends():
    table = metrics.p_rand(10, [[1], [4]], [0, 3, 7, 10])
    assert table.shape == (2, 4)
    assert table[:, 0].tolist() == [0.0, 0.0]  # K = 0
    assert table[1, 2] == 1.0  # K > N - R
    assert table[0, 3] == 1.0
    assert metrics.p_rand(10, 0, 5) == 0.0  # R = 0


@pytest.mark.parametrize(
    ("n", "r", "k", "expected"),
    [(400_000, 20_000, 10, 0.401), (400_000, 20_000, 100, 0.994), (10_000, 10, 20, 0.01983)],
)
def test_p_rand_gives_the_published_values(n, r, k, expected):
    assert float(metrics.p_rand(n, r, k)) == pytest.approx(expected, abs=5e-4)


def test_bor_gives_the_published_values():
    chance = metrics.p_rand(10_000, 10, 20)
    assert metrics.bor_bits([1, 1, 1, 0, 0], np.full(5, chance)) == pytest.approx(4.92, abs=0.005)
    assert metrics.bor_ceiling(chance) == pytest.approx(5.66, abs=0.005)
    ceilings = [metrics.bor_ceiling(metrics.p_rand(58, 4, k)) for k in (5, 20, 58)]
    assert ceilings == pytest.approx([1.69, 0.28, 0.0], abs=0.005)


def test_bor_is_the_log_of_a_ratio_of_means_not_the_mean_of_logs():
    assert metrics.bor_bits([1, 0], [0.25, 0.75]) == pytest.approx(math.log2(0.5 / 0.5))
    assert metrics.bor_reward([1, 0], [0.25, 0.75]).mean() == pytest.approx(1.0)


def test_reward_and_metric_can_rank_two_policies_in_opposite_orders():
    """BFCL, record B's fixed depths: found .600 at K=1 and .783 at K=3, N=370."""
    reward = {k: found * math.log2(370 / k) for k, found in ((1, 0.600), (3, 0.783))}
    bits = {k: math.log2(found / (k / 370)) for k, found in ((1, 0.600), (3, 0.783))}
    assert reward[1] == pytest.approx(5.12, abs=0.005)
    assert reward[3] == pytest.approx(5.44, abs=0.005)
    assert bits[1] == pytest.approx(7.79, abs=0.005)
    assert bits[3] == pytest.approx(6.59, abs=0.005)


def test_bor_edges():
    assert metrics.bor_bits([0, 0], [0.1, 0.1]) == -math.inf
    assert math.isnan(metrics.bor_bits([0], [0.0]))
    assert metrics.bor_bits([1], [0.0]) == math.inf
    assert metrics.bor_ceiling([0.0]) == math.inf
    assert metrics.bor_ceiling([1.0]) == 0.0
    assert metrics.bor_reward([True, False], [1.0, 0.0]).tolist() == [0.0, 0.0]


@given(st.integers(2, 200), st.integers(1, 100))
def test_doubling_the_depth_at_flat_success_costs_one_bit(n_half, k):
    n, k = 2 * n_half, min(k, n_half)
    hit = [1, 1, 0]
    shallow = metrics.bor_bits(hit, metrics.p_rand(n, 1, [k] * 3))
    deep = metrics.bor_bits(hit, metrics.p_rand(n, 1, [2 * k] * 3))
    assert shallow - deep == pytest.approx(1.0)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 50)), min_size=1))
def test_bor_never_exceeds_its_ceiling(episodes):
    hit, depth = zip(*episodes, strict=True)
    chance = metrics.p_rand(50, 1, depth)
    assert metrics.bor_bits(hit, chance) <= metrics.bor_ceiling(chance) + 1e-12


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_f1_is_the_harmonic_mean_of_precision_and_recall(k, r, data):
    hits = data.draw(st.integers(1, min(k, r)))
    precision, recall = hits / k, hits / r
    assert float(metrics.f1(hits, r, k)) == pytest.approx(2 * precision * recall / (precision + recall))


def test_f1_with_one_relevant_tool_and_at_its_end():
    assert metrics.f1([1, 0, 1], 1, [1, 1, 3]).tolist() == [1.0, 0.0, 0.5]
    assert float(metrics.f1(0, 0, 0)) == 0.0


def test_expected_relevant():
    assert metrics.expected_relevant(10, [1, 5], 4).tolist() == [0.4, 2.0]


def test_difficulty_buckets():
    buckets = metrics.difficulty([1, 2, 5, 6, 20, 21, 5000]).tolist()
    assert buckets == ["easy", "medium", "medium", "hard", "hard", "very_hard", "very_hard"]
    with pytest.raises(ValueError, match="1-based"):
        metrics.difficulty([0])


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 370)), min_size=1, max_size=50))
def test_aggregates_equal_plain_python(episodes):
    hit, depth = zip(*episodes, strict=True)
    assert metrics.coverage(hit) == pytest.approx(sum(hit) / len(hit))
    assert metrics.mean_depth(depth) == pytest.approx(sum(depth) / len(depth))
    chance = [hypergeom.sf(0, 370, 1, k) for k in depth]
    expected = [math.log2(370 / k) if h else 0.0 for h, k in episodes]
    assert metrics.bor_reward(hit, chance).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((0, 0, 0), {}), ((5, 6, 1), {}), ((5, 1, 6), {}), ((5, -1, 1), {}), ((5, 1, -1), {}), ((5, 1.5, 1), {}),
     ((5, 1, 1), {"at_least": 0})],
)  # fmt: skip
def test_p_rand_refuses_what_has_no_meaning(arguments, options):
    with pytest.raises(ValueError, match=r"must be|needs"):
        metrics.p_rand(*arguments, **options)


def test_averages_over_no_query_are_refused():
    for mean in (metrics.coverage, metrics.mean_depth, metrics.bor_ceiling):
        with pytest.raises(ValueError, match="no query"):
            mean([])
