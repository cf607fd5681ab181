"""Intervals for what the tables claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from toolpick.errors import InputError


class Estimate(NamedTuple):
    """A value with the ends of its interval."""

    value: float
    low: float
    high: float


def mean_interval(values: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """Mean over seeds with Student's t interval; the ends are nan for fewer than two values.

    With one random split a seed the seeds share queries, so that the interval is a description of the spread
    between seeds rather than a test: use `paired_bootstrap` to compare.
    """
    from scipy.stats import t

    array = np.asarray(values, dtype=float)
    array = array[~np.isnan(array)]
    if array.size == 0:
        return Estimate(np.nan, np.nan, np.nan)
    mean = float(array.mean())
    if array.size < 2:
        return Estimate(mean, np.nan, np.nan)
    half = float(t.ppf((1 + confidence) / 2, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size))
    return Estimate(mean, mean - half, mean + half)


def paired_bootstrap(
    ours: Sequence[pd.DataFrame],
    theirs: Sequence[pd.DataFrame],
    column: str,
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Mean difference of a column between two agents over several splits, with a percentile interval.

    Splits of one query set share queries, so they are not independent and never pooled as if they were. Each
    resample draws query ids with replacement, all rows of a query in every split going together, and draws
    splits with replacement; the statistic is the mean over splits of the mean paired difference.

    Args:
        ours: one frame of rows a split, with `query_id` and the column.
        theirs: likewise, in the same order, on the same queries.
        column: what is compared.
        resamples: bootstrap draws.
        confidence: of the interval.
        seed: of the draws.

    Raises:
        InputError: the two do not cover the same splits or the same queries within a split.
    """
    if len(ours) != len(theirs) or not ours:
        raise InputError(f"a paired comparison needs the same splits, got {len(ours)} and {len(theirs)}")
    differences = []
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        left, right = a.set_index("query_id")[column], b.set_index("query_id")[column]
        if not left.index.is_unique or set(left.index) != set(right.index) or len(left) != len(right):
            raise InputError(f"split {index}: the two agents played different queries")
        differences.append(left - right.reindex(left.index))
    table = pd.concat(differences, axis=1).to_numpy(dtype=float)  # (queries, splits), nan where not held out
    held = ~np.isnan(table)
    filled = np.where(held, table, 0.0)
    n_queries, n_splits = table.shape
    rng = np.random.default_rng(seed)
    statistics = []
    for start in range(0, resamples, 1000):
        size = min(1000, resamples - start)
        weights = rng.multinomial(n_queries, np.full(n_queries, 1 / n_queries), size=size).astype(float)
        splits = rng.multinomial(n_splits, np.full(n_splits, 1 / n_splits), size=size).astype(float)
        counts = weights @ held
        means = np.divide(weights @ filled, counts, out=np.zeros_like(counts), where=counts > 0)
        splits = splits * (counts > 0)  # a split none of whose queries was drawn has no mean
        total = splits.sum(axis=1)
        statistics.append((splits * means).sum(axis=1)[total > 0] / total[total > 0])
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(statistics), [tail, 1 - tail])
    return Estimate(float((filled.sum(axis=0) / held.sum(axis=0)).mean()), float(low), float(high))
