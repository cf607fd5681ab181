"""MetaTool: 199 plugins and the questions that people would ask them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass

import numpy as np

from toolpick.datasets import Dataset, Query, Tool
from toolpick.datasets.fetch import PinnedFile, pinned
from toolpick.errors import InputError

_TOOLS = "dataset/plugin_des.json"
_QUERIES = {1: "dataset/data/all_clean_data.csv", 2: "dataset/data/multi_tool_query_golden.json"}


@dataclass(frozen=True)
class MetaTool:
    """20,614 queries with one relevant tool, or 497 with two, over 199 tools or a part of them (arXiv 2310.03128).

    Tools are the entries of the description file, in its order; they have no parameters. Every tool that a query
    names is described, and every tool has queries; the 497 name 15 different tools. Queries are taken as they
    are, one a row, so that the counts are the published ones: 51 rows repeat an earlier row, and 11 texts occur
    with different tools, each of which is the only relevant one of its row.

    A sub-registry is drawn by `seed`, with the queries whose relevant tools are all in it; under one seed a
    smaller one is part of a larger one. Query ids are those of the whole.

    Args:
        tools_per_query: 1 or 2, which of the two sets of queries.
        n_tools: size N of the sub-registry; None for all 199.
        seed: of the draw.

    Raises:
        InputError: settings out of range, a sub-registry that no query fits, or a file that cannot be had.
    """

    tools_per_query: int = 1
    n_tools: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.tools_per_query not in _QUERIES:
            raise InputError(f"metatool: tools_per_query must be 1 or 2, got {self.tools_per_query}")

    @property
    def needs(self) -> tuple[PinnedFile, ...]:
        """The pinned files it reads."""
        return pinned("metatool", [_TOOLS, _QUERIES[self.tools_per_query]])

    def __call__(self) -> Dataset:
        tool_file, query_file = self.needs
        described = json.loads(tool_file.read())
        tools = [Tool(name, description) for name, description in described.items()]
        queries = _single(query_file.read()) if self.tools_per_query == 1 else _double(query_file.read())
        name = "metatool" if self.tools_per_query == 1 else "metatool_two_tools"
        if self.n_tools is None:
            return Dataset(name, tuple(tools), queries)
        return self._part(Dataset(f"{name}_{self.n_tools}", tuple(tools), queries))

    def _part(self, whole: Dataset) -> Dataset:
        if not 1 <= (self.n_tools or 0) <= len(whole.tools):
            raise InputError(f"metatool: n_tools must be 1..{len(whole.tools)}, got {self.n_tools}")
        order = np.random.default_rng(self.seed).permutation(len(whole.tools))
        tools = tuple(whole.tools[index] for index in sorted(order[: self.n_tools]))
        kept = {tool.name for tool in tools}
        queries = tuple(query for query in whole.queries if kept.issuperset(query.relevant))
        if not queries:
            raise InputError(
                f"metatool: no query with {self.tools_per_query} relevant tools fits the {self.n_tools} tools of "
                f"seed {self.seed}; take another seed or a larger n_tools"
            )
        return Dataset(whole.name, tools, queries)


def _single(content: bytes) -> tuple[Query, ...]:
    rows = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""))
    return tuple(Query(f"metatool_{number}", row["Query"], (row["Tool"],)) for number, row in enumerate(rows))


def _double(content: bytes) -> tuple[Query, ...]:
    records = json.loads(content)
    return tuple(
        Query(f"metatool_two_tools_{number}", record["query"], tuple(record["tool"]))
        for number, record in enumerate(records)
    )
