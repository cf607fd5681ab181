"""Intervals for what the tables claim."""

from __future__ import annotations

import itertools
import warnings
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


def interquartile_mean(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 5000, seed: int = 0
) -> Estimate:
    """Mean of the middle half of the values over seeds, with a percentile bootstrap interval.

    The aggregate of Agarwal et al., "Deep RL at the edge of the statistical precipice" (NeurIPS 2021). Fewer than
    five values are a warning: their interval says little.
    """
    from scipy.stats import trim_mean

    array = np.asarray(values, dtype=float)
    warn_of_few_seeds(array.size)
    drawn = np.random.default_rng(seed).choice(array, size=(resamples, array.size))
    tail = (1 - confidence) / 2
    low, high = np.quantile(trim_mean(drawn, 0.25, axis=1), [tail, 1 - tail])
    return Estimate(float(trim_mean(array, 0.25)), float(low), float(high))


def probability_of_improvement(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Chance that a run of ours beats a run of theirs: the Mann-Whitney statistic, ties counting one half."""
    a, b = np.asarray(ours, dtype=float)[:, None], np.asarray(theirs, dtype=float)[None, :]
    return float(((a > b) + 0.5 * (a == b)).mean())


def wilson_interval(successes: int, trials: int, *, confidence: float = 0.95) -> Estimate:
    """A rate with Wilson's score interval (1927), for independent trials.

    Raises:
        InputError: no trials, or more successes than trials.
    """
    from scipy.stats import binomtest

    if not 0 <= successes <= trials or trials < 1:
        raise InputError(f"a rate needs 0 <= successes <= trials and a trial, got {successes} of {trials}")
    interval = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    return Estimate(successes / trials, float(interval.low), float(interval.high))


def warn_of_few_seeds(seeds: int, *, enough: int = 5) -> None:
    """A warning where there are fewer seeds than an interval over them can be trusted with."""
    if seeds < enough:
        warnings.warn(f"{seeds} seeds: intervals over fewer than {enough} say little", stacklevel=3)


def rank_reversals(table: pd.DataFrame) -> pd.DataFrame:
    """Pairs of agents that BoR and the mean BoR reward put in opposite orders.

    Args:
        table: a row an agent (index), with columns `bor_bits` and `mean_bor_reward`.

    Returns:
        A row a pair: `more_bits`, `more_reward` (names), and by how much: `bits`, `reward`. A warning names the first.
    """
    pairs = []
    rows = zip(table.index, table["bor_bits"].to_numpy(float), table["mean_bor_reward"].to_numpy(float), strict=True)
    for (one, bits_one, reward_one), (other, bits_other, reward_other) in itertools.combinations(rows, 2):
        bits, reward = bits_one - bits_other, reward_one - reward_other
        if bits * reward < 0:
            ahead, behind = (one, other) if bits > 0 else (other, one)
            pairs.append({"more_bits": ahead, "more_reward": behind, "bits": abs(bits), "reward": abs(reward)})
    found = pd.DataFrame(pairs, columns=["more_bits", "more_reward", "bits", "reward"])
    if pairs:
        first = found.sort_values("reward", ascending=False).iloc[0]
        warnings.warn(
            f"BoR and mean BoR reward disagree on {len(pairs)} pairs of agents: {first['more_bits']} has more bits, "
            f"{first['more_reward']} is paid more",
            stacklevel=2,
        )
    return found


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
