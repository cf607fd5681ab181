"""Cosine similarity of sentence embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from toolpick.datasets import Corpus, Tool
from toolpick.errors import InputError
from toolpick.scorers.bm25 import WORD
from toolpick.scorers.embeddings import cached_embeddings
from toolpick.scorers.sentence_models import LIBRARIES, SentenceModel, identity, model_folder


@dataclass(frozen=True)
class Dense:
    """Cosine between a query and "name description parameter-names", in -1..1; 0 where an embedding is zero.

    Texts longer than a model reads (256 tokens of MiniLM, 512 of BGE) count with their beginning. Tools of the
    same text score exactly alike.

    Args:
        model: a folder, or a name on the Hugging Face hub; all-MiniLM-L6-v2 comes with a package, offline.
        revision: branch, tag or commit on the hub; it says nothing of a folder or a package.
        query_instruction: put before each query, and before no tool.
        split_names: whether names of tools and parameters are taken apart into words, as `bm25` does.
        device: of torch, such as cpu or cuda.
        threads: of torch while it embeds, put back afterwards; the last bits of the scores depend on it.

    Raises:
        InputError: the model cannot be had or loaded, or the extra `dense` is not installed.
    """

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    revision: str = "main"
    query_instruction: str = ""
    split_names: bool = True
    device: str = "cpu"
    threads: int = 1

    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InputError(f"scorer dense: threads must be 1 or more, got {self.threads}")

    def fingerprint(self) -> str:
        """The model's files, the versions of what runs it, and where it runs."""
        return f"{identity(model_folder(self.model, self.revision))}\n{self.device} {self.threads}"

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]:
        cards, card_of_tool = _distinct([_card(tool, self.split_names) for tool in corpus.tools])
        requests, request_of_query = _distinct([self.query_instruction + text for text in corpus.queries])
        load = partial(SentenceModel, model_folder(self.model, self.revision), self.device, self.threads)
        vectors = _unit(cached_embeddings([*cards, *requests], self.fingerprint(), load))
        cosines = vectors[len(cards) :] @ vectors[: len(cards)].T
        return cosines[np.ix_(request_of_query, card_of_tool)]


def _card(tool: Tool, split_names: bool) -> str:
    names = [" ".join(WORD.findall(name)) if split_names else name for name in (tool.name, *tool.parameter_names)]
    return " ".join([names[0], tool.description, *names[1:]])


def _distinct(texts: list[str]) -> tuple[list[str], list[int]]:
    position: dict[str, int] = {}
    of_text = [position.setdefault(text, len(position)) for text in texts]
    return list(position), of_text


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros(vectors.shape), where=norms > 0)
