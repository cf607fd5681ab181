"""Scores on disk, keyed by what they depend on, so that each (dataset, scorer) is scored once."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import os
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolpick.datasets import Corpus
from toolpick.scorers import Scorer

DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)  # what np.load makes of a damaged file


def cache_folder() -> Path:
    """The folder TOOLPICK_CACHE names, else toolpick under XDG_CACHE_HOME, else ~/.cache/toolpick."""
    named = os.environ.get("TOOLPICK_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(base) / "toolpick"


def cached_scores(corpus: Corpus, scorer: Scorer) -> NDArray[np.float64]:
    """`scorer(corpus)`, read from the cache where the same texts met the same scorer before.

    The key covers the corpus, the scorer's settings, its source file, the versions of its libraries, its
    fingerprint and all of these of its components. A scorer without a source file (defined in a notebook), or
    with such a component, is called every time. A damaged file is recomputed, and a cache that cannot be
    written is a warning.
    """
    key = _key(corpus, scorer)
    if key is None:
        return scorer(corpus)
    path = cache_folder() / "scores" / f"{key}.npz"
    try:
        with np.load(path, allow_pickle=False) as stored:  # the zip's CRC catches flipped bits
            return stored["scores"]
    except (FileNotFoundError, NotADirectoryError):
        pass
    except DAMAGED as error:
        warnings.warn(f"score cache {path} is damaged ({error}); scoring again", stacklevel=2)
    scores = scorer(corpus)
    try:
        write_whole(path, scores=scores)
    except OSError as error:
        warnings.warn(f"score cache {path} cannot be written: {error.strerror}", stacklevel=2)
    return scores


def write_whole(path: Path, **arrays: NDArray[Any]) -> None:
    """Write an .npz file that a reader sees whole or not at all.

    Raises:
        OSError: the folder or the file cannot be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        try:
            np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _key(corpus: Corpus, scorer: Scorer) -> str | None:
    facts = _facts(scorer)
    return None if facts is None else hashlib.sha256("\0".join([corpus.content_hash, *facts]).encode()).hexdigest()


def _facts(scorer: Scorer) -> list[str] | None:
    module = sys.modules.get(type(scorer).__module__)
    if module is None or not getattr(module, "__file__", None):
        return None
    try:
        libraries = {name: importlib.metadata.version(name) for name in getattr(scorer, "libraries", ())}
    except importlib.metadata.PackageNotFoundError:
        return None  # the scorer itself says best what to install
    facts = [type(scorer).__qualname__, repr(scorer), repr(libraries), inspect.getsource(module)]
    fingerprint = getattr(scorer, "fingerprint", None)
    if fingerprint is not None:
        facts.append(fingerprint())
    for component in getattr(scorer, "components", ()):
        inner = _facts(component)
        if inner is None:
            return None
        facts += inner
    return facts
