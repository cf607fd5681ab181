"""A registry as a Model Context Protocol server lists it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolpick.datasets import Dataset, Tool
from toolpick.datasets.records import a_dict, json_document, read_queries, schema, text, typed
from toolpick.errors import InputError


@dataclass(frozen=True)
class McpTools:
    """The answer to `tools/list`, as the JSON-RPC response or its bare result, and queries as JSON Lines.

    A tool is `{"name", "description"?, "inputSchema"}`; further keys are passed over. An answer with a
    "nextCursor" is one page of several and is refused: N would be wrong.

    Args:
        tools: path of the JSON file, UTF-8.
        queries: path of the query file, as for `Jsonl`.
        name: the dataset's name in rows; the query file's stem where empty.

    Raises:
        InputError: a file that cannot be read or is not JSON, an error response, a list that goes on, a key that
            is missing or of the wrong type; the message names file, entry and key.
    """

    tools: str
    queries: str
    name: str = ""

    def __call__(self) -> Dataset:
        path = Path(self.tools)
        tools = tuple(_tool(entry, f"{path} tools[{index}]") for index, entry in enumerate(_listed(path)))
        return Dataset(self.name or Path(self.queries).stem, tools, read_queries(Path(self.queries)))


def _listed(path: Path) -> list[Any]:
    document = a_dict(json_document(path), str(path))
    if "error" in document:
        raise InputError(f"{path}: the server answered with an error, not a list: {str(document['error'])[:200]}")
    result = typed(document, "result", dict, str(path)) if "result" in document else document
    if result.get("nextCursor"):
        raise InputError(
            f"{path}: key 'nextCursor' says that the list goes on; get the other pages, put their tools into one "
            "list and remove the key"
        )
    return typed(result, "tools", list, str(path))


def _tool(entry: Any, where: str) -> Tool:
    record = a_dict(entry, where)
    return Tool(
        name=text(record, "name", where),
        description=text(record, "description", where, default=""),
        parameters=schema(record, "inputSchema", where),
        where=where,
    )
