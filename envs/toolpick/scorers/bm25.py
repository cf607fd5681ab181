"""BM25 with a tokenizer made for tool names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from toolpick.datasets import Corpus

# Runs of capitals before a capitalised word, words with or without a first capital, numbers, other scripts:
# "getHTTPResponse_v2" -> get, HTTP, Response, v, 2.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def tokenize(text: str) -> list[str]:
    """Lower-cased words, with snake_case, camelCase and dotted names taken apart."""
    return [word.lower() for word in WORD.findall(text)]


@dataclass(frozen=True)
class Bm25:
    """Lucene's BM25 (bm25s) over "name description parameter-names".

    Args:
        k1: term-frequency saturation.
        b: length normalisation.
    """

    k1: float = 1.5
    b: float = 0.75

    libraries: ClassVar[tuple[str, ...]] = ("bm25s", "numpy")

    def __call__(self, corpus: Corpus) -> NDArray[np.float64]:
        import bm25s

        cards = [tokenize(" ".join([tool.name, tool.description, *tool.parameter_names])) for tool in corpus.tools]
        scores = np.zeros((len(corpus.queries), len(corpus.tools)))
        if not any(cards):
            return scores  # no card has a word
        index = bm25s.BM25(k1=self.k1, b=self.b, method="lucene")
        index.index(cards, show_progress=False)
        for row, text in enumerate(corpus.queries):
            known = [word for word in tokenize(text) if word in index.vocab_dict]
            if known:
                scores[row] = index.get_scores(known)
        return scores
