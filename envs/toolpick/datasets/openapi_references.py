"""`$ref` in an OpenAPI document, replaced by what it names."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from toolpick.errors import InputError

OPERATION_LIMIT = 10_000  # values an operation may grow to before its references are cut
DOCUMENT_LIMIT = 2_000_000  # values of all operations together
_SCHEMA, _NAMES, _DATA = "schema", "names", "data"  # how the keys of an object are to be read
_DATA_KEYS = {"example", "examples", "default", "enum", "const"}


class References:
    """Follows the local references of one document.

    A reference inside its own expansion, and any reference once an operation has grown beyond OPERATION_LIMIT
    values, is cut: it becomes `{}`, which is the schema of anything. Keys beside a `$ref` win over the keys of what
    it names.

    Args:
        document: the whole document.
        path: its file, for messages.
    """

    def __init__(self, document: dict[str, Any], path: str) -> None:
        self._document, self._path = document, path
        self._total = self._operation = 0

    def begin(self) -> None:
        """The next operation starts with nothing spent."""
        self._operation = 0

    def inline(self, node: Any, where: str) -> Any:
        """A copy of the node with every reference followed or cut.

        Raises:
            InputError: a reference to another document or to nothing, or more than DOCUMENT_LIMIT values.
        """
        return self._inline(node, where, frozenset(), _SCHEMA)

    def follow(self, node: Any, where: str) -> Any:
        """What the node names, if it is a reference; its parts are left as they are."""
        seen: set[str] = set()
        while isinstance(node, dict) and isinstance(node.get("$ref"), str):
            reference = node["$ref"]
            if reference in seen:
                raise InputError(f"{where}: $ref {reference!r} leads back to itself")
            seen.add(reference)
            node = self._named(reference, where)
        return node

    def _inline(self, node: Any, where: str, within: frozenset[str], reads: str) -> Any:
        self._total += 1
        self._operation += 1
        if self._total > DOCUMENT_LIMIT:
            raise InputError(f"{where}: with references followed the file has more than {DOCUMENT_LIMIT} values")
        if isinstance(node, list):
            return [self._inline(part, where, within, reads) for part in node]
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref") if reads == _SCHEMA else None
        if not isinstance(reference, str):
            return self._inline_values(node, where, within, reads)
        beside = {key: value for key, value in node.items() if key != "$ref"}
        beside = self._inline_values(beside, where, within, reads)
        target = self._named(reference, where)
        if reference in within or self._operation > OPERATION_LIMIT:
            return beside
        named = self._inline(target, where, within | {reference}, reads)
        return named | beside if isinstance(named, dict) else named

    def _inline_values(self, node: dict[str, Any], where: str, within: frozenset[str], reads: str) -> dict[str, Any]:
        return {key: self._inline(value, where, within, _reads(key, reads)) for key, value in node.items()}

    def _named(self, reference: str, where: str) -> Any:
        if not reference.startswith("#"):
            raise InputError(f"{where}: $ref {reference!r} names another document; bundle the file first")
        node: Any = self._document
        for token in reference[1:].split("/")[1:]:
            key = unquote(token).replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, dict) and key in node:
                node = node[key]
            else:
                raise InputError(f"{where}: $ref {reference!r} names nothing in {self._path}")
        return node


def _reads(key: str, reads: str) -> str:
    """How to read what lies under a key: a property may be called "default", and data may hold a "$ref"."""
    if reads != _SCHEMA:
        return _SCHEMA if reads == _NAMES else _DATA
    return _NAMES if key == "properties" else _DATA if key in _DATA_KEYS else _SCHEMA
