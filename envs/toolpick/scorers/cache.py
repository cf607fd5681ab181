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

import numpy as np
from numpy.typing import NDArray

from toolpick.cache_folder import cache_folder
from toolpick.datasets import Corpus
from toolpick.scorers import Scorer


def cached_scores(corpus: Corpus, scorer: Scorer) -> NDArray[np.float64]:
    """`scorer(corpus)`, read from the cache where the same texts met the same scorer before.

    The key covers the corpus, the scorer's settings, its source file and the versions of its libraries. A
    scorer without a source file (defined in a notebook) is called every time. A damaged file is recomputed,
    and a cache that cannot be written is a warning.
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
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        warnings.warn(f"score cache {path} is damaged ({error}); scoring again", stacklevel=2)
    scores = scorer(corpus)
    try:
        _write_whole(path, scores)
    except OSError as error:
        warnings.warn(f"score cache {path} cannot be written: {error.strerror}", stacklevel=2)
    return scores


def _key(corpus: Corpus, scorer: Scorer) -> str | None:
    module = sys.modules.get(type(scorer).__module__)
    if module is None or not getattr(module, "__file__", None):
        return None
    libraries = {name: importlib.metadata.version(name) for name in getattr(scorer, "libraries", ())}
    facts = [corpus.content_hash, type(scorer).__qualname__, repr(scorer), repr(libraries)]
    facts.append(inspect.getsource(module))
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def _write_whole(path: Path, scores: NDArray[np.float64]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        try:
            np.savez(file, scores=scores)
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
