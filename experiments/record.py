"""One run, one folder: rows, curve, agent and run.json. A folder with a run.json is finished."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from toolpick.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
# What computes a result; figures and tables may change without a run being stale.
_SOURCES = (
    "envs/toolpick",
    "agents/toolpick_agents",
    "experiments/build.py",
    "experiments/monitor.py",
    "experiments/run.py",
)
_LIBRARIES = (
    "gymnasium",
    "stable-baselines3",
    "torch",
    "numpy",
    "scipy",
    "pandas",
    "bm25s",
    "rank-bm25",
    "scikit-learn",
)


@dataclass(frozen=True)
class Run:
    """A finished run on disk.

    Attributes:
        folder: holds run.json, rows.parquet, curves.parquet where the agent learns, and agent/.
        meta: run.json: id, config, names, seed, git, versions, code, data, seconds.
    """

    folder: Path
    meta: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        return self.meta["config"]

    def rows(self) -> pd.DataFrame:
        """A row a held-out query, see `toolpick_agents.evaluation.COLUMNS`."""
        return pd.read_parquet(self.folder / "rows.parquet")

    def curves(self) -> pd.DataFrame:
        """A row an evaluation on the validation queries; empty where nothing is learned."""
        return pd.read_parquet(self.folder / "curves.parquet")

    def learned_on(self) -> set[str]:
        """`text_hash` of every training and validation query."""
        return set(json.loads((self.folder / "learned_on.json").read_text(encoding="utf-8")))


def text_hash(text: str) -> str:
    """Sixteen hex digits that stand for a query's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def open_run(folder: Path) -> Run:
    """Read a finished run.

    Raises:
        InputError: the folder holds none.
    """
    try:
        return Run(folder, json.loads((folder / "run.json").read_text(encoding="utf-8")))
    except (OSError, json.JSONDecodeError) as error:
        raise InputError(f"{folder} holds no finished run: {error}") from error


def open_runs(folder: Path) -> list[Run]:
    """All finished runs under a folder, by id.

    Raises:
        InputError: there are none.
    """
    paths = sorted(folder.glob("[!.]*/run.json"))  # a name with a dot is what a killed process left
    runs = [open_run(path.parent) for path in paths]
    if not runs:
        raise InputError(f"no finished run under {folder}")
    return runs


def still_valid(folder: Path, data: dict[str, str], code: str) -> Run | None:
    """The finished run in this folder if code, libraries and data are still those that made it."""
    if not (folder / "run.json").is_file():
        return None
    run = open_run(folder)
    same = run.meta["versions"] == versions() and run.meta["code"] == code and run.meta["data"] == data
    return run if same else None


@contextmanager
def recording(folder: Path) -> Iterator[Path]:
    """A scratch folder beside `folder` that takes its place when the block succeeds, and vanishes when not.

    Raises:
        InputError: the disk is full or the place cannot be written.
    """
    scratch = folder.parent / f".{folder.name}.{uuid.uuid4().hex[:8]}"
    try:
        scratch.mkdir(parents=True)
        yield scratch
        _replace(scratch, folder)
    except OSError as error:
        raise InputError(f"cannot write run {folder}: {error.strerror or error}; nothing was kept") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _replace(scratch: Path, folder: Path) -> None:
    old = scratch.with_name(f"{scratch.name}.old")
    if folder.exists():
        os.rename(folder, old)
    os.rename(scratch, folder)
    shutil.rmtree(old, ignore_errors=True)


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a result depends on."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python} | {name: importlib.metadata.version(name) for name in _LIBRARIES}


def code_hash(config: Mapping[str, Any]) -> str:
    """sha256 over the source that computes results, the modules that the configuration names included."""
    digest = hashlib.sha256(_own_code().encode())
    for target in sorted(set(_targets(config))):
        digest.update(target.encode() + _module_source(target.rpartition(".")[0]))
    return digest.hexdigest()


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table whole or not at all.

    Raises:
        InputError: the disk is full or the place cannot be written.
    """
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(scratch, index=False)
        os.replace(scratch, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("_target_"), str):
            yield node["_target_"]
        for value in node.values():
            yield from _targets(value)
    elif isinstance(node, list):
        for value in node:
            yield from _targets(value)


@functools.cache
def _module_source(name: str) -> bytes:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return b""
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    return origin.read_bytes() if origin is not None and origin.is_file() else b""


@functools.cache
def _own_code() -> str:
    digest = hashlib.sha256()
    for source in _SOURCES:
        path = ROOT / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()


@functools.cache
def git_state() -> dict[str, Any]:
    """Commit of the checkout and whether it was dirty; nulls outside a checkout."""

    def ask(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    try:
        return {"commit": ask("rev-parse", "HEAD").strip(), "dirty": bool(ask("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
