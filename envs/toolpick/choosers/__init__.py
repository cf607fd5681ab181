"""Which tool is called, given a shortlist: one file a chooser.

A chooser is a frozen dataclass called with a batch of `Presented` shortlists, which hold no labels; it returns
the registry index of the tool it would call, for each. One that needs the labels is an oracle: it has a method
`oracle_choices(presented, relevant)` instead, and refuses to be called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolpick.datasets import Tool
from toolpick.errors import InputError
from toolpick.rankings import Rankings

__all__ = ["FAILED", "NONE", "Chooser", "Presented", "choose", "present", "relevant_shown"]

NONE = -1  # the chooser wants none of the tools
FAILED = -2  # it gave no valid answer: malformed, missing from a record, or a tool that was not shown


@dataclass(frozen=True, eq=False)
class Presented:
    """n shortlists as a model is shown them. Immutable; build it with `present`.

    Attributes:
        tools: the registry, N tools.
        query_ids: n ids.
        query_texts: n request texts.
        depth: (n,) int, tools shown, K.
        order: (n, D) int, registry index of the tool at each rank; -1 beyond the depth, so that nothing that is
            not shown can be read.
        scores: (n, D) float, the scorer's scores of the same tools; -inf beyond the depth.
    """

    tools: tuple[Tool, ...]
    query_ids: tuple[str, ...]
    query_texts: tuple[str, ...]
    depth: NDArray[np.int64]
    order: NDArray[np.int64]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.query_ids)

    def shown(self, row: int) -> tuple[Tool, ...]:
        """The tools of one shortlist, in order."""
        return tuple(self.tools[index] for index in self.order[row, : self.depth[row]])

    def rows(self, rows: ArrayLike) -> Presented:
        """Some of the shortlists, by position."""
        chosen = np.asarray(rows, dtype=np.int64)
        return Presented(
            self.tools,
            tuple(self.query_ids[row] for row in chosen),
            tuple(self.query_texts[row] for row in chosen),
            self.depth[chosen],
            self.order[chosen],
            self.scores[chosen],
        )


class Chooser(Protocol):
    """Picks a tool from each shortlist: (n,) registry indices, or `NONE`, or `FAILED`."""

    def __call__(self, presented: Presented) -> NDArray[np.int64]: ...


def present(rankings: Rankings, tools: Sequence[Tool], depths: ArrayLike) -> Presented:
    """The first K tools of every query's list.

    Args:
        rankings: n queries.
        tools: the registry that was ranked, in its order.
        depths: (n,) whole numbers K in 1..N.

    Raises:
        InputError: another registry than the ranked one, or a depth outside 1..N.
    """
    if tuple(tool.name for tool in tools) != rankings.tool_names:
        raise InputError("present: the tools are not the registry that was ranked, in its order")
    depth = np.asarray(depths, dtype=np.int64)
    if depth.shape != (rankings.n_queries,) or np.any((depth < 1) | (depth > rankings.n_tools)):
        raise InputError(f"present: needs {rankings.n_queries} depths in 1..{rankings.n_tools}")
    width = int(depth.max(initial=1))
    shown = np.arange(width) < depth[:, None]
    order = np.where(shown, rankings.order[:, :width], -1)
    scores = np.where(shown, rankings.scores[:, :width], -np.inf)
    for array in (depth, order, scores):
        array.flags.writeable = False
    return Presented(tuple(tools), rankings.query_ids, rankings.query_texts, depth, order, scores)


def relevant_shown(rankings: Rankings, presented: Presented) -> NDArray[np.bool_]:
    """(n, D) whether the tool at each rank is shown and relevant: the labels, for oracles and for scoring."""
    return rankings.relevant[:, : presented.order.shape[1]] & (presented.order >= 0)


def choose(chooser: Any, presented: Presented, relevant: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What a chooser picks; only an oracle gets to see `relevant`.

    Returns:
        (n,) registry indices, `NONE` or `FAILED`.

    Raises:
        InputError: the chooser returns another shape, or a tool that was not shown.
    """
    oracle = getattr(chooser, "oracle_choices", None)
    chosen = np.asarray(chooser(presented) if oracle is None else oracle(presented, relevant))
    if chosen.shape != (len(presented),):
        raise InputError(f"chooser {chooser!r} returned shape {chosen.shape}, expected {(len(presented),)}")
    stray = ~((chosen == NONE) | (chosen == FAILED) | (chosen[:, None] == presented.order).any(axis=1))
    if stray.any():
        row = int(stray.argmax())
        raise InputError(
            f"chooser {chooser!r} chose tool {chosen[row]} for query {presented.query_ids[row]!r}, which was not shown"
        )
    return chosen.astype(np.int64)
