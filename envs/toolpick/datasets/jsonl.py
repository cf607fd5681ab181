"""A user's own registry and queries as JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolpick.datasets import Dataset, Query, Tool
from toolpick.errors import InputError


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
        tools = tuple(_tool(record, where) for record, where in _records(Path(self.tools)))
        queries = tuple(
            _query(record, where, default_id=where.rpartition(":")[2]) for record, where in _records(Path(self.queries))
        )
        return Dataset(self.name or Path(self.queries).stem, tools, queries)


def _tool(record: dict[str, Any], where: str) -> Tool:
    _refuse_unknown(record, {"name", "description", "parameters"}, where)
    parameters = _typed(record, "parameters", dict, where, default={})
    if not isinstance(parameters.get("properties", {}), dict):
        raise InputError(f"{where}: key 'parameters': its 'properties' must be a JSON object")
    return Tool(
        name=_text(record, "name", where),
        description=_text(record, "description", where, default=""),
        parameters=parameters,
        where=where,
    )


def _query(record: dict[str, Any], where: str, default_id: str) -> Query:
    _refuse_unknown(record, {"id", "query", "relevant"}, where)
    relevant = _typed(record, "relevant", list, where)
    if not all(isinstance(name, str) for name in relevant):
        raise InputError(f"{where}: key 'relevant' must be a list of tool names, got {relevant!r}")
    return Query(
        id=_text(record, "id", where, default=default_id),
        text=_text(record, "query", where),
        relevant=tuple(relevant),
        where=where,
    )


def _records(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    for number, raw in enumerate(content.split(b"\n"), start=1):
        where = f"{path}:{number}"
        if not raw.strip():
            continue
        try:
            record = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: not UTF-8 at byte {error.start} of the line") from error
        except json.JSONDecodeError as error:
            raise InputError(f"{where}: not a JSON object: {error.msg} at column {error.colno}") from error
        except (RecursionError, ValueError) as error:  # nesting or digits beyond Python's own limits
            raise InputError(f"{where}: not a JSON object that can be read: {error}") from error
        if not isinstance(record, dict):
            raise InputError(f"{where}: expected a JSON object, got {type(record).__name__}")
        yield record, where


_REQUIRED = object()


def _typed(record: dict[str, Any], key: str, kind: type, where: str, default: Any = _REQUIRED) -> Any:
    value = record.get(key, default)
    if value is _REQUIRED:
        raise InputError(f"{where}: key {key!r} is missing")
    if not isinstance(value, kind):
        raise InputError(f"{where}: key {key!r} must be a {kind.__name__}, got {type(value).__name__}")
    return value


def _text(record: dict[str, Any], key: str, where: str, default: Any = _REQUIRED) -> str:
    value = _typed(record, key, str, where, default)
    if default is _REQUIRED and not value.strip():
        raise InputError(f"{where}: key {key!r} is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: key {key!r} holds a lone surrogate, which is no text") from error
    return value


def _refuse_unknown(record: dict[str, Any], known: set[str], where: str) -> None:
    for key in record:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; known are {sorted(known)}")
