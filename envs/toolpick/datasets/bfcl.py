"""The Berkeley Function-Calling Leaderboard's single-turn categories, read from the bfcl-eval package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolpick.datasets import Dataset, Query, Tool
from toolpick.datasets.fetch import PinnedFile, pinned


@dataclass(frozen=True)
class BfclSimplePython:
    """400 queries over 370 tools keyed by name, one relevant tool each.

    26 names come with several descriptions: the first is kept, as in the paper's notebooks.

    Raises:
        InputError: bfcl-eval is missing, of another version, or its file has other bytes than the tested one.
    """

    @property
    def needs(self) -> tuple[PinnedFile, ...]:
        """The pinned files it reads."""
        return _files(["simple_python"])

    def __call__(self) -> Dataset:
        return _pooled("bfcl_simple_python", ["simple_python"])


@dataclass(frozen=True)
class BfclPooled:
    """Several categories over one registry: every function that any of their queries comes with.

    Relevant are the functions that the category's answer file calls, each once however often it is called. Tools
    are keyed by name, and of several descriptions of one name the first is kept. The text is what the user says;
    a system prompt, which some live queries have, is left out.

    Labels are as the leaderboard gives them, for the few functions each query came with. In a pool another
    query's function may serve as well and counts as wrong, so that found@K is a lower bound.

    Args:
        name: the dataset's name in rows.
        categories: e.g. ["multiple", "parallel"]; single-turn ones with an answer file.

    Raises:
        InputError: a category that is not pinned, or bfcl-eval as for `BfclSimplePython`.
    """

    name: str
    categories: Sequence[str]

    @property
    def needs(self) -> tuple[PinnedFile, ...]:
        """The pinned files it reads."""
        return _files(self.categories)

    def __call__(self) -> Dataset:
        return _pooled(self.name, self.categories)


def _files(categories: Sequence[str]) -> tuple[PinnedFile, ...]:
    """Question file and answer file of each category, alternating."""
    paths = [f"{folder}BFCL_v4_{category}.json" for category in categories for folder in ("", "possible_answer/")]
    return pinned("bfcl", paths)


def _pooled(name: str, categories: Sequence[str]) -> Dataset:
    files = _files(categories)
    tools: dict[str, Tool] = {}
    queries = []
    for questions, answers in zip(files[::2], files[1::2], strict=True):
        calls = {record["id"]: record["ground_truth"] for record in _records(answers)}
        for record in _records(questions):
            for function in record["function"]:
                tool = Tool(function["name"], function["description"], function["parameters"])
                tools.setdefault(tool.name, tool)
            said = [message["content"] for message in record["question"][0] if message["role"] == "user"]
            relevant = dict.fromkeys(called for call in calls[record["id"]] for called in call)
            queries.append(Query(record["id"], "\n".join(said), tuple(relevant)))
    return Dataset(name, tuple(tools.values()), tuple(queries))


def _records(file: PinnedFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read().decode("utf-8").splitlines()]
