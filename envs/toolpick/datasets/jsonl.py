"""A user's own registry and queries as JSON Lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolpick.datasets import Dataset, Tool
from toolpick.datasets.records import json_lines, read_queries, refuse_unknown, schema, text


@dataclass(frozen=True)
class Jsonl:
    """Tools `{"name", "description"?, "parameters"?}` and queries `{"query", "relevant", "id"?}`, one a line.

    Args:
        tools: path of the registry file, UTF-8.
        queries: path of the query file, UTF-8. `relevant` is a list of tool names; `id` defaults to the
            line number.
        name: the dataset's name in rows; the query file's stem where empty.

    Raises:
        InputError: a file that cannot be read, a line that is not UTF-8 or not a JSON object, a key that is
            missing, unknown or of the wrong type; the message names file, line and key.
    """

    tools: str
    queries: str
    name: str = ""

    def __call__(self) -> Dataset:
        tools = tuple(_tool(record, where) for record, where in json_lines(Path(self.tools)))
        return Dataset(self.name or Path(self.queries).stem, tools, read_queries(Path(self.queries)))


def _tool(record: dict[str, Any], where: str) -> Tool:
    refuse_unknown(record, {"name", "description", "parameters"}, where)
    return Tool(
        name=text(record, "name", where),
        description=text(record, "description", where, default=""),
        parameters=schema(record, "parameters", where, default={}),
        where=where,
    )
