"""What the README and the docs show works as shown."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from loopback import endpoint, say

from experiments.compose import AFTERWARDS, CONF, GROUPS, composed
from toolpick.shortlist_rules import make_rules

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHORTLIST = (ROOT / "docs" / "shortlist.md").read_text(encoding="utf-8")
DATA = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
DOWNSTREAM = (ROOT / "docs" / "downstream.md").read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_readmes_python_runs():
    names: dict = {}
    for block in blocks(README, "python"):
        exec(block.replace("20_000", "300"), names)  # the same lines, less training
    assert len(names["rows"]) == len(names["stop_at_once"]) == 120
    assert (names["stop_at_once"]["depth"] == 1).all()


def test_the_readmes_commands_compose():
    commands = re.findall(r"python -m experiments\.run (.*?)(?:\s+#.*)?$", README, re.MULTILINE)
    assert len(commands) >= 4
    for words in commands:
        overrides = [word.strip("'") for word in words.split() if word != "-m" and not word.startswith("hydra/")]
        composed([re.sub(r"=(bor,f1|range\(5\))$", lambda m: "=bor" if "bor" in m[1] else "=1", o) for o in overrides])


def test_the_readmes_table_names_every_variant():
    for group in GROUPS + AFTERWARDS:
        (row,) = re.findall(rf"^\| `{group}` \|(.*)\|$", README, re.MULTILINE)
        assert set(re.findall(r"`([a-z0-9_]+)`", row)) == {path.stem for path in (CONF / group).glob("*.yaml")}


def test_the_page_on_data_names_every_dataset():
    table = DATA.partition("\n- ")[0]
    assert set(re.findall(r"`([a-z0-9_]+)`", table)) == {path.stem for path in (CONF / "dataset").glob("*.yaml")}


def test_the_example_of_a_new_reward_works(small_rankings):
    names: dict = {"__name__": "squared"}
    exec(blocks(SHORTLIST, "python")[0], names)
    assert yaml.safe_load(blocks(SHORTLIST, "yaml")[0]) == {"_target_": "toolpick.rewards.squared.Squared"}
    pay = make_rules(small_rankings, names["Squared"]()).pay
    assert pay.max() == 1.0


def test_every_column_of_the_tables_is_defined():
    from experiments.collect import summarize
    from toolpick.datasets.synthetic import Synthetic
    from toolpick.rankings import rank
    from toolpick.scorers.given import Given
    from toolpick.shortlist import ShortlistEnv
    from toolpick_agents.evaluation import COLUMNS, evaluate

    env = ShortlistEnv(rankings=rank(Synthetic(n_queries=10)(), Given()))
    columns = [*COLUMNS, *summarize(evaluate(lambda observations: 0, env))]
    columns += ["dataset", "scorer", "agent", "reward", "seed", "train_seconds", "run_id", "experiment"]
    for column in columns:
        generic = re.sub(r"_(easy|medium|hard|very_hard)$", "_B", column)
        assert re.search(rf"^\|[^|]*`{generic}`", SHORTLIST, re.MULTILINE), f"docs define no column {column}"


def test_every_downstream_column_is_defined_and_the_knobs_are_those_of_the_yamls():
    from experiments.downstream import summarize

    rows = {"first_relevant_rank": [1], "depth": [1], "shown": [True], "right": [True], "failed": [False]}
    columns = ["run_id", "dataset", "scorer", "agent", "reward", "seed", "chooser", "simulated"]
    for column in [*columns, *summarize(pd.DataFrame(rows))]:
        generic = re.sub(r"_(easy|medium|hard|very_hard)$", "_B", column)
        assert re.search(rf"^\|[^|]*`{generic}`", DOWNSTREAM, re.MULTILINE), f"docs define no column {column}"
    choosers = ("simulated", "simulated_embedding")
    made = [yaml.safe_load((CONF / "chooser" / f"{name}.yaml").read_text()) for name in choosers]
    for knob in ("none", "confusion", "steepness"):
        (cells,) = re.findall(rf"^\| `{knob}` \|.*?\| (\S+) \| (\S+) \|$", DOWNSTREAM, re.MULTILINE)
        assert [float(cell) for cell in cells] == [one[knob] for one in made]


def test_the_calibration_table_of_the_docs_is_what_the_command_prints(bfcl):
    from experiments.calibrate_chooser import BM25, cases, residuals
    from toolpick.choosers.simulated import SimulatedOracle
    from toolpick.scorers.bm25_okapi import Bm25Okapi

    section = DOWNSTREAM.partition("### Calibration")[2].partition("With `--embedding")[0]
    shown = [line.strip("| ").split(" | ") for line in section.splitlines() if re.match(r"\| (fixed|BoR)", line)]
    printed = residuals(SimulatedOracle(), cases(bfcl, Bm25Okapi(), BM25))
    numbers = ["mean_depth", "coverage", "published", "simulated", "residual"]
    for cells, (_, row) in zip(shown, printed.iterrows(), strict=True):
        assert [cells[0], cells[2]] == [row["policy"], row["queries"]]
        for cell, name in zip([cells[1], *cells[3:]], numbers, strict=True):
            places = len(cell.partition(".")[2])
            assert float(cell) == pytest.approx(round(row[name], places), abs=1e-9), (cells, name)


def test_the_chat_example_of_the_docs_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks(DOWNSTREAM, "python")
    names: dict = {}
    with endpoint(say("blue")) as server:
        exec(example.replace("http://localhost:8000/v1", server.base_url), names)
    assert names["answer"].text == "blue"
    assert names["answer"].prompt_tokens == 7
    assert len(list((tmp_path / "outputs" / "chat").iterdir())) == 1


@pytest.mark.parametrize("page", ["README.md", "docs/shortlist.md", "docs/data.md", "docs/downstream.md"])
def test_linked_files_exist_and_no_placeholder_is_left(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert ((ROOT / page).parent / target).exists(), target
    assert "@@" not in text
