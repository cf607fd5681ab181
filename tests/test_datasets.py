"""What datasets hold, and that bad files are refused by file, line and key."""

import dataclasses
import importlib.metadata
import importlib.util
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpick import InputError
from toolpick.datasets import Dataset, Query, Tool
from toolpick.datasets import bfcl as bfcl_module
from toolpick.datasets.bfcl import BfclSimplePython
from toolpick.datasets.jsonl import Jsonl
from toolpick.datasets.synthetic import Synthetic
from toolpick.rankings import rank
from toolpick.scorers.given import Given


def test_bfcl_has_370_tools_and_400_queries_with_one_relevant_tool_each(bfcl):
    assert len(bfcl.tools) == 370
    assert len(bfcl.queries) == 400
    assert {len(query.relevant) for query in bfcl.queries} == {1}
    assert bfcl.tools[0].parameter_names == ("base", "height", "unit")


def test_missing_bfcl_eval_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"not installed.*pip install --no-deps bfcl-eval=="):
        BfclSimplePython()()


def test_another_version_of_bfcl_eval_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2025.1.1")
    with pytest.raises(InputError, match=r"version 2025\.1\.1, tested with"):
        BfclSimplePython()()


def test_changed_bfcl_data_is_refused_by_its_hash(monkeypatch):
    others = tuple(dataclasses.replace(file, sha256="0" * 64) for file in BfclSimplePython().needs)
    monkeypatch.setattr(bfcl_module, "pinned", lambda dataset, paths: others)
    with pytest.raises(InputError, match=r"BFCL_v4_simple_python\.json has sha256 .*--force-reinstall"):
        BfclSimplePython()()


def write(folder, tools, queries):
    paths = folder / "tools.jsonl", folder / "queries.jsonl"
    for path, lines in zip(paths, (tools, queries), strict=True):
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return Jsonl(str(paths[0]), str(paths[1]))


TOOL = {"name": "a", "description": "does a", "parameters": {"properties": {"x": {}}}}
QUERY = {"query": "please a", "relevant": ["a"]}


def test_jsonl_reads_tools_and_queries(tmp_path):
    data = write(tmp_path, [TOOL, {"name": "b"}, b""], [QUERY, {"id": "mine", "query": "b!", "relevant": ["b", "a"]}])()
    assert data.name == "queries"
    assert data.tools == (Tool("a", "does a", TOOL["parameters"]), Tool("b"))
    assert data.queries == (Query("1", "please a", ("a",)), Query("mine", "b!", ("b", "a")))


def test_jsonl_accepts_a_byte_order_mark(tmp_path):
    line = b"\xef\xbb\xbf" + json.dumps(TOOL).encode()
    assert len(write(tmp_path, [line], [QUERY])().tools) == 1


@pytest.mark.parametrize(
    ("tools", "queries", "message"),
    [
        ([TOOL, b'{"name": "b'], [QUERY], r"tools\.jsonl:2: not a JSON object"),
        ([TOOL, b'{"name": "\xff"}'], [QUERY], r"tools\.jsonl:2: not UTF-8"),
        ([TOOL, b'{"name": "\\ud800"}'], [QUERY], r"tools\.jsonl:2: key 'name' holds a lone surrogate"),
        ([TOOL, [1]], [QUERY], r"tools\.jsonl:2: expected a JSON object, got list"),
        ([TOOL, b"[" * 100_000], [QUERY], r"tools\.jsonl:2: "),
        ([TOOL, {"description": "x"}], [QUERY], r"tools\.jsonl:2: key 'name' is missing"),
        ([TOOL, {"name": 3}], [QUERY], r"tools\.jsonl:2: key 'name' must be a str, got int"),
        ([TOOL, {"name": " "}], [QUERY], r"tools\.jsonl:2: key 'name' is empty"),
        ([TOOL, {"name": "b", "parameters": []}], [QUERY], r"tools\.jsonl:2: key 'parameters' must be a dict"),
        ([{"name": "a", "parameters": {"properties": 3}}], [QUERY], r"tools\.jsonl:1: key 'parameters'.*'properties'"),
        ([TOOL, {"name": "b", "descripton": ""}], [QUERY], r"tools\.jsonl:2: unknown key 'descripton'"),
        ([TOOL, TOOL], [QUERY], r"tools\.jsonl:2: tool name 'a' occurs twice, first at .*tools\.jsonl:1"),
        ([], [QUERY], r"tools\.jsonl: the file is empty"),
        ([TOOL], [], r"queries\.jsonl: the file is empty"),
        ([TOOL], [QUERY, {"query": "b", "relevant": ["b"]}], r"queries\.jsonl:2: .* 'b' is not in the registry"),
        ([TOOL], [{"query": "b", "relevant": []}], r"queries\.jsonl:1: no relevant tool"),
        ([TOOL], [{"query": "b", "relevant": "a"}], r"queries\.jsonl:1: key 'relevant' must be a list"),
        ([TOOL], [{"query": "b", "relevant": [1]}], r"queries\.jsonl:1: key 'relevant' must be a list of tool names"),
        ([TOOL], [{"query": "b", "relevant": ["a", "a"]}], r"queries\.jsonl:1: a relevant tool is named twice"),
        ([TOOL], [{"query": "b"}], r"queries\.jsonl:1: key 'relevant' is missing"),
        ([TOOL], [QUERY | {"id": "x"}, QUERY | {"id": "x"}], r"queries\.jsonl:2: query id 'x' occurs twice"),
    ],
)  # fmt: skip
def test_bad_lines_are_refused_by_file_line_and_key(tmp_path, tools, queries, message):
    with pytest.raises(InputError, match=message):
        write(tmp_path, tools, queries)()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.jsonl"):
        Jsonl(str(tmp_path / "none.jsonl"), str(tmp_path / "none.jsonl"))()


@given(st.binary(max_size=200))
def test_any_bytes_give_a_dataset_or_our_own_error(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("fuzz")
    source = write(folder, [TOOL, content], [QUERY])
    message = ""
    try:
        source()
    except InputError as error:
        message = str(error)
    assert not message or "tools.jsonl" in message


def test_scores_of_the_wrong_shape_are_refused():
    with pytest.raises(InputError, match=r"scores have shape \(1, 1\), expected \(1, 2\)"):
        Dataset("d", (Tool("a"), Tool("b")), (Query("q", "", ("a",)),), np.zeros((1, 1)))


@given(
    n_tools=st.integers(12, 60),
    n_relevant=st.integers(1, 3),
    first=st.integers(0, 100),
    more=st.integers(0, 100),
    seed=st.integers(0, 5),
)
def test_synthetic_data_has_the_size_and_the_curve_it_was_asked_for(n_tools, n_relevant, first, more, seed):
    shares = {1: first / 200, 4: (first + more) / 200}
    source = Synthetic(n_tools, n_relevant, n_queries=50, found_at=shares, seed=seed)
    rankings = rank(source(), Given())
    assert rankings.n_tools == n_tools
    assert set(rankings.n_relevant) == {n_relevant}
    for k, share in shares.items():
        assert (rankings.first_relevant_rank <= k).mean() == pytest.approx(share, abs=0.5 / 50 + 1e-9)


def test_the_curve_survives_a_round_trip_through_json():
    curve = {2: 0.5, 10: 0.9}
    again = json.loads(json.dumps(curve))
    assert Synthetic(found_at=again)().content_hash == Synthetic(found_at=curve)().content_hash


def test_synthetic_data_is_a_function_of_its_settings():
    assert Synthetic(seed=1)().content_hash == Synthetic(seed=1)().content_hash
    assert Synthetic(seed=1)().content_hash != Synthetic(seed=2)().content_hash


@pytest.mark.parametrize(
    "settings",
    [
        {"n_tools": 0},
        {"n_tools": 3, "n_relevant": 4},
        {"n_queries": 0},
        {"signal": -1.0},
        {"found_at": {1: 0.5, 2: 0.4}},
        {"found_at": {1: 1.5}},
        {"found_at": {0: 0.5}},
        {"n_tools": 5, "found_at": {9: 0.5}},
    ],
)
def test_synthetic_settings_that_contradict_each_other_are_refused(settings):
    with pytest.raises(InputError, match="synthetic"):
        Synthetic(**settings)()


def test_the_hash_covers_labels_and_the_corpus_hides_them(three_tools):
    queries = (three_tools.queries[0], Query("q1", "times", ("add",)))
    other = Dataset("three", three_tools.tools, queries, three_tools.scores)
    assert other.content_hash != three_tools.content_hash
    assert other.corpus.content_hash == three_tools.corpus.content_hash
    assert not any("relevant" in vars(part) for part in (other.corpus, *other.corpus.tools))
