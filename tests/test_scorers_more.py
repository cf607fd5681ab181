"""Fusion by hand, chance, the oracle's stated quality; and that no other scorer knows the labels."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from experiments.build import make
from experiments.compose import CONF, composed
from toolpick import InputError
from toolpick.datasets import Corpus, Dataset, Query, Tool
from toolpick.datasets.synthetic import Synthetic
from toolpick.metrics import p_rand
from toolpick.rankings import rank
from toolpick.scorers import OracleScorer
from toolpick.scorers.bm25 import Bm25
from toolpick.scorers.cache import cached_scores
from toolpick.scorers.dense import Dense
from toolpick.scorers.given import Given
from toolpick.scorers.hybrid import Hybrid
from toolpick.scorers.noisy_oracle import NoisyOracle
from toolpick.scorers.random import RandomScores

SCORERS = sorted(path.stem for path in (CONF / "scorer").glob("*.yaml"))


@dataclasses.dataclass(frozen=True)
class Fixed:
    """The same row of scores for every query."""

    row: tuple[float, ...]

    calls = 0

    def __call__(self, corpus):
        Fixed.calls += 1
        return np.tile(np.array(self.row), (len(corpus.queries), 1))


def corpus_of(n_tools: int, n_queries: int = 1) -> Corpus:
    return Corpus(tuple(Tool(f"t{i}") for i in range(n_tools)), tuple(f"q{i}" for i in range(n_queries)))


def test_fusion_by_hand():
    fused = Hybrid((Fixed((3.0, 2.0, 1.0)), Fixed((0.1, 0.3, 0.2))))(corpus_of(3, 2))
    row = [1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62]
    assert fused.tolist() == [pytest.approx(row, rel=1e-15)] * 2


def test_tools_that_tie_in_a_component_share_the_mean_of_their_ranks():
    fused = Hybrid((Fixed((5.0, 0.0, 7.0, 0.0, 0.0)), Fixed((1.0, 1.0, 1.0, 1.0, 2.0))), k=1)(corpus_of(5))
    rank_sums = [1 / 3 + 1 / 4.5, 1 / 5 + 1 / 4.5, 1 / 2 + 1 / 4.5, 1 / 5 + 1 / 4.5, 1 / 5 + 1 / 2]
    assert fused[0].tolist() == pytest.approx(rank_sums, rel=1e-15)
    assert fused[0, 1] == fused[0, 3]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12), st.randoms())
def test_the_order_of_the_registry_is_no_signal(pairs, random):
    shuffled = random.sample(range(len(pairs)), len(pairs))
    rows = [tuple(float(pair[side]) for pair in pairs) for side in (0, 1)]
    fused = Hybrid([Fixed(row) for row in rows])(corpus_of(len(pairs)))
    moved = Hybrid([Fixed(tuple(row[i] for i in shuffled)) for row in rows])(corpus_of(len(pairs)))
    assert moved[0].tolist() == fused[0, shuffled].tolist()


def test_one_component_keeps_its_ranking(three_tools):
    assert rank(three_tools, Hybrid([Given()])).order.tolist() == rank(three_tools, Given()).order.tolist()


def test_fusion_is_cached_with_all_that_its_components_depend_on(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLPICK_CACHE", str(tmp_path))
    corpus = corpus_of(2)
    Fixed.calls = 0
    for _ in range(2):
        cached_scores(corpus, Hybrid([Fixed((1.0, 2.0))]))
    assert Fixed.calls == 1
    assert cached_scores(corpus, Hybrid([Fixed((2.0, 1.0))])).tolist() != [[1 / 62, 1 / 61]]
    assert Fixed.calls == 2
    cached_scores(corpus, Hybrid([Fixed((2.0, 1.0))], k=1))  # its component is cached by itself
    assert Fixed.calls == 2
    monkeypatch.setattr(Fixed, "fingerprint", lambda self: "other files", raising=False)
    cached_scores(corpus, Hybrid([Fixed((2.0, 1.0))]))
    assert Fixed.calls == 3
    monkeypatch.setattr(Fixed, "__module__", "a_notebook")  # no source file: called every time, and so is the fusion
    for _ in range(2):
        cached_scores(corpus, Hybrid([Fixed((2.0, 1.0))]))
    assert Fixed.calls == 5


def test_bad_fusions_are_refused():
    with pytest.raises(InputError, match="components is empty"):
        Hybrid([])
    for k in (0, -1, float("inf"), float("nan")):
        with pytest.raises(InputError, match="k must be positive and finite"):
            Hybrid([Bm25()], k=k)
    with pytest.raises(InputError, match=r"component Fixed returned shape \(1, 2\), expected \(1, 3\)"):
        Hybrid([Fixed((1.0, 2.0))])(corpus_of(3))
    with pytest.raises(InputError, match="scorer Hybrid gave nan to tool 't0'"):
        rank(Dataset("d", (Tool("t0"), Tool("t1")), (Query("q", "", ("t1",)),)), Hybrid([Fixed((np.nan, 1.0))]))


def test_the_configured_fusion_repeats_the_settings_of_its_parts():
    parts = [make(composed([f"scorer={name}"]), "scorer") for name in ("bm25", "minilm")]
    assert make(composed(["scorer=hybrid"]), "scorer") == Hybrid(parts, k=60)


def test_random_scores_know_the_seed_and_nothing_else():
    scores = RandomScores(3)(corpus_of(5, 4))
    other_texts = Corpus(tuple(Tool(f"other {i}", "text") for i in range(5)), ("a", "b", "c", "d", "e", "f"))
    assert (RandomScores(3)(other_texts)[:4] == scores).all()
    assert (RandomScores(4)(corpus_of(5, 4)) != scores).all()


def test_random_scores_find_what_a_random_draw_finds():
    data = Synthetic(n_tools=50, n_relevant=3, n_queries=4000)()
    first = rank(data, RandomScores()).first_relevant_rank
    for depth in (1, 5, 20):
        chance = float(p_rand(50, 3, depth))
        assert (first <= depth).mean() == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 4000))


def relevant_wins(data: Dataset, scores: np.ndarray) -> float:
    """Share of (relevant, irrelevant) pairs of one query that are in the right order: the area under the curve."""
    shares = [np.mean(row[labels][:, None] > row[~labels]) for row, labels in zip(scores, data.labels, strict=True)]
    return float(np.mean(shares))


@pytest.mark.parametrize("quality", [0.0, 0.5, 1.0, 2.0, 3.0])
def test_a_relevant_tool_outscores_another_with_probability_phi_of_quality_over_root_two(quality):
    data = Synthetic(n_tools=30, n_relevant=2, n_queries=4000, found_at={1: 0.2})()
    area = relevant_wins(data, NoisyOracle(quality).oracle_scores(data))
    assert area == pytest.approx(norm.cdf(quality / np.sqrt(2)), abs=0.015)


def test_the_oracle_adds_quality_to_noise_that_knows_no_labels(three_tools):
    noise = NoisyOracle(0.0, seed=5).oracle_scores(three_tools)
    assert (NoisyOracle(1.5, seed=5).oracle_scores(three_tools) == noise + 1.5 * three_tools.labels).all()
    assert (NoisyOracle(0.0, seed=6).oracle_scores(three_tools) != noise).all()
    assert rank(three_tools, NoisyOracle(1e3)).first_relevant_rank.tolist() == [1, 1]


def test_labels_by_hand(three_tools):
    assert three_tools.labels.tolist() == [[True, False, False], [False, True, True]]
    with pytest.raises(ValueError, match="read-only"):
        three_tools.labels[0, 0] = False


def test_the_oracle_is_asked_by_rank_alone(three_tools):
    for ask in (NoisyOracle(), Hybrid([NoisyOracle()]), Hybrid([Bm25(), Hybrid([NoisyOracle()])])):
        with pytest.raises(InputError, match="needs the labels"):
            ask(three_tools.corpus)
    with pytest.raises(InputError, match="needs the labels"):
        rank(three_tools, Hybrid([NoisyOracle()]))
    for quality in (-0.1, float("inf"), float("nan")):
        with pytest.raises(InputError, match="quality must be 0 or more and finite"):
            NoisyOracle(quality)


def test_only_scorers_that_say_oracle_are_given_labels():
    oracles = {name for name in SCORERS if isinstance(make(composed([f"scorer={name}"]), "scorer"), OracleScorer)}
    assert oracles == {"noisy_oracle"}
    assert all("oracle" in name for name in oracles)


TEXTS = (
    ("get_weather", "Forecast for a city", "Will it rain in Paris?"),
    ("factorial", "Multiply all numbers up to n", "What is the factorial of 5?"),
    ("translate", "Put a text into another language", "Say cheese in French"),
    ("stock_price", "Latest price of a share", "How much is a share of Acme?"),
)


def labelled(relevant: tuple[int, ...]) -> Dataset:
    """The same texts and scores, with tool `relevant[i]` relevant to query i."""
    tools = tuple(Tool(name, description) for name, description, _ in TEXTS)
    queries = tuple(Query(f"q{i}", TEXTS[i][2], (tools[tool].name,)) for i, tool in enumerate(relevant))
    return Dataset("texts", tools, queries, np.arange(16.0).reshape(4, 4))


def scores_under_permuted_labels(name: str) -> list[list]:
    """What `rank` makes of three labelings, in one cache."""
    scorer = make(composed([f"scorer={name}"]), "scorer")
    if isinstance(scorer, Dense):
        scorer = dataclasses.replace(scorer, model=Dense().model)  # bge's settings with weights that are here
    rankings = [rank(labelled(relevant), scorer) for relevant in ((0, 1, 2, 3), (3, 2, 0, 1), (1, 1, 3, 0))]
    return [[ranked.scores.tolist(), ranked.order.tolist()] for ranked in rankings]


@pytest.mark.parametrize("name", [name for name in SCORERS if name != "noisy_oracle"])
def test_permuting_the_labels_changes_no_score(name):
    first, *others = scores_under_permuted_labels(name)
    assert all(other == first for other in others)


def test_the_same_test_fails_on_the_oracle():
    first, *others = scores_under_permuted_labels("noisy_oracle")
    assert all(other != first for other in others)


@pytest.mark.parametrize("name", SCORERS)
def test_same_seed_same_scores_without_a_cache(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLPICK_CACHE", str(tmp_path / "first"))
    once = scores_under_permuted_labels(name)
    monkeypatch.setenv("TOOLPICK_CACHE", str(tmp_path / "second"))
    assert scores_under_permuted_labels(name) == once
