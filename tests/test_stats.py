"""Intervals: exact where they can be, and right on data whose answer is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu, norm, t

from experiments.stats import (
    interquartile_mean,
    mean_interval,
    paired_bootstrap,
    probability_of_improvement,
    rank_reversals,
    wilson_interval,
)
from toolpick import InputError


def test_a_mean_interval_equals_scipys():
    values = [1.0, 2.0, 4.0, 5.0]
    low, high = t.interval(0.95, 3, loc=3.0, scale=np.std(values, ddof=1) / 2)
    assert tuple(mean_interval(values)) == pytest.approx((3.0, low, high))


def test_too_few_values_have_no_interval():
    assert mean_interval([2.0]).value == 2.0
    assert np.isnan(mean_interval([2.0])[1:]).all()
    assert np.isnan(mean_interval([])).all()
    assert mean_interval([2.0, np.nan, 4.0]).value == 3.0


def test_the_interquartile_mean_drops_the_outer_quarters():
    assert interquartile_mean([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 1000.0]).value == 4.5
    assert tuple(interquartile_mean([2.0] * 6)) == (2.0, 2.0, 2.0)
    with pytest.warns(UserWarning, match="4 seeds"):
        interquartile_mean([1.0, 2.0, 3.0, 4.0])


def test_the_probability_of_improvement_is_mann_whitneys():
    rng = np.random.default_rng(0)
    ours, theirs = rng.integers(0, 5, 7), rng.integers(0, 5, 9)
    expected = mannwhitneyu(ours, theirs).statistic / 63
    assert probability_of_improvement(ours, theirs) == pytest.approx(expected)
    assert probability_of_improvement([1.0], [1.0]) == 0.5


def test_wilsons_interval_by_its_formula():
    z, n, p = norm.ppf(0.975), 50, 0.9
    centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    expected = (p, (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n))
    assert tuple(wilson_interval(45, 50)) == pytest.approx(expected)
    assert wilson_interval(0, 10).low == 0.0
    for bad in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(InputError, match="successes"):
            wilson_interval(*bad)


def test_a_rank_reversal_is_found_and_warned_of():
    """BFCL, record B: K=1 has more bits, K=3 is paid more."""
    table = pd.DataFrame(
        {"bor_bits": [7.79, 6.59, 5.0], "mean_bor_reward": [5.12, 5.44, 5.0]}, index=["k1", "k3", "k9"]
    )
    with pytest.warns(UserWarning, match="k1 has more bits, k3 is paid more"):
        found = rank_reversals(table)
    assert found[["more_bits", "more_reward"]].to_numpy().tolist() == [["k1", "k3"]]
    assert found[["bits", "reward"]].to_numpy().tolist() == [[pytest.approx(1.2), pytest.approx(0.32)]]
    assert rank_reversals(table.loc[["k3", "k9"]]).empty


def frames(table):
    """One frame a split from {split: {query: value}}."""
    return [pd.DataFrame({"query_id": list(split), "x": list(split.values())}) for split in table]


def test_the_estimate_is_the_mean_over_splits_of_mean_paired_differences():
    ours = frames([{"a": 3.0, "b": 1.0}, {"a": 5.0}])
    theirs = frames([{"b": 0.0, "a": 0.0}, {"a": 1.0}])
    assert paired_bootstrap(ours, theirs, "x", resamples=100).value == pytest.approx((2.0 + 4.0) / 2)


def test_a_constant_difference_has_an_interval_of_no_width():
    ours, theirs = frames([{"a": 2.0, "b": 5.0}] * 3), frames([{"a": 1.0, "b": 4.0}] * 3)
    assert tuple(paired_bootstrap(ours, theirs, "x", resamples=500)) == (1.0, 1.0, 1.0)


def test_with_one_split_it_equals_scipys_bootstrap():
    from scipy.stats import bootstrap

    rng = np.random.default_rng(0)
    values = rng.normal(0.3, 1.0, size=80)
    split = {f"q{i}": value for i, value in enumerate(values)}
    found = paired_bootstrap(frames([split]), frames([dict.fromkeys(split, 0.0)]), "x", resamples=20_000)
    exact = bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=rng).confidence_interval
    assert found.low == pytest.approx(exact.low, abs=0.01)
    assert found.high == pytest.approx(exact.high, abs=0.01)


def test_splits_that_repeat_the_same_queries_add_no_certainty():
    """Pooling rows would shrink the interval by sqrt(5); resampling query ids does not."""
    rng = np.random.default_rng(1)
    split = {f"q{i}": value for i, value in enumerate(rng.normal(size=60))}
    none = dict.fromkeys(split, 0.0)
    one = paired_bootstrap(frames([split]), frames([none]), "x")
    five = paired_bootstrap(frames([split] * 5), frames([none] * 5), "x")
    assert five.high - five.low == pytest.approx(one.high - one.low, rel=0.05)


def test_a_split_of_its_own_mind_widens_the_interval():
    alike = [{f"q{i}": 1.0 for i in range(50)} for _ in range(5)]
    differing = [{f"q{i}": float(s) for i in range(50)} for s in range(5)]
    none = [dict.fromkeys(alike[0], 0.0)] * 5
    assert paired_bootstrap(frames(alike), frames(none), "x").low == 1.0
    wide = paired_bootstrap(frames(differing), frames(none), "x")
    assert wide.high - wide.low > 1.0


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [([], []), ([{"a": 1.0}], []), ([{"a": 1.0}], [{"b": 1.0}]), ([{"a": 1.0}], [{"a": 1.0, "b": 2.0}])],
)
def test_comparisons_that_are_not_paired_are_refused(ours, theirs):
    with pytest.raises(InputError, match=r"same splits|different queries"):
        paired_bootstrap(frames(ours), frames(theirs), "x")
