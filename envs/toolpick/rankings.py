"""Ranked lists: what a scorer makes of a dataset, and all that the shortlist environments run on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolpick.datasets import Dataset
from toolpick.errors import InputError
from toolpick.scorers import OracleScorer, Scorer
from toolpick.scorers.cache import cached_scores

SCORE_LIMIT = 1e6  # observation bounds must be finite; no scorer we know comes near it


@dataclass(frozen=True, eq=False)
class Rankings:
    """Q queries, each with all N tools in falling order of score. Immutable: arrays are read-only.

    Attributes:
        tool_names: N names, in registry order.
        query_ids: Q ids.
        query_texts: Q request texts.
        order: (Q, N) int, registry index of the tool at each rank.
        scores: (Q, N) float, non-increasing along the ranks.
        relevant: (Q, N) bool, whether the tool at each rank is relevant: the label.
        tool_tokens: (N,) float, estimated tokens of each card, in registry order.
    """

    tool_names: tuple[str, ...]
    query_ids: tuple[str, ...]
    query_texts: tuple[str, ...]
    order: NDArray[np.int64]
    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    tool_tokens: NDArray[np.float64]

    def __post_init__(self) -> None:
        for array in (self.order, self.scores, self.relevant, self.tool_tokens):
            array.flags.writeable = False

    def __deepcopy__(self, memo: Any) -> Rankings:
        return self  # immutable; gymnasium.make deep-copies its arguments

    @property
    def n_tools(self) -> int:
        """N."""
        return len(self.tool_names)

    @property
    def n_queries(self) -> int:
        """Q."""
        return len(self.query_ids)

    @cached_property
    def n_relevant(self) -> NDArray[np.int64]:
        """(Q,) relevant tools of each query, R."""
        return self.relevant.sum(axis=1)

    @cached_property
    def first_relevant_rank(self) -> NDArray[np.int64]:
        """(Q,) 1-based rank of the first relevant tool."""
        return self.relevant.argmax(axis=1) + 1

    def subset(self, queries: ArrayLike) -> Rankings:
        """The rankings of some queries, by integer position in the order given, or by a boolean mask."""
        rows = query_positions(queries, self.n_queries)
        return Rankings(
            self.tool_names,
            tuple(self.query_ids[row] for row in rows),
            tuple(self.query_texts[row] for row in rows),
            self.order[rows],
            self.scores[rows],
            self.relevant[rows],
            self.tool_tokens,
        )


def query_positions(queries: ArrayLike, n_queries: int) -> NDArray[np.int64]:
    """Integer positions, from positions or from a boolean mask over all queries.

    Raises:
        InputError: other numbers, or positions outside 0..n_queries-1.
    """
    rows = np.asarray(queries)
    if rows.dtype == bool and rows.shape == (n_queries,):
        return np.flatnonzero(rows)
    whole = rows.size == 0 or np.issubdtype(rows.dtype, np.integer)
    if rows.ndim != 1 or not whole or (rows.size and (rows.min() < 0 or rows.max() >= n_queries)):
        raise InputError(f"queries must be positions in 0..{n_queries - 1} or a mask of {n_queries} booleans")
    return rows.astype(np.int64)


def rank(dataset: Dataset, scorer: Scorer | OracleScorer) -> Rankings:
    """Score every tool for every query and sort; ties keep registry order.

    A scorer sees the texts alone. The exception is a scorer that is an oracle by name, for experiments with a
    scorer of known quality.

    Raises:
        InputError: the scorer returns another shape than (Q, N), a NaN, or a score beyond 1e6 in magnitude.
    """
    scores = np.asarray(_scores(dataset, scorer), dtype=np.float64)
    _check_scores(scores, dataset, type(scorer).__name__)
    order = np.argsort(-scores, axis=1, kind="stable")
    return Rankings(
        tuple(tool.name for tool in dataset.tools),
        tuple(query.id for query in dataset.queries),
        tuple(query.text for query in dataset.queries),
        order,
        np.take_along_axis(scores, order, axis=1),
        np.take_along_axis(dataset.labels, order, axis=1),
        np.array([tool.estimated_tokens for tool in dataset.tools]),
    )


def _scores(dataset: Dataset, scorer: Scorer | OracleScorer) -> NDArray[np.float64]:
    if isinstance(scorer, OracleScorer):
        return scorer.oracle_scores(dataset)  # never cached: the cache tells corpora apart, not labelings
    return cached_scores(dataset.corpus, scorer)


def _check_scores(scores: NDArray[np.float64], dataset: Dataset, scorer: str) -> None:
    shape = (len(dataset.queries), len(dataset.tools))
    if scores.shape != shape:
        raise InputError(f"scorer {scorer} returned shape {scores.shape} on {dataset.name}, expected {shape}")
    bad = np.argwhere(~(np.abs(scores) <= SCORE_LIMIT))  # catches NaN and infinities too
    if bad.size:
        row, column = bad[0]
        raise InputError(
            f"scorer {scorer} gave {scores[row, column]} to tool {dataset.tools[column].name!r} for query "
            f"{dataset.queries[row].id!r} of {dataset.name} ({len(bad)} such); scores must be finite and within "
            f"±{SCORE_LIMIT:g}"
        )
