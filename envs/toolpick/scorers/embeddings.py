"""Sentence embeddings on disk, so that each distinct text is embedded once by each model."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from toolpick.cache_folder import cache_folder
from toolpick.scorers.cache import DAMAGED, write_whole

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

_SEGMENT = 1024  # texts a file: what an interrupt can cost


def cached_embeddings(texts: Sequence[str], identity: str, load: Callable[[], Embed]) -> NDArray[np.float32]:
    """(len(texts), d) embeddings, computed for texts that this model has not met and read for all others.

    A model has a folder of segments, files that are written whole and never changed, each with up to 1,024
    embeddings under the sha256 of identity and text. A damaged segment is a warning and is removed: its texts
    are embedded again when next asked for. A segment that cannot be written is a warning too.

    Args:
        texts: any texts, repeats allowed.
        identity: all that the embedding of a text depends on beside the text.
        load: called once, and only where something is missing; returns the function that embeds texts.
    """
    folder = cache_folder() / "embeddings" / hashlib.sha256(identity.encode()).hexdigest()
    keys = [hashlib.sha256(f"{identity}\0{text}".encode()).hexdigest() for text in texts]
    known = _read(folder, set(keys))
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if missing:
        # Texts of about one length share a segment, which lets the model embed more of them at a time.
        todo = sorted(missing, key=lambda key: len(missing[key]))
        embed = load()
        with tqdm(total=len(todo), unit="text", desc="embedding", delay=2, leave=False, disable=None) as progress:
            for start in range(0, len(todo), _SEGMENT):
                part = todo[start : start + _SEGMENT]
                vectors = np.asarray(embed([missing[key] for key in part]), dtype=np.float32)
                _write(folder, part, vectors)
                known.update(zip(part, vectors, strict=True))
                progress.update(len(part))
    return np.stack([known[key] for key in keys])


def _read(folder: Path, wanted: set[str]) -> dict[str, NDArray[np.float32]]:
    known: dict[str, NDArray[np.float32]] = {}
    for path in sorted(folder.glob("*.npz")) if folder.is_dir() else []:
        try:
            with np.load(path, allow_pickle=False) as stored:  # the zip's CRC catches flipped bits
                keys, vectors = stored["keys"].astype(str).tolist(), stored["vectors"]
            if vectors.ndim != 2 or len(keys) != len(vectors):
                raise ValueError(f"{len(keys)} keys, vectors of shape {vectors.shape}")
        except FileNotFoundError:
            continue  # removed by another process since it was listed
        except DAMAGED as error:
            warnings.warn(f"embedding cache {path} is damaged ({error}); embedding its texts again", stacklevel=4)
            path.unlink(missing_ok=True)
            continue
        known.update((key, vector) for key, vector in zip(keys, vectors, strict=True) if key in wanted)
    return known


def _write(folder: Path, keys: Sequence[str], vectors: NDArray[np.float32]) -> None:
    path = folder / f"{hashlib.sha256(''.join(keys).encode()).hexdigest()}.npz"
    try:
        write_whole(path, keys=np.array(keys, dtype="S64"), vectors=vectors)
    except OSError as error:
        warnings.warn(f"embedding cache {path} cannot be written: {error.strerror}", stacklevel=4)
