"""Named experiments from the command line to their folders: what fails is told, what is finished is not repeated."""

import json
import re

import pandas as pd
import pytest
from test_experiments import command

from experiments import study
from experiments.compose import CONF
from experiments.record import open_runs
from toolpick import InputError

TINY = [
    "dataset=synthetic", "dataset.n_tools=20", "dataset.n_queries=60", "max_depth=10", "curve_every=200", "reward=bor",
]  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    outputs = tmp_path_factory.mktemp("study")
    words = [*TINY, "scorer=given", "agent=fixed_depth", "agent.depth=0,3", "seed=0,1"]
    done = command("experiments.study", "grid", "rules", *words, "--outputs", outputs)
    assert done.returncode == 0, done.stderr
    return outputs, words, done


def test_a_study_files_each_run_once_and_tells_what_failed(small):
    outputs, _, done = small
    assert re.search(r"^grid +2 runs, 2 failed$", done.stdout, re.MULTILINE)
    assert "agent fixed_depth: depth must be in 1..10" in done.stdout
    assert len(open_runs(outputs / "runs")) == 2  # two experiments of the same configurations share their runs
    for name in ("grid", "rules"):
        table = pd.read_csv(outputs / name / "table.csv")
        assert table["seed"].tolist() == [0, 1]
        assert [run.folder.name for run in open_runs(outputs / name / "runs")] == sorted(table["run_id"])
        results = study.read(name, outputs)
        assert (len(results.runs), len(results.failures), results.missing) == (2, 2, 0)


def test_a_study_started_again_does_only_what_is_missing(small):
    outputs, words, _ = small
    made = {run.folder.name: (run.folder / "run.json").stat().st_mtime_ns for run in open_runs(outputs / "runs")}
    kept, lost = sorted(made)
    (outputs / "runs" / lost / "run.json").unlink()
    assert study.read("grid", outputs).missing == 1
    again = command("experiments.study", "grid", *words, "--outputs", outputs)
    assert again.returncode == 0, again.stderr
    after = {run.folder.name: (run.folder / "run.json").stat().st_mtime_ns for run in open_runs(outputs / "runs")}
    assert after[kept] == made[kept]
    assert after[lost] > made[lost]
    assert study.read("grid", outputs).missing == 0


def test_a_scorer_without_its_files_fails_with_its_reason_and_no_run_is_tried(tmp_path):
    words = [*TINY, "scorer=minilm", "scorer.model=/nowhere/model", "agent=fixed_depth,elbow", "seed=0"]
    done = command("experiments.study", "grid", *words, "--outputs", tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^grid +0 runs, 2 failed$", done.stdout, re.MULTILINE)
    assert "/nowhere/model" in done.stdout
    assert "Traceback" not in done.stderr
    assert len(json.loads((tmp_path / "grid" / "study.json").read_text())["failures"]) == 2


def test_words_that_name_nothing_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"there are .*grid"):
        study.configs("no_such")
    with pytest.raises(InputError, match=r"experiments\.study grid makes it"):
        study.read("grid", tmp_path)
    done = command("experiments.study", "record", "--outputs", tmp_path)
    assert done.returncode == 1
    assert "no experiment 'record' with a grid" in done.stderr


def test_the_list_counts_every_experiment_and_runs_nothing(tmp_path):
    done = command("experiments.study", "--list", "--outputs", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    listed = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}
    assert list(listed) == study.names()
    assert listed["grid"] == 3 * 2 * 3 * 5 * 3
    assert set(listed) == {path.stem for path in (CONF / "experiment").glob("*.yaml")}
    assert not (tmp_path / "out").exists()
    assert all(listed.values())
