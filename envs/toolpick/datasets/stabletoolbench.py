"""StableToolBench: the solvable test queries of ToolBench over the APIs they come with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from toolpick.datasets import Dataset, Query, Tool
from toolpick.datasets.fetch import PinnedFile, pinned

_FOLDER = "solvable_queries/test_instruction"
_GROUPS = ("G1_category", "G1_instruction", "G1_tool", "G2_category", "G2_instruction", "G3_instruction")
_JSON_TYPES = {"string", "number", "boolean", "array", "object"}


@dataclass(frozen=True)
class StableToolBench:
    """765 queries, 1 to 6 relevant each, over the pool of 2,479 APIs that the six test files list.

    Each query comes with candidate APIs. The registry is the union of all candidates, keyed by the pair of
    tool_name and api_name as written, and a tool is called "tool_name/api_name". Eight pairs occur under several
    categories, three of them with another description or other parameters: the first is kept. Relevant are a
    query's "relevant APIs", each once (three queries name one twice). Two queries with different ids have the same
    text and stay two.

    This is not ToolBench's whole registry: the paper's 3,251 tools are not in what can be had. APIs that are not
    listed as relevant to a query may serve it all the same, so that found@K is a lower bound.

    Parameters become a JSON schema: types in lower case, those that JSON lacks (DATE, ENUM, ...) as strings, and
    of two parameters of one name the first.

    Raises:
        InputError: a file that cannot be had.
    """

    @property
    def needs(self) -> tuple[PinnedFile, ...]:
        """The pinned files it reads."""
        return pinned("stabletoolbench", [f"{_FOLDER}/{group}.json" for group in _GROUPS])

    def __call__(self) -> Dataset:
        tools: dict[str, Tool] = {}
        queries = []
        for file in self.needs:
            group = PurePosixPath(file.path).stem
            for record in json.loads(file.read()):
                for api in record["api_list"]:
                    name = _name(api["tool_name"], api["api_name"])
                    tools.setdefault(name, Tool(name, api["api_description"], _schema(api)))
                relevant = dict.fromkeys(_name(*pair) for pair in record["relevant APIs"])
                queries.append(Query(f"{group}_{record['query_id']}", record["query"], tuple(relevant)))
        return Dataset("stabletoolbench", tuple(tools.values()), tuple(queries))


def _name(tool: str, api: str) -> str:
    return f"{tool}/{api}"


def _schema(api: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for parameter in (*api["required_parameters"], *api["optional_parameters"]):
        kind = parameter["type"].lower()
        card = {"type": kind if kind in _JSON_TYPES else "string", "description": parameter["description"]}
        properties.setdefault(parameter["name"], card | {"default": parameter["default"]})
    required = list(dict.fromkeys(parameter["name"] for parameter in api["required_parameters"]))
    return {"type": "object", "properties": properties, "required": required}
