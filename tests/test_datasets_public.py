"""Public datasets: what they hold, against the published counts, and how their files are had."""

import csv
import dataclasses
import hashlib
import http.server
import io
import json
import threading
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from hydra.utils import instantiate

from experiments.compose import CONF
from toolpick import InputError
from toolpick.datasets import fetch
from toolpick.datasets.bfcl import BfclPooled, BfclSimplePython
from toolpick.datasets.fetch import PinnedFile, Repository, pinned
from toolpick.datasets.metatool import MetaTool
from toolpick.datasets.stabletoolbench import StableToolBench
from toolpick.rankings import rank
from toolpick.scorers.bm25 import Bm25


def loaded(source):
    if any(file.fault for file in source.needs):
        pytest.skip(f"the files of {source} are neither in TOOLPICK_DATA nor fetched: python -m experiments.data fetch")
    return source()


def variant(name):
    return instantiate(yaml.safe_load((CONF / "dataset" / f"{name}.yaml").read_text()), _convert_="all")


def sizes(data):
    return len(data.tools), len(data.queries), Counter(len(query.relevant) for query in data.queries)


# What the datasets hold


def test_simple_python_holds_what_it_held_before_the_other_categories_came():
    expected = "0941582aa2b8845d9e2d9be904a3487409e4717d5eb6df43cdda29713298edb4"
    assert BfclSimplePython()().content_hash == expected
    assert BfclPooled("any name", ["simple_python"])().content_hash == expected


def test_bfcl_single_turn_by_its_counts():
    assert sizes(variant("bfcl_single_turn")()) == (919, 1150, {1: 959, 2: 105, 3: 67, 4: 19})


def test_bfcl_live_by_its_counts():
    assert sizes(variant("bfcl_live")()) == (528, 1351, {1: 1335, 2: 14, 3: 1, 5: 1})


def test_a_function_called_often_is_relevant_once_and_only_users_are_heard():
    single, live = variant("bfcl_single_turn")(), variant("bfcl_live")()
    (query,) = [query for query in single.queries if query.id == "parallel_0"]
    assert query.relevant == ("spotify.play",)  # its answer calls it twice
    assert next(tool for tool in single.tools if tool.name == "spotify.play").parameter_names == ("artist", "duration")
    files = pinned("bfcl", ["BFCL_v4_live_simple.json"])
    records = [json.loads(line) for line in files[0].read().splitlines()]
    texts = {query.id: query.text for query in live.queries}
    prompted = [record for record in records if record["question"][0][0]["role"] == "system"]
    assert len(prompted) == 11
    for record in prompted:
        assert texts[record["id"]] == record["question"][0][1]["content"]


def test_a_category_that_is_not_pinned_is_refused():
    with pytest.raises(InputError, match=r"bfcl has no file 'BFCL_v4_simple_pithon\.json'; there are \['BFCL_v4_live"):
        BfclPooled("x", ["simple_pithon"])()


def test_metatool_by_its_published_counts():
    single, double = loaded(MetaTool()), loaded(MetaTool(tools_per_query=2))
    assert sizes(single) == (199, 20_614, {1: 20_614})
    assert sizes(double) == (199, 497, {2: 497})
    assert single.tools == double.tools
    assert len({query.relevant[0] for query in single.queries}) == 199
    assert len({name for query in double.queries for name in query.relevant}) == 15
    assert double.queries[0].relevant == ("FinanceTool", "NewsTool")
    rows = Counter((query.text, query.relevant) for query in single.queries)
    assert sum(rows.values()) - len(rows) == 51
    texts = Counter(text for text, _ in rows)
    assert sum(count > 1 for count in texts.values()) == 11


@pytest.mark.parametrize(("n_tools", "n_queries"), [(20, 2331), (50, 6396), (100, 11_576)])
def test_a_sub_registry_holds_n_tools_and_just_the_queries_that_fit(n_tools, n_queries):
    whole, part = loaded(MetaTool()), loaded(MetaTool(n_tools=n_tools))
    kept = {tool.name for tool in part.tools}
    assert (len(kept), len(part.queries)) == (n_tools, n_queries)
    assert part.tools == tuple(tool for tool in whole.tools if tool.name in kept)  # in registry order
    assert part.queries == tuple(query for query in whole.queries if query.relevant[0] in kept)


def test_sub_registries_are_a_function_of_the_seed_and_nested():
    names = {n: {tool.name for tool in loaded(MetaTool(n_tools=n, seed=3)).tools} for n in (20, 50, 100)}
    assert names[20] < names[50] < names[100]
    assert loaded(MetaTool(n_tools=20, seed=3)).content_hash == loaded(MetaTool(n_tools=20, seed=3)).content_hash
    assert names[20] != {tool.name for tool in loaded(MetaTool(n_tools=20, seed=4)).tools}


def test_metatool_settings_that_make_no_sense_are_refused():
    loaded(MetaTool())
    loaded(MetaTool(2))
    with pytest.raises(InputError, match="tools_per_query must be 1 or 2, got 3"):
        MetaTool(tools_per_query=3)
    for n_tools in (0, 200):
        with pytest.raises(InputError, match=rf"n_tools must be 1\.\.199, got {n_tools}"):
            MetaTool(n_tools=n_tools)()
    with pytest.raises(InputError, match="no query with 2 relevant tools fits the 1 tools of seed 0; take another"):
        MetaTool(2, n_tools=1)()


def test_stabletoolbench_pools_to_2479_pairs_and_765_queries_with_1_to_6_relevant():
    source = StableToolBench()
    data = loaded(source)
    assert sizes(data) == (2479, 765, {1: 27, 2: 527, 3: 151, 4: 42, 5: 15, 6: 3})
    pairs = set()
    for file in source.needs:  # counted again, from the files
        for record in json.loads(file.read()):
            pairs |= {(api["tool_name"], api["api_name"]) for api in record["api_list"]}
    assert {f"{tool}/{api}" for tool, api in pairs} == {tool.name for tool in data.tools}
    first = data.queries[0]
    assert (first.id, first.relevant) == ("G1_category_28", ("suivi-colis/Latest", "suivi-colis/All"))
    latest = next(tool for tool in data.tools if tool.name == "suivi-colis/Latest")
    assert latest.parameters["properties"]["colisId"]["type"] == "string"
    assert latest.parameters["required"] == ["colisId"]
    kinds = {card["type"] for tool in data.tools for card in tool.parameters["properties"].values()}
    assert kinds == {"string", "number", "boolean", "array", "object"}


@pytest.mark.parametrize(
    ("name", "found_first"),
    [("bfcl_single_turn", 0.7287), ("bfcl_live", 0.4863), ("metatool_two_tools", 0.2173), ("stabletoolbench", 0.5765)],
)
def test_bm25_finds_a_relevant_tool_first_as_often_as_the_page_says(name, found_first):
    rankings = rank(loaded(variant(name)), Bm25())
    assert (rankings.first_relevant_rank == 1).mean() == pytest.approx(found_first, abs=5e-5)
    page = (CONF.parent / "docs" / "data.md").read_text()
    assert f"| `{name}` | {rankings.n_tools:,} | {found_first:.3f} |" in page


# How files are had

PATH = "a folder/tools #1.json"
CONTENT = b'{"a": "one"}\n' * 50


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A stand-in for GitHub on the loopback address; `paths` holds what it serves, `asked` what it was asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        paths: ClassVar[dict[str, bytes]] = {}
        asked: ClassVar[list[str]] = []

        def do_GET(self):
            self.asked.append(self.path)
            body = self.paths.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format, *args):
            pass

    Handler.paths, Handler.asked = {}, []
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("TOOLPICK_DATA", raising=False)
    monkeypatch.setenv("TOOLPICK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "ADDRESS", f"http://127.0.0.1:{listener.server_address[1]}")
    yield Handler
    listener.shutdown()
    listener.server_close()


@pytest.fixture
def file():
    origin = Repository("some/where", "c0ffee" * 6 + "c0ff")
    return PinnedFile("demo", PATH, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "MIT", origin)


ASKED = "/some/where/" + "c0ffee" * 6 + "c0ff/a%20folder/tools%20%231.json"


def stored(tmp_path):
    return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_file_is_downloaded_once_into_the_cache(server, file, tmp_path):
    server.paths[ASKED] = CONTENT
    assert not file.present
    assert file.read() == CONTENT
    assert stored(tmp_path) == [tmp_path / "cache" / "data" / "demo" / PATH]
    assert file.present
    assert file.fault == ""
    assert file.read() == CONTENT
    assert server.asked == [ASKED]


def test_wrong_bytes_are_refused_and_leave_nothing(server, file, tmp_path):
    server.paths[ASKED] = CONTENT[:-1] + b"!"
    with pytest.raises(InputError, match=rf"sent other bytes than sha256 {file.sha256}.*TOOLPICK_DATA can name a"):
        file.read()
    assert stored(tmp_path) == []


def test_a_missing_file_is_named_with_its_repository(server, file, tmp_path):
    with pytest.raises(InputError) as caught:
        file.read()
    message = str(caught.value)
    assert "cannot fetch a folder/tools #1.json of github.com/some/where at c0ffeec0ffee: 404" in message
    assert f"TOOLPICK_DATA can name a folder that holds demo/{PATH}" in message
    assert stored(tmp_path) == []


def test_a_download_that_breaks_off_leaves_nothing(server, file, tmp_path, monkeypatch):
    def half(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:100])

    monkeypatch.setattr(server, "do_GET", half)
    with pytest.raises(InputError, match=r"cannot fetch|other bytes"):
        file.read()
    assert stored(tmp_path) == []


def test_without_a_network_the_message_says_what_to_do(file, monkeypatch, tmp_path):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("TOOLPICK_DATA", raising=False)
    monkeypatch.setenv("TOOLPICK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "ADDRESS", "http://127.0.0.1:1")  # nobody listens there
    with pytest.raises(InputError, match=r"cannot fetch .* of github\.com/some/where at .*TOOLPICK_DATA can name a"):
        file.read()


def test_a_damaged_file_in_the_cache_is_fetched_again(server, file, tmp_path):
    server.paths[ASKED] = CONTENT
    place = tmp_path / "cache" / "data" / "demo" / PATH
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT[:40])
    assert file.present
    assert "has sha256" in file.fault
    assert file.read() == CONTENT
    assert place.read_bytes() == CONTENT


def test_a_cache_that_cannot_be_written_is_an_input_error(server, file, tmp_path):
    server.paths[ASKED] = CONTENT
    (tmp_path / "cache").write_text("a file is in the way")
    with pytest.raises(InputError, match="cannot fetch"):
        file.read()


def test_the_named_folder_is_used_instead_and_nothing_is_fetched(server, file, tmp_path, monkeypatch):
    server.paths[ASKED] = CONTENT
    place = tmp_path / "own" / "demo" / PATH
    monkeypatch.setenv("TOOLPICK_DATA", str(tmp_path / "own"))
    with pytest.raises(InputError, match=r"cannot read .*; TOOLPICK_DATA is set, so .* must lie there: unset it"):
        file.read()
    place.parent.mkdir(parents=True)
    place.write_bytes(b"other")
    with pytest.raises(InputError, match=r"has sha256 .*, expected .*TOOLPICK_DATA is set"):
        file.read()
    place.write_bytes(CONTENT)
    assert file.read() == CONTENT
    assert server.asked == []
    assert stored(tmp_path) == []


def test_a_small_metatool_comes_over_the_wire_end_to_end(server, monkeypatch):
    rows = io.StringIO(newline="")
    csv.writer(rows).writerows([["Query", "Tool"], ["What is 2+2, then?", "calc"], ["Any news?", "news"]])
    bodies = {
        "dataset/plugin_des.json": json.dumps({"calc": "adds", "news": "reads"}).encode(),
        "dataset/data/all_clean_data.csv": rows.getvalue().encode(),
    }
    real = pinned("metatool", list(bodies))
    made = {file.path: dataclasses.replace(file, sha256=hashlib.sha256(bodies[file.path]).hexdigest()) for file in real}
    monkeypatch.setattr("toolpick.datasets.metatool.pinned", lambda dataset, paths: tuple(made[path] for path in paths))
    for file in real:
        assert isinstance(file.origin, Repository)
        server.paths[f"/{file.origin.name}/{file.origin.commit}/{file.path}"] = bodies[file.path]
    data = MetaTool()()
    assert [(query.text, query.relevant) for query in data.queries] == [
        ("What is 2+2, then?", ("calc",)),
        ("Any news?", ("news",)),
    ]
    assert [(tool.name, tool.description) for tool in data.tools] == [("calc", "adds"), ("news", "reads")]


def test_every_pin_is_whole():
    entries = json.loads(Path(fetch.__file__).with_name("sources.json").read_text())
    assert set(entries) == {"bfcl", "metatool", "stabletoolbench"}
    for dataset, entry in entries.items():
        for file in pinned(dataset, list(entry["files"])):
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.size > 0
            assert file.licence in ("MIT", "Apache-2.0")
        assert len(entry.get("commit", "0" * 40)) == 40


def test_the_makefile_installs_the_pinned_bfcl_eval():
    (file,) = pinned("bfcl", ["BFCL_v4_simple_python.json"])
    makefile = (CONF.parent / "Makefile").read_text()
    assert f"BFCL_EVAL := {str(file.origin).removeprefix('package ')}\n" in makefile
