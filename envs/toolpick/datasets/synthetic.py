"""A generated registry whose size, labels and difficulty are settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from toolpick.datasets import Dataset, Query, Tool
from toolpick.errors import InputError


def _default_curve() -> dict[int, float]:
    return {1: 0.5, 2: 0.65, 5: 0.8, 10: 0.9}


@dataclass(frozen=True)
class Synthetic:
    """N tools, R relevant to each query, and a stated curve of how often the first one is found by rank K.

    The ranks of the first relevant tool follow `found_at` exactly, up to rounding to whole queries. The
    scores carry news of it: the gap behind the first relevant tool is wider by the factor `1 + signal`, so
    that a rule which reads gaps beats a fixed depth, and at `signal=0` none can. Score it with `given`.

    Args:
        n_tools: N.
        n_relevant: R, the same for every query; the other R-1 lie at random deeper ranks.
        n_queries: Q.
        found_at: found@K at some ranks K, non-decreasing; spread evenly in between, and evenly over the
            remaining ranks after the last.
        signal: how much wider the gap behind the first relevant tool is, on average, than other gaps.
        seed: of the generator; the data is a function of these settings alone.

    Raises:
        InputError: settings that contradict each other.
    """

    n_tools: int = 120
    n_relevant: int = 1
    n_queries: int = 400
    found_at: Mapping[int, float] = field(default_factory=_default_curve)
    signal: float = 4.0
    seed: int = 0

    def __call__(self) -> Dataset:
        rng = np.random.default_rng(self.seed)
        first = _first_ranks(self, rng)
        width = len(str(self.n_tools))
        tools = tuple(Tool(f"tool_{i:0{width}d}", f"Synthetic tool {i}.") for i in range(self.n_tools))
        order = np.argsort(rng.random((self.n_queries, self.n_tools)), axis=1)
        by_rank = _scores_by_rank(self, first, rng)
        scores = np.empty_like(by_rank)
        np.put_along_axis(scores, order, by_rank, axis=1)
        queries = []
        for i in range(self.n_queries):
            deeper = first[i] + rng.permutation(self.n_tools - first[i])[: self.n_relevant - 1]
            ranks = [first[i] - 1, *deeper]
            names = tuple(tools[order[i, rank]].name for rank in ranks)
            queries.append(Query(f"synthetic_{i}", f"Synthetic request {i}.", names))
        return Dataset("synthetic", tools, tuple(queries), scores)


def _first_ranks(settings: Synthetic, rng: np.random.Generator) -> np.ndarray:
    """(Q,) 1-based ranks of the first relevant tool, shuffled: quotas of the curve, not draws from it."""
    deepest = settings.n_tools - settings.n_relevant + 1
    if settings.n_tools < 1 or settings.n_queries < 1 or not 1 <= settings.n_relevant <= settings.n_tools:
        raise InputError("synthetic: need n_tools >= 1, n_queries >= 1 and 1 <= n_relevant <= n_tools")
    if settings.signal < 0:
        raise InputError(f"synthetic: signal must not be negative, got {settings.signal}")
    curve = sorted((int(k), float(share)) for k, share in settings.found_at.items())  # JSON makes keys strings
    if any(k < 1 for k, _ in curve):
        raise InputError(f"synthetic: found_at is given for ranks K >= 1, got {dict(settings.found_at)}")
    knots = {0: 0.0} | dict(curve) | {deepest: 1.0}
    ranks, shares = np.array(list(knots)), np.array(list(knots.values()))
    if np.any(np.diff(ranks) <= 0) or np.any(np.diff(shares) < 0) or np.any(shares > 1) or np.any(shares < 0):
        raise InputError(
            f"synthetic: found_at must rise with K, within 0..1 and K in 1..{deepest - 1}, "
            f"got {dict(settings.found_at)}"
        )
    cumulative = np.interp(np.arange(1, deepest + 1), ranks, shares)
    quotas = np.diff(np.rint(cumulative * settings.n_queries).astype(int), prepend=0)
    return rng.permutation(np.repeat(np.arange(1, deepest + 1), quotas))


def _scores_by_rank(settings: Synthetic, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(Q, N) strictly falling scores: exponential gaps, wider behind the first relevant rank, over log rank."""
    gaps = rng.exponential(size=(settings.n_queries, settings.n_tools)) + 1e-3
    gaps[np.arange(settings.n_queries), first - 1] *= 1.0 + settings.signal
    gaps /= np.arange(1, settings.n_tools + 1)  # lists fall steeply first, as retrieval scores do
    return np.cumsum(gaps[:, ::-1], axis=1)[:, ::-1]
