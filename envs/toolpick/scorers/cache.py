"""Scores on disk, keyed by what they depend on, so that each (dataset, scorer) is scored once."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import inspect
import os
import pickle
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolpick.cache_folder import cache_folder
from toolpick.datasets import Corpus
from toolpick.scorers import Scorer

DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)  # what np.load makes of a damaged file


def cached_scores(corpus: Corpus, scorer: Scorer) -> NDArray[np.float64]:
    """`scorer(corpus)`, read from the cache where the same texts met the same scorer before.

    The key covers the corpus, the scorer's settings, the source files of its class and of the classes it
    inherits from, the versions of its libraries and its fingerprint, and all of these of the scorers among its
    settings. A scorer that is no dataclass or has no source file (defined in a notebook) is called every time. A
    damaged file is recomputed, and a cache that cannot be written is a warning.
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


def _key(corpus: Corpus, scorer: Scorer) -> str | None:
    digest = hashlib.sha256(corpus.content_hash.encode())
    parts = _parts(scorer)
    for part in parts:
        if not dataclasses.is_dataclass(part):
            return None
        settings = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
        try:
            digest.update(pickle.dumps((type(part).__qualname__, settings), protocol=4))
        except Exception:  # a setting that cannot be pickled, of whatever kind, has no key
            return None
        for kind in type(part).__mro__[:-1]:
            module = sys.modules.get(kind.__module__)
            if module is None or not getattr(module, "__file__", None):
                return None
            digest.update(inspect.getsource(module).encode())
        for library in getattr(part, "libraries", ()):
            try:
                digest.update(f"{library}={importlib.metadata.version(library)}".encode())
            except importlib.metadata.PackageNotFoundError:
                return None  # the scorer itself says best what to install
        fingerprint = getattr(part, "fingerprint", None)
        if fingerprint is not None:
            digest.update(fingerprint().encode())
    return digest.hexdigest()


def _parts(scorer: object) -> list[object]:
    """The scorer and the dataclasses among its settings, which may be scorers too."""
    if not dataclasses.is_dataclass(scorer):
        return [scorer]
    found: list[object] = [scorer]
    for field in dataclasses.fields(scorer):
        value = getattr(scorer, field.name)
        for item in value if isinstance(value, tuple | list) else [value]:
            if dataclasses.is_dataclass(item):
                found += _parts(item)
    return found


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
