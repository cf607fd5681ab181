"""Reading JSON that somebody else wrote: every fault is an `InputError` that names file and key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolpick.datasets import Query
from toolpick.errors import InputError

REQUIRED = object()


def read_queries(path: Path) -> tuple[Query, ...]:
    """Queries `{"query", "relevant", "id"?}`, one JSON object a line; `id` defaults to the line number.

    Raises:
        InputError: a file that cannot be read, a line that is not UTF-8 or not a JSON object, a key that is
            missing, unknown or of the wrong type.
    """
    return tuple(_query(record, where, default_id=where.rpartition(":")[2]) for record, where in json_lines(path))


def json_lines(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each line's object and its place, "file:line". Empty lines are passed over.

    Raises:
        InputError: a file that cannot be read or is empty, or a line that is not UTF-8 or not a JSON object.
    """
    content = read_bytes(path)
    if not content.strip():
        raise InputError(f"{path}: the file is empty; it needs one JSON object a line")
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


def json_document(path: Path) -> Any:
    """What a whole file of JSON holds.

    Raises:
        InputError: a file that cannot be read, is not UTF-8 or not JSON, or an object with one key twice.
    """
    try:
        return json.loads(decoded(path), object_pairs_hook=lambda pairs: _object(pairs, path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON: {error.msg} at column {error.colno}") from error
    except InputError:
        raise
    except (RecursionError, ValueError) as error:  # nesting or digits beyond Python's own limits
        raise InputError(f"{path}: not JSON that can be read: {error}") from error


def decoded(path: Path) -> str:
    """A file's text, without a byte order mark."""
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 at byte {error.start} of the file") from error


def read_bytes(path: Path) -> bytes:
    """A file's bytes."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # a null byte in a path is a ValueError
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def a_dict(value: Any, where: str) -> dict[str, Any]:
    """The value, if it is a JSON object."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(value).__name__}")
    return value


def typed(record: dict[str, Any], key: str, kind: type, where: str, default: Any = REQUIRED) -> Any:
    """The value under a key, if it is of that type; `default` where the key is missing."""
    value = record.get(key, default)
    if value is REQUIRED:
        raise InputError(f"{where}: key {key!r} is missing")
    if not isinstance(value, kind):
        raise InputError(f"{where}: key {key!r} must be a {kind.__name__}, got {type(value).__name__}")
    return value


def text(record: dict[str, Any], key: str, where: str, default: Any = REQUIRED) -> str:
    """The text under a key; not empty where it is required."""
    value = typed(record, key, str, where, default)
    if default is REQUIRED and not value.strip():
        raise InputError(f"{where}: key {key!r} is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: key {key!r} holds a lone surrogate, which is no text") from error
    return value


def schema(record: dict[str, Any], key: str, where: str, default: Any = REQUIRED) -> dict[str, Any]:
    """The JSON schema under a key: an object whose `properties`, if any, is an object too."""
    value = typed(record, key, dict, where, default)
    if not isinstance(value.get("properties", {}), dict):
        raise InputError(f"{where}: key {key!r}: its 'properties' must be a JSON object")
    return value


def refuse_unknown(record: dict[str, Any], known: set[str], where: str) -> None:
    """Refuse keys that are not among the known ones."""
    for key in record:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; known are {sorted(known)}")


def _query(record: dict[str, Any], where: str, default_id: str) -> Query:
    refuse_unknown(record, {"id", "query", "relevant"}, where)
    relevant = typed(record, "relevant", list, where)
    if not all(isinstance(name, str) for name in relevant):
        raise InputError(f"{where}: key 'relevant' must be a list of tool names, got {relevant!r}")
    return Query(
        id=text(record, "id", where, default=default_id),
        text=text(record, "query", where),
        relevant=tuple(relevant),
        where=where,
    )


def _object(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"{path}: key {twice!r} occurs twice in one object; rename or remove one")
    return record
