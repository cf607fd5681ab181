"""A registry in the form of OpenAI's `tools` argument."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolpick.datasets import Dataset, Tool
from toolpick.datasets.records import a_dict, json_document, read_queries, schema, text, typed
from toolpick.errors import InputError


@dataclass(frozen=True)
class OpenAiTools:
    """Function tools of one JSON file, in the form of Chat Completions or of Responses, and queries as JSON Lines.

    The file holds the list itself or an object with the list under "tools", such as a saved request. A tool is
    `{"type": "function", "function": {"name", "description"?, "parameters"?}}`, or flat with the same keys beside
    "type". Keys beyond these are passed over. Tools of another type have no function to rank and are refused.

    Args:
        tools: path of the JSON file, UTF-8.
        queries: path of the query file, as for `Jsonl`.
        name: the dataset's name in rows; the query file's stem where empty.

    Raises:
        InputError: a file that cannot be read or is not JSON, a tool of another type, a key that is missing or of
            the wrong type; the message names file, entry and key.
    """

    tools: str
    queries: str
    name: str = ""

    def __call__(self) -> Dataset:
        path = Path(self.tools)
        document = json_document(path)
        if not isinstance(document, list):
            document = typed(a_dict(document, f"{path}: neither a list nor"), "tools", list, str(path))
        tools = tuple(_tool(entry, f"{path} [{index}]") for index, entry in enumerate(document))
        return Dataset(self.name or Path(self.queries).stem, tools, read_queries(Path(self.queries)))


def _tool(entry: Any, where: str) -> Tool:
    kind = text(a_dict(entry, where), "type", where)
    if kind != "function":
        raise InputError(f"{where}: key 'type' must be 'function', got {kind!r}; leave other tools out")
    function, place = entry, where
    if "function" in entry:
        function, place = typed(entry, "function", dict, where), f"{where}.function"
    given = {key: value for key, value in function.items() if value is not None}  # Responses writes nulls
    return Tool(
        name=text(given, "name", place),
        description=text(given, "description", place, default=""),
        parameters=schema(given, "parameters", place, default={}),
        where=place,
    )
