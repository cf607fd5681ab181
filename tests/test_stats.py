"""Intervals: exact where they can be, and right on data whose answer is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from experiments.stats import mean_interval, paired_bootstrap
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
