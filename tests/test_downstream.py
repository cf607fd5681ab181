"""From finished runs to choice accuracies, whole: runs, command line, lists out and choices in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from loopback import completion, endpoint, send

from experiments import calibrate_chooser
from experiments.compose import afterwards, composed
from experiments.downstream import choices, downstream, find_runs, main, shortlists, summarize, write_lists
from experiments.run import execute
from toolpick import InputError
from toolpick.choosers.simulated import SimulatedOracle

ROOT = Path(__file__).resolve().parents[1]
SMALL = ["dataset=synthetic", "dataset.n_tools=30", "dataset.n_queries=100", "scorer=given", "max_depth=20"]
COLUMNS = [
    *("run_id", "dataset", "scorer", "agent", "reward", "seed", "chooser", "simulated", "n_queries", "mean_depth"),
    *("coverage", "choice_accuracy", "choice_when_shown", "failures"),
    *(
        f"{column}_{bucket}"
        for bucket in ("easy", "medium", "hard", "very_hard")
        for column in ("queries", "choice_accuracy", "choice_when_shown")
    ),
]


def command(module, *words):
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("downstream")
    for depth in (1, 5):
        execute(composed([*SMALL, "agent=fixed_depth", f"agent.depth={depth}", f"outputs={folder}", "progress=false"]))
    return folder / "runs"


@pytest.fixture(scope="module")
def runs(runs_folder):
    return sorted(find_runs([runs_folder]), key=lambda run: run.config["agent"]["depth"])


def test_a_table_with_a_row_a_run_and_a_row_a_choice(runs):
    table, details = downstream(runs, afterwards(["chooser=simulated", "chooser.seed=3"]))
    assert list(table.columns) == COLUMNS
    assert table["agent"].tolist() == ["fixed_1", "fixed_5"]
    assert table["chooser"].tolist() == ["simulated"] * 2
    assert table["simulated"].all()
    assert table["mean_depth"].tolist() == [1.0, 5.0]
    assert len(details) == 60
    by_run = details.groupby("run_id", sort=False)["right"].mean()
    assert by_run.tolist() == table["choice_accuracy"].tolist()
    recorded = [run.rows() for run in runs]
    assert table["coverage"].tolist() == [(rows["hits"] > 0).mean() for rows in recorded]
    assert (table["choice_accuracy"] <= table["coverage"]).all()


def test_accuracies_count_all_queries_and_those_shown_by_hand():
    rows = pd.DataFrame(
        {
            "query_id": list("abcde"),
            "depth": [1, 1, 3, 3, 2],
            "first_relevant_rank": [1, 1, 2, 4, 30],
            "shown": [True, True, True, False, False],
            "chosen": ["x", "y", None, "z", None],
            "failed": [False, False, True, False, False],
            "right": [True, False, False, False, False],
        }
    )
    summary = summarize(rows)
    assert summary["choice_accuracy"] == pytest.approx(1 / 5)
    assert summary["choice_when_shown"] == pytest.approx(1 / 3)
    assert (summary["coverage"], summary["mean_depth"], summary["failures"]) == (3 / 5, 2.0, 1)
    assert (summary["choice_accuracy_easy"], summary["choice_when_shown_easy"]) == (0.5, 0.5)
    assert (summary["choice_accuracy_medium"], summary["choice_when_shown_medium"]) == (0.0, 0.0)
    assert summary["choice_accuracy_very_hard"] == 0.0
    assert summary["queries_hard"] == 0
    assert pd.isna(summary["choice_accuracy_hard"])
    assert pd.isna(summary["choice_when_shown_very_hard"])


def test_a_perfect_chooser_is_right_wherever_the_tool_is_shown(runs):
    for run in runs:
        rows = choices(run, SimulatedOracle(none=0.0, confusion=0.0))
        assert (rows["right"] == rows["shown"]).all()
        assert rows["chosen"].notna().tolist() == rows["shown"].tolist()


def test_lists_out_and_choices_in_give_the_same_table(runs, tmp_path):
    """A model that always takes the first tool, asked elsewhere."""
    assert write_lists(runs, tmp_path / "lists.jsonl") == 60
    lines = [json.loads(line) for line in (tmp_path / "lists.jsonl").read_text().splitlines()]
    assert set(lines[0]) == {"query_id", "query", "shown"}
    (tmp_path / "choices.jsonl").write_text(
        "".join(json.dumps(line | {"chosen": line["shown"][0]}) + "\n" for line in lines)
    )
    table, details = downstream(runs, afterwards(["chooser=recorded", f"chooser.path={tmp_path / 'choices.jsonl'}"]))
    assert not table["simulated"].any()
    first = {line["query_id"]: line["shown"][0] for line in lines}
    assert details["chosen"].tolist() == [first[query] for query in details["query_id"]]
    assert table["choice_accuracy"].nunique() == 1  # showing more changes nothing for this model
    assert table["choice_accuracy"][0] == table["coverage"][0]


def test_counted_misses_are_failures_in_the_table(runs, tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    words = ["chooser=recorded", f"chooser.path={tmp_path / 'none.jsonl'}"]
    with pytest.raises(InputError, match="no choice recorded"):
        downstream(runs, afterwards(words))
    table, _ = downstream(runs, afterwards([*words, "chooser.strict=false"]))
    assert table["failures"].tolist() == [30, 30]
    assert table["choice_accuracy"].tolist() == [0.0, 0.0]


def test_a_run_whose_data_changed_is_refused(runs):
    run = runs[0]
    run = type(run)(run.folder, run.meta | {"data": {"synthetic": "other"}})
    with pytest.raises(InputError, match="can no longer be rebuilt"):
        shortlists(run)


def test_runs_are_found_by_folder_or_by_parent_and_counted_once(runs_folder, runs, tmp_path):
    assert [run.meta["id"] for run in find_runs([runs[0].folder])] == [runs[0].meta["id"]]
    assert len(find_runs([runs_folder, runs[0].folder])) == 2
    with pytest.raises(InputError, match="no finished run under"):
        find_runs([tmp_path])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "choose one variant, e.g. chooser=NAME"),
        (["chooser=llm", "chooser=recorded"], "choose one variant"),
        (["chooser=smart"], r"no variant 'smart' of chooser; there are \['llm', 'recorded', 'simulated'"),
        (["chooser=recorded"], r"chooser\.path must be given, e\.g\. chooser\.path=VALUE"),
        (["chooser=simulated", "chooser.sed=1"], "'chooser.sed=1'"),
        (["chooser=simulated", "chooser.seed"], "not of the form key=value"),
        (["chooser=simulated", "scorer=bm25"], "scorer"),
        (["chooser=simulated", "chooser.seed={"], "'chooser.seed={'"),
    ],
)
def test_bad_chooser_settings_are_refused_with_a_message(overrides, message):
    with pytest.raises(InputError, match=message):
        afterwards(overrides)


def test_the_command_prints_and_writes_the_same_twice(runs_folder, tmp_path):
    outputs = []
    for name in ("a", "b"):
        done = command("experiments.downstream", runs_folder, "chooser=simulated", "-o", tmp_path / name / "t.csv")
        assert done.returncode == 0, done.stderr
        assert "simulated: the choices are" in done.stdout
        assert "fixed_5" in done.stdout
        outputs.append((tmp_path / name / "t.csv").read_bytes())
        assert len(pd.read_parquet(tmp_path / name / "t.parquet")) == 60
    assert outputs[0] == outputs[1]
    assert list(pd.read_csv(tmp_path / "a" / "t.csv").columns) == COLUMNS


def ends(monkeypatch, main, *words):
    """The message with which a command line ends."""
    monkeypatch.setattr(sys, "argv", ["command", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        main()
    return str(caught.value)


def test_the_command_ends_bad_input_with_a_message(runs_folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    for words, message in (
        ([runs_folder], "error: choose one variant"),
        (["chooser=simulated"], "error: name a run folder"),
        ([tmp_path, "chooser=simulated"], "error: no finished run under"),
        ([runs_folder, "chooser=simulated", "chooser.none=-1"], "none must be 0 or more"),
        ([runs_folder, "chooser=simulated", "-o", tmp_path / "t.parquet"], "name a .csv file"),
        ([runs_folder, "chooser=simulated", "--lists", tmp_path / "l"], "leave chooser=simulated out"),
        ([runs_folder, "chooser=llm", "chooser.chat.model=m", "chooser.chat.base_url=x"], "'base_url' must look like"),
        ([runs_folder, "chooser=simulated", "-o", tmp_path / "file" / "t.csv"], "error: cannot write"),
        ([runs_folder, "--lists", tmp_path / "file" / "l"], "error: cannot write"),
    ):
        assert message in ends(monkeypatch, main, *words), words


def test_an_endpoint_that_is_down_ends_with_a_message(runs_folder, tmp_path, monkeypatch):
    words = ["chooser.chat.base_url=http://127.0.0.1:9/v1", "chooser.chat.model=m", "chooser.chat.retries=0"]
    words += [f"chooser.chat.cache={tmp_path}", "-o", tmp_path / "t.csv"]
    message = ends(monkeypatch, main, runs_folder, "chooser=llm", *words)
    assert message.startswith("error: http://127.0.0.1:9/v1, model 'm': the connection failed")
    assert not (tmp_path / "t.csv").exists()


def test_a_model_behind_an_endpoint_from_the_command_line(runs_folder, tmp_path, monkeypatch, capsys):
    """A model that always takes the first tool of the list."""

    def first(handler, request):
        card = request["messages"][-1]["content"].splitlines()[1].removeprefix("1. ")
        send(handler, completion(json.dumps({"tool": json.loads(card)["name"]})))

    with endpoint(first) as server:
        words = ["chooser=llm", f"chooser.chat.base_url={server.base_url}", "chooser.chat.model=first"]
        words += [f"chooser.chat.cache={tmp_path / 'chat'}", "-o", str(tmp_path / "t.csv")]
        monkeypatch.setattr(sys, "argv", ["command", str(runs_folder), *words])
        main()
    table = pd.read_csv(tmp_path / "t.csv")
    assert set(table["chooser"]) == {"llm:first"}
    assert not table["simulated"].any()
    assert table["choice_accuracy"].nunique() == 1
    assert "simulated: the choices" not in capsys.readouterr().out
    assert len(list((tmp_path / "chat").glob("*.json"))) == len(server.requests) == 60


def test_the_calibration_command_shows_knobs_and_residuals():
    done = command("experiments.calibrate_chooser", "--embedding", "bm25")
    assert done.returncode == 0, done.stderr
    assert "fitted on bm25_okapi: none=0.0287 confusion=0.0395 steepness=13.1" in done.stdout
    assert "residual" in done.stdout


def test_the_calibration_refuses_an_unknown_scorer(monkeypatch):
    assert "nobody" in ends(monkeypatch, calibrate_chooser.main, "--embedding", "nobody")
