"""Where registries and queries come from: one file a source.

A source is a frozen dataclass that is called without arguments and returns a `Dataset`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from toolpick.errors import InputError

__all__ = ["Corpus", "Dataset", "DatasetSource", "Query", "Tool"]


@dataclass(frozen=True)
class Tool:
    """One entry of a registry: a unique name, a description and a JSON schema of its parameters."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    where: str = field(default="", compare=False, repr=False)  # "file:line", for error messages only

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names under the schema's `properties`, in order."""
        return tuple(self.parameters.get("properties") or ())

    @property
    def card(self) -> str:
        """The tool as a model is shown it: a JSON object of name, description and parameters."""
        card = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return json.dumps(card, ensure_ascii=False, default=str)

    @property
    def estimated_tokens(self) -> float:
        """Tokens of the card, reckoned at four characters each."""
        return len(self.card) / 4


@dataclass(frozen=True)
class Query:
    """A user's request and the names of the tools that serve it (the label)."""

    id: str
    text: str
    relevant: tuple[str, ...]
    where: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class Corpus:
    """What a scorer sees of a dataset: the texts, never the labels.

    Attributes:
        tools: the registry, N tools.
        queries: Q request texts.
        scores: (Q, N) scores that came with the data (column j belongs to tool j), or None.
    """

    tools: tuple[Tool, ...]
    queries: tuple[str, ...]
    scores: np.ndarray | None = None

    @cached_property
    def content_hash(self) -> str:
        """sha256 over every text and score a scorer can read."""
        digest = hashlib.sha256()
        cards = [[tool.name, tool.description, tool.parameters] for tool in self.tools]
        digest.update(json.dumps([cards, self.queries], default=str).encode())
        if self.scores is not None:
            digest.update(np.ascontiguousarray(self.scores).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Dataset:
    """A registry of N tools and Q labelled queries, checked when made.

    Raises:
        InputError: no tools, no queries, a name or query id that occurs twice, a query without a relevant
            tool or with one that the registry lacks, scores of the wrong shape.
    """

    name: str
    tools: tuple[Tool, ...]
    queries: tuple[Query, ...]
    scores: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not self.tools:
            raise InputError(f"dataset {self.name}: the registry is empty; give it at least one tool")
        if not self.queries:
            raise InputError(f"dataset {self.name}: there are no queries")
        _refuse_repeats(self.name, "tool name", [(tool.name, tool.where) for tool in self.tools])
        _refuse_repeats(self.name, "query id", [(query.id, query.where) for query in self.queries])
        known = {tool.name for tool in self.tools}
        for query in self.queries:
            place = f"dataset {self.name}, query {query.id!r}{_at(query.where)}"
            if not query.relevant:
                raise InputError(f"{place}: no relevant tool is named; every query needs at least one")
            if len(set(query.relevant)) < len(query.relevant):
                raise InputError(f"{place}: a relevant tool is named twice: {list(query.relevant)}")
            for name in query.relevant:
                if name not in known:
                    raise InputError(f"{place}: relevant tool {name!r} is not in the registry of {len(known)} tools")
        shape = (len(self.queries), len(self.tools))
        if self.scores is not None and self.scores.shape != shape:
            raise InputError(f"dataset {self.name}: scores have shape {self.scores.shape}, expected {shape}")

    @property
    def corpus(self) -> Corpus:
        """The dataset without its labels."""
        return Corpus(self.tools, tuple(query.text for query in self.queries), self.scores)

    @cached_property
    def labels(self) -> np.ndarray:
        """(Q, N) bool, whether tool j of the registry is relevant to query i. Read-only."""
        column = {tool.name: index for index, tool in enumerate(self.tools)}
        relevant = np.zeros((len(self.queries), len(self.tools)), dtype=bool)
        for row, query in enumerate(self.queries):
            relevant[row, [column[name] for name in query.relevant]] = True
        relevant.flags.writeable = False
        return relevant

    @cached_property
    def content_hash(self) -> str:
        """sha256 over the corpus and the labels."""
        labels = [[query.id, query.relevant] for query in self.queries]
        return hashlib.sha256((self.corpus.content_hash + json.dumps(labels)).encode()).hexdigest()


class DatasetSource(Protocol):
    """Reads or makes a dataset when called.

    A source of pinned files also lists them, as a property `needs` of `toolpick.datasets.fetch.PinnedFile`s, for
    `python -m experiments.data`.
    """

    def __call__(self) -> Dataset: ...


def _refuse_repeats(dataset: str, what: str, items: Sequence[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for value, where in items:
        if value in seen:
            first = f", first{_at(seen[value])}" if seen[value] else ""
            raise InputError(f"dataset {dataset}{_at(where)}: {what} {value!r} occurs twice{first}")
        seen[value] = where


def _at(where: str) -> str:
    return f" at {where}" if where else ""
