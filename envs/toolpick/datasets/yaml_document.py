"""YAML that somebody else wrote, read as the JSON it stands for: bounded, and without surprises.

Plain scalars are null, true, false, numbers or text, as in YAML 1.2: `no` and `2024-01-01` are text. Tags that ask
for other types are refused. The parser's events are put together here, without recursion; a document that its
aliases blow up is refused before anything walks through it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolpick.datasets.records import decoded
from toolpick.errors import InputError

SIZE_LIMIT = 32 * 2**20  # characters
NODE_LIMIT = 2_000_000  # values, with every alias counted as what it stands for
DEPTH_LIMIT = 200

_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"
_MERGE = object()  # the key `<<`


def yaml_document(path: Path) -> Any:
    """What a file of one YAML document holds: dicts with text keys, lists, text, numbers, booleans and None.

    Aliased parts are shared, not copied: do not change them.

    Raises:
        InputError: a file that cannot be read, is not UTF-8 or not YAML, holds several documents, a key twice, an
            unknown tag or an alias inside what it names, or exceeds the limits; the message names file and line.
    """
    import yaml

    content = decoded(path)
    if len(content) > SIZE_LIMIT:
        raise InputError(f"{path}: {len(content)} characters, more than the {SIZE_LIMIT} that are read")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _built(yaml.parse(content, Loader=loader), path)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{path}{line}: not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: not YAML: {str(error).splitlines()[0]}") from error


@dataclass
class _Open:
    """A mapping or sequence that has begun and not ended."""

    anchor: str | None
    value: dict[str, Any] | list[Any]
    key: Any = None
    merged: list[Any] = field(default_factory=list)
    size: int = 1


def _built(events: Iterator[Any], path: Path) -> Any:
    import yaml

    anchors: dict[str, tuple[Any, int]] = {}
    stack = [_Open(None, [])]  # the outermost list takes the documents
    for event in events:
        where = f"{path}:{event.start_mark.line + 1}"
        if isinstance(event, yaml.DocumentStartEvent) and stack[0].value:
            raise InputError(f"{where}: a second document begins; one file holds one")
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            _refuse_tag(event.tag, ("map", "seq"), where)
            stack.append(_Open(event.anchor, {} if isinstance(event, yaml.MappingStartEvent) else []))
            if len(stack) > DEPTH_LIMIT:
                raise InputError(f"{where}: nested deeper than {DEPTH_LIMIT} levels")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = stack.pop()
            value = _with_merged(done, where) if done.merged else done.value
            _put(stack[-1], value, done.size, where)
            if done.anchor:
                anchors[done.anchor] = value, done.size
        elif isinstance(event, yaml.ScalarEvent):
            key = isinstance(stack[-1].value, dict) and stack[-1].key is None
            value = _key(event) if key else _scalar(event, where)
            if event.anchor:
                anchors[event.anchor] = event.value if key else value, 1
            _put(stack[-1], value, 1, where, key=key)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise InputError(f"{where}: alias *{event.anchor} names nothing that ended before it")
            _put(stack[-1], *anchors[event.anchor], where)
    documents = stack[0].value
    if not documents:
        raise InputError(f"{path}: holds no document")
    return documents[0]  # pyright: ignore[reportArgumentType]


def _put(parent: _Open, value: Any, size: int, where: str, *, key: bool = False) -> None:
    parent.size += size
    if parent.size > NODE_LIMIT:
        raise InputError(f"{where}: with aliases followed there are more than {NODE_LIMIT} values")
    if isinstance(parent.value, list):
        parent.value.append(value)
    elif key:
        if value in parent.value:
            raise InputError(f"{where}: key {value!r} occurs twice in one mapping; rename or remove one")
        parent.key = value
    elif parent.key is None:
        raise InputError(f"{where}: a key must be text")
    elif parent.key is _MERGE:
        parent.merged += value if isinstance(value, list) else [value]
        parent.key = None
    else:
        parent.value[parent.key] = value
        parent.key = None


def _with_merged(mapping: _Open, where: str) -> dict[str, Any]:
    """Own keys win over merged ones, earlier merged ones over later."""
    result: dict[str, Any] = {}
    for part in reversed(mapping.merged):
        if not isinstance(part, dict):
            raise InputError(f"{where}: '<<' takes a mapping or a list of mappings, got {type(part).__name__}")
        result |= part
    return result | dict(mapping.value)


def _key(event: Any) -> Any:
    return _MERGE if event.value == "<<" and not event.style else event.value


def _scalar(event: Any, where: str) -> Any:
    _refuse_tag(event.tag, ("str", "int", "float", "bool", "null"), where)
    text = event.value
    if not event.implicit[0] and event.tag in (None, "!", f"{_TAG}str"):  # quoted, a block, or tagged as text
        return text
    if text.lower() in _CONSTANTS and (text.islower() or text.istitle() or text.isupper() or text in _CONSTANTS):
        return _CONSTANTS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _refuse_tag(tag: str | None, known: tuple[str, ...], where: str) -> None:
    if tag not in (None, "!", *(f"{_TAG}{name}" for name in known)):
        raise InputError(f"{where}: tag {tag!r} is not read; write the value without it")
