"""Choices that a model made elsewhere, read back from a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolpick.choosers import FAILED, NONE, Presented
from toolpick.errors import InputError

_Key = tuple[str, tuple[str, ...]]
_FIELDS = {"query_id": str, "shown": list, "chosen": (str, type(None))}


@dataclass(frozen=True)
class Recorded:
    """Replays JSON Lines `{"query_id", "shown": [names in order], "chosen": name or null}`, other keys ignored.

    A choice belongs to one query and one exact list: the same tools in another order are another list. A chosen
    name that was not shown is a failure.

    Args:
        path: the file, UTF-8.
        strict: a list that the file lacks is an error; where false, a counted failure.

    Raises:
        InputError: a file that cannot be read, a line that is malformed or contradicts an earlier one; when
            called, a list that the file lacks.
    """

    path: str
    strict: bool = True

    def __call__(self, presented: Presented) -> NDArray[np.int64]:
        index = {tool.name: position for position, tool in enumerate(presented.tools)}
        chosen = np.full(len(presented), FAILED)
        for row, query in enumerate(presented.query_ids):
            shown = tuple(tool.name for tool in presented.shown(row))
            if (query, shown) in self._choices:
                name, _ = self._choices[query, shown]
                chosen[row] = NONE if name is None else index[name] if name in shown else FAILED
            elif self.strict:
                raise InputError(
                    f"{self.path}: no choice recorded for query {query!r} with these {len(shown)} tools shown: "
                    f"{', '.join(shown[:5])}{', ...' if len(shown) > 5 else ''}; record it, or count it as a failure "
                    "with chooser.strict=false"
                )
        return chosen

    @cached_property
    def _choices(self) -> dict[_Key, tuple[str | None, str]]:
        """Query and list -> chosen name and the line it is from."""
        try:
            lines = Path(self.path).read_bytes().split(b"\n")
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from error
        choices: dict[_Key, tuple[str | None, str]] = {}
        for number, line in enumerate(lines, start=1):
            where = f"{self.path}:{number}"
            if not line.strip():
                continue
            record = _record(line, where)
            key = record["query_id"], tuple(record["shown"])
            name, first = choices.setdefault(key, (record["chosen"], where))
            if name != record["chosen"]:
                raise InputError(
                    f"{where}: chooses {record['chosen']!r} for query {key[0]!r}, where {first} chose {name!r} from "
                    "the same list; keep one"
                )
        return choices


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not a JSON object: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(record).__name__}")
    for key, kind in _FIELDS.items():
        if key not in record:
            raise InputError(f"{where}: key {key!r} is missing")
        if not isinstance(record[key], kind):
            raise InputError(f"{where}: key {key!r} has the wrong type, {type(record[key]).__name__}")
    if not all(isinstance(name, str) for name in record["shown"]):
        raise InputError(f"{where}: key 'shown' must be a list of tool names")
    return record
