"""What the README and the docs show works as shown."""

import re
from pathlib import Path

import pytest
import yaml

from experiments.compose import CONF, GROUPS, composed
from toolpick.shortlist_rules import make_rules

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHORTLIST = (ROOT / "docs" / "shortlist.md").read_text(encoding="utf-8")
DATA = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


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
    for group in GROUPS:
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


@pytest.mark.parametrize("text", [README, SHORTLIST, DATA], ids=["README", "shortlist", "data"])
def test_linked_files_exist(text):
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target
    assert "@@" not in text, "a placeholder was left"
