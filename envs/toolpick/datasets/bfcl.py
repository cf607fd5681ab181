"""The Berkeley Function-Calling Leaderboard's simple_python category, read from the bfcl-eval package."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

from toolpick.datasets import Dataset, Query, Tool
from toolpick.errors import InputError

BFCL_EVAL_VERSION = "2026.3.23"
_FILE = "BFCL_v4_simple_python.json"
_SHA256 = "82dd63ba502eb2520c6b5d1d9a5c4b590e03ff261565175561f6228a367d1991"
_INSTALL = f"run: pip install --no-deps bfcl-eval=={BFCL_EVAL_VERSION}"


@dataclass(frozen=True)
class BfclSimplePython:
    """400 queries over 370 tools keyed by name, one relevant tool each.

    26 names come with several descriptions: the first is kept, as in the paper's notebooks.

    Raises:
        InputError: bfcl-eval is missing, of another version, or its file has other bytes than the tested one.
    """

    def __call__(self) -> Dataset:
        records = [json.loads(line) for line in _verified_bytes().decode("utf-8").splitlines()]
        tools: dict[str, Tool] = {}
        queries = []
        for record in records:
            (function,) = record["function"]
            name = function["name"]
            tools.setdefault(name, Tool(name, function["description"], function["parameters"]))
            text = "\n".join(message["content"] for message in record["question"][0])
            queries.append(Query(record["id"], text, (name,)))
        return Dataset("bfcl_simple_python", tuple(tools.values()), tuple(queries))


def _verified_bytes() -> bytes:
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the package bfcl-eval, which carries the BFCL data, is not installed; {_INSTALL}")
    try:
        version = importlib.metadata.version("bfcl-eval")
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    if version != BFCL_EVAL_VERSION:
        raise InputError(f"bfcl-eval is version {version}, tested with {BFCL_EVAL_VERSION}; {_INSTALL}")
    path = Path(spec.submodule_search_locations[0]) / "data" / _FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; {_INSTALL} --force-reinstall") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != _SHA256:
        raise InputError(f"{path} has sha256 {digest}, expected {_SHA256}; {_INSTALL} --force-reinstall")
    return content
