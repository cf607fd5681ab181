"""Scores, their cache, and what becomes of them in rankings."""

import dataclasses

import numpy as np
import pytest

from toolpick import InputError
from toolpick.datasets import Dataset, Query, Tool
from toolpick.rankings import rank
from toolpick.scorers import cache
from toolpick.scorers.bm25 import Bm25, tokenize
from toolpick.scorers.bm25_okapi import Bm25Okapi
from toolpick.scorers.given import Given


def test_okapi_finds_the_relevant_tool_first_for_65_5_percent_of_bfcl(bfcl_rankings):
    assert (bfcl_rankings.first_relevant_rank == 1).sum() == 262
    assert (bfcl_rankings.first_relevant_rank == 1).mean() == 0.655


def test_bm25_beats_okapi_on_bfcl(bfcl, bfcl_rankings):
    found = (rank(bfcl, Bm25()).first_relevant_rank == 1).mean()
    assert found > (bfcl_rankings.first_relevant_rank == 1).mean()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getHTTPResponse_v2", ["get", "http", "response", "v", "2"]),
        ("calculate_triangle_area", ["calculate", "triangle", "area"]),
        ("math.factorial(n=5)", ["math", "factorial", "n", "5"]),
        ("wetter für 天気", ["wetter", "f", "ü", "r", "天気"]),
        ("", []),
    ],
)
def test_names_are_taken_apart(text, words):
    assert tokenize(text) == words


def test_a_query_without_known_words_scores_nothing():
    data = Dataset("d", (Tool("alpha"), Tool("beta")), (Query("q", "zzz", ("beta",)),))
    assert Bm25()(data.corpus).tolist() == [[0.0, 0.0]]
    assert rank(data, Bm25()).order.tolist() == [[0, 1]]


def test_ties_keep_registry_order(three_tools):
    tied = Dataset("t", three_tools.tools, three_tools.queries, np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]))
    assert rank(tied, Given()).order.tolist() == [[1, 2, 0], [0, 1, 2]]


def test_rankings_by_hand(three_tools):
    rankings = rank(three_tools, Given())
    assert rankings.order.tolist() == [[0, 2, 1], [0, 1, 2]]
    assert rankings.scores.tolist() == [[3.0, 2.0, 1.0], [5.0, 4.0, 1.0]]
    assert rankings.relevant.tolist() == [[True, False, False], [False, True, True]]
    assert rankings.first_relevant_rank.tolist() == [1, 2]
    assert rankings.n_relevant.tolist() == [1, 2]
    swapped = rankings.subset([1, 0])
    assert swapped.query_ids == ("q1", "q0")
    assert swapped.first_relevant_rank.tolist() == [2, 1]
    with pytest.raises(ValueError, match="read-only"):
        rankings.scores[0, 0] = 9.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e7])
def test_scores_that_are_not_finite_are_refused_by_tool_and_query(three_tools, bad):
    scores = three_tools.scores.copy()
    scores[1, 2] = bad
    data = Dataset("three", three_tools.tools, three_tools.queries, scores)
    with pytest.raises(InputError, match=r"scorer Given gave .* to tool 'mul' for query 'q1' of three"):
        rank(data, Given())


def test_given_needs_scores(bfcl):
    with pytest.raises(InputError, match="brings no scores"):
        rank(bfcl, Given())


def test_a_scorer_of_the_wrong_shape_is_refused(three_tools):
    with pytest.raises(InputError, match=r"returned shape \(3,\) on three, expected \(2, 3\)"):
        rank(three_tools, lambda corpus: np.zeros(3))


@dataclasses.dataclass(frozen=True)
class Counting:
    """Counts how often it is really asked."""

    offset: float = 0.0

    calls = 0

    def __call__(self, corpus):
        Counting.calls += 1
        return np.full((len(corpus.queries), len(corpus.tools)), self.offset)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLPICK_CACHE", str(tmp_path))
    Counting.calls = 0
    return tmp_path


def test_scores_are_computed_once_for_each_dataset_and_scorer(own_cache, three_tools, bfcl):
    for _ in range(3):
        assert cache.cached_scores(three_tools.corpus, Counting(2.0))[0, 0] == 2.0
    assert Counting.calls == 1
    cache.cached_scores(three_tools.corpus, Counting(3.0))
    cache.cached_scores(bfcl.corpus, Counting(2.0))
    assert Counting.calls == 3


class Plain:
    """No dataclass: what it depends on cannot be known."""

    def __init__(self, value):
        self.value = value

    def __call__(self, corpus):
        return np.full((len(corpus.queries), len(corpus.tools)), self.value)


@dataclasses.dataclass(frozen=True, eq=False)
class Long:
    """Its array's repr is elided."""

    values: np.ndarray

    def __call__(self, corpus):
        return np.full((len(corpus.queries), len(corpus.tools)), self.values.sum())


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Counting

    def __call__(self, corpus):
        return self.inner(corpus)


def test_scorers_that_differ_never_share_a_cache_entry(own_cache, three_tools):
    corpus = three_tools.corpus
    assert [cache.cached_scores(corpus, Plain(value))[0, 0] for value in (1.0, 2.0, 3.0)] == [1.0, 2.0, 3.0]  # pyright: ignore
    array = np.zeros(5000)
    other = array.copy()
    other[2500] = 7.0
    assert [cache.cached_scores(corpus, Long(values))[0, 0] for values in (array, other)] == [0.0, 7.0]
    assert [cache.cached_scores(corpus, Outer(Counting(value)))[0, 0] for value in (1.0, 2.0)] == [1.0, 2.0]
    one, two = (Tool("t", "", {"properties": dict.fromkeys(names)}) for names in (("a", "b"), ("b", "a")))
    hashes = {Dataset("d", (tool,), (Query("q", "", ("t",)),)).corpus.content_hash for tool in (one, two)}
    assert len(hashes) == 2


def test_a_registry_without_a_word_scores_nothing():
    data = Dataset("d", (Tool("!!!"), Tool("???")), (Query("q", "hello", ("???",)),))
    assert Bm25()(data.corpus).tolist() == [[0.0, 0.0]]


def test_a_damaged_cache_file_is_scored_again(own_cache, three_tools):
    cache.cached_scores(three_tools.corpus, Counting())
    (file,) = (own_cache / "scores").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    for damaged in (bytes(content), file.read_bytes()[:40], b""):
        file.write_bytes(damaged)
        with pytest.warns(UserWarning, match="is damaged"):
            assert cache.cached_scores(three_tools.corpus, Counting()).tolist() == np.zeros((2, 3)).tolist()
    assert Counting.calls == 4


def test_a_cache_that_cannot_be_written_is_a_warning(own_cache, three_tools):
    (own_cache / "scores").write_text("a file is in the way")
    with pytest.warns(UserWarning, match="cannot be written"):
        cache.cached_scores(three_tools.corpus, Counting())
    assert Counting.calls == 1


def test_okapi_equals_a_plain_computation(three_tools):
    """BM25Okapi by its formula, with rank-bm25's floor for negative inverse document frequencies."""
    tools = (Tool("add numbers"), Tool("sub numbers"), Tool("mul"), Tool("mul big numbers"))
    data = Dataset("d", tools, (Query("q", "Mul numbers", ("mul",)),))
    documents = [tool.name.split() for tool in tools]
    average = sum(map(len, documents)) / 4
    count = {word: sum(word in document for document in documents) for document in documents for word in document}
    idf = {word: np.log(4 - n + 0.5) - np.log(n + 0.5) for word, n in count.items()}
    floor = 0.25 * sum(idf.values()) / len(idf)
    idf = {word: value if value >= 0 else floor for word, value in idf.items()}
    expected = []
    for document in documents:
        norm = 1.5 * (0.25 + 0.75 * len(document) / average)
        expected.append(sum(idf[w] * document.count(w) * 2.5 / (document.count(w) + norm) for w in ("mul", "numbers")))
    assert Bm25Okapi()(data.corpus)[0].tolist() == pytest.approx(expected)
