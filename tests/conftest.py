"""Shared fixtures: caches go to a scratch folder, and BFCL is ranked once."""

import hypothesis
import pytest

from toolpick.datasets import Dataset, Query, Tool
from toolpick.datasets.bfcl import BfclSimplePython
from toolpick.datasets.synthetic import Synthetic
from toolpick.rankings import Rankings, rank
from toolpick.scorers.bm25_okapi import Bm25Okapi
from toolpick.scorers.given import Given

hypothesis.settings.register_profile("toolpick", deadline=None)  # how long an example takes is the machine's affair
hypothesis.settings.load_profile("toolpick")


@pytest.fixture(autouse=True, scope="session")
def _scratch_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("TOOLPICK_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture(scope="session")
def bfcl() -> Dataset:
    return BfclSimplePython()()


@pytest.fixture(scope="session")
def bfcl_rankings(bfcl) -> Rankings:
    return rank(bfcl, Bm25Okapi())


@pytest.fixture(scope="session")
def small_rankings() -> Rankings:
    """24 tools, 2 relevant to each of 40 queries."""
    return rank(Synthetic(n_tools=24, n_relevant=2, n_queries=40, found_at={1: 0.4, 3: 0.7})(), Given())


@pytest.fixture
def three_tools() -> Dataset:
    """Small enough to work out by hand; the scores come with it."""
    import numpy as np

    tools = (Tool("add"), Tool("sub"), Tool("mul"))
    queries = (Query("q0", "add it", ("add",)), Query("q1", "times", ("mul", "sub")))
    return Dataset("three", tools, queries, np.array([[3.0, 1.0, 2.0], [5.0, 4.0, 1.0]]))
