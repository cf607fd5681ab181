"""python -m experiments.data: what it lists, fetches and verifies, and its exit codes."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import data
from experiments.compose import CONF
from toolpick import InputError
from toolpick.datasets import fetch
from toolpick.datasets.fetch import pinned

ROOT = Path(__file__).resolve().parents[1]
TOOLS, TWO = "dataset/plugin_des.json", "dataset/data/multi_tool_query_golden.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder of our own, with no way out to the network."""
    monkeypatch.setenv("TOOLPICK_DATA", str(tmp_path))
    return tmp_path


def command(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "experiments.data", *words], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env=os.environ | environment,
    )  # fmt: skip


def put(folder, path, content):
    place = folder / "metatool" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


@pytest.fixture
def small_pins(monkeypatch):
    """Two-tool MetaTool with other, short files pinned."""
    bodies = {TOOLS: b'{"a": "does a"}', TWO: b'[{"query": "q", "tool": ["a"]}]'}
    entries = json.loads(json.dumps(fetch._sources()))
    for path, body in bodies.items():
        entries["metatool"]["files"][path] = {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
    monkeypatch.setattr(fetch, "_sources", lambda: entries)
    return bodies


def test_the_list_has_a_row_for_every_dataset(folder):
    table = data.listed().set_index("dataset")
    assert set(table.index) == {path.stem for path in (CONF / "dataset").glob("*.yaml")}
    assert tuple(table.loc["metatool"]) == (
        "absent", "2", "2.7", "MIT", "github.com/HowieHwong/MetaTool at 35e81bb75768",
    )  # fmt: skip
    assert tuple(table.loc["bfcl_live"]) == ("present", "8", "4.3", "Apache-2.0", "package bfcl-eval==2026.3.23")
    assert table.loc["stabletoolbench", "files"] == "6"
    assert table.loc["openapi", "needs"] == "files of your own"
    assert table.loc["synthetic", "needs"] == "nothing: it is generated"


def test_the_list_counts_what_is_there(folder):
    put(folder, TOOLS, b"x")
    table = data.listed().set_index("dataset")
    assert table.loc["metatool_two_tools", "state"] == "1 of 2"
    put(folder, TWO, b"x")
    assert data.listed().set_index("dataset").loc["metatool_two_tools", "state"] == "present"


def test_verify_tells_whole_damaged_and_absent_files_apart(folder, small_pins, capsys):
    assert data.verify(["metatool_two_tools"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"absent  metatool/{TOOLS}", f"absent  metatool/{TWO}"]
    put(folder, TOOLS, small_pins[TOOLS])
    put(folder, TWO, small_pins[TWO] + b" ")
    assert data.verify(["metatool_two_tools"]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [f"ok      metatool/{TOOLS}"]
    assert "multi_tool_query_golden.json has sha256" in shown.err


def test_fetch_goes_on_after_a_failure_and_counts_it(folder, small_pins, capsys):
    put(folder, TWO, small_pins[TWO])
    assert data.fetch(["metatool_two_tools"]) == 1
    shown = capsys.readouterr()
    assert f"metatool/{TWO}" in shown.out
    assert f"cannot read {folder}/metatool/{TOOLS}" in shown.err
    put(folder, TOOLS, small_pins[TOOLS])
    assert data.fetch(["metatool_two_tools"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["here", "here"]


def test_all_datasets_together_name_each_file_once():
    files = data._distinct([])
    assert len(files) == len(set(files)) == 20 + 3 + 6
    assert {file.dataset for file in files} == {"bfcl", "metatool", "stabletoolbench"}
    assert set(pinned("metatool", [TOOLS, TWO])) < set(files)


def test_an_unknown_dataset_is_refused():
    with pytest.raises(InputError, match=r"no dataset 'metatol'; there are \['bfcl_live'"):
        data.chosen(["metatol"])


def test_the_command_line_by_its_exit_codes(tmp_path):
    listed = command("list", TOOLPICK_DATA=str(tmp_path))
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "stabletoolbench  absent" in listed.stdout
    assert command("verify", "metatool", TOOLPICK_DATA=str(tmp_path)).returncode == 0
    put(tmp_path, TOOLS, b"{}")
    failed = {
        ("verify", "metatool"): "plugin_des.json has sha256",
        ("fetch", "metatool"): "TOOLPICK_DATA is set",
        ("fetch", "nobody"): "no dataset 'nobody'",
    }
    for words, message in failed.items():
        done = command(*words, TOOLPICK_DATA=str(tmp_path))
        assert done.returncode == 1
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    usage = command("get")
    assert usage.returncode == 2
    assert "invalid choice: 'get'" in usage.stderr
