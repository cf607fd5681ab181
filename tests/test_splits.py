"""Splits: disjoint, complete, of the stated sizes, and a function of the seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpick import InputError
from toolpick.splits.random import Random
from toolpick.splits.record_a import RecordA
from toolpick.splits.record_b import RecordB

RULES = (Random(), RecordA(), RecordB())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@given(n_queries=st.integers(20, 500), seed=st.integers(0, 10))
def test_the_parts_are_disjoint_and_complete(rule, n_queries, seed):
    split = rule(n_queries, seed)
    together = np.concatenate([split.train, split.validation, split.test])
    assert sorted(together) == list(range(n_queries))
    again = rule(n_queries, seed)
    for part in ("train", "validation", "test"):
        assert len(getattr(split, part)) > 0
        assert (getattr(split, part) == getattr(again, part)).all()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_bfcl_is_split_280_to_120_and_a_fifth_of_the_280_validates(rule):
    split = rule(400, 0)
    assert (len(split.train), len(split.validation), len(split.test)) == (224, 56, 120)


def test_the_random_split_follows_the_seed_and_the_records_do_not():
    assert (Random()(400, 0).test != Random()(400, 1).test).any()
    for rule in (RecordA(), RecordB()):
        assert (rule(400, 0).test == rule(400, 1).test).all()
        assert (rule(400, 0).validation != rule(400, 1).validation).any()


def test_record_a_is_scikit_learns_split():
    from sklearn.model_selection import train_test_split

    _, test = train_test_split(np.arange(400), test_size=0.30, random_state=42)
    assert RecordA()(400, 0).test.tolist() == sorted(test)


@pytest.mark.parametrize("shares", [{"test_share": 0.0}, {"test_share": 1.0}, {"validation_share": -0.1}])
def test_shares_outside_0_to_1_are_refused(shares):
    with pytest.raises(InputError, match="must lie between 0 and 1"):
        Random(**shares)


def test_too_few_queries_are_refused():
    with pytest.raises(InputError, match="the split leaves no"):
        Random()(2, 0)
