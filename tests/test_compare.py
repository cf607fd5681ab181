"""Two agents on the same queries: what is paired, and what is refused."""

import pandas as pd
import pytest

from experiments.compare import compare, measured
from experiments.compose import composed
from experiments.run import execute
from experiments.stats import paired_bootstrap
from toolpick import InputError
from toolpick.metrics import bor_reward, p_rand

TINY = [
    "dataset=synthetic",
    "dataset.n_tools=20",
    "dataset.n_queries=60",
    "scorer=given",
    "max_depth=10",
    "progress=false",
]


def run(outputs, *overrides):
    return execute(composed([*TINY, f"outputs={outputs}", *overrides]))


def test_measures_by_hand():
    rows = pd.DataFrame({"depth": [2, 4], "hits": [1, 0], "n_relevant": [1, 1], "n_tools": [8, 8]})
    found = measured(rows)
    assert found["bor_reward"].tolist() == [2.0, 0.0]
    assert found["f1"].tolist() == [pytest.approx(2 / 3), 0.0]
    assert found["hit"].tolist() == [1.0, 0.0]
    assert found["bor_reward"].tolist() == bor_reward(rows["hits"] > 0, p_rand(8, 1, rows["depth"])).tolist()


def test_the_comparison_is_the_paired_bootstrap_of_the_rows(tmp_path):
    runs = [run(tmp_path, "agent=fixed_depth", f"agent.depth={k}", f"seed={s}")
            for k in (1, 3) for s in (0, 1)]  # fmt: skip
    table = compare(runs, "fixed_3", "fixed_1", ("bor_reward", "depth"))
    ours, theirs = ([measured(one.rows()) for one in runs[start : start + 2]] for start in (2, 0))
    expected = paired_bootstrap(ours, theirs, "bor_reward")
    first = table.iloc[0]
    assert (first["difference"], first["low"], first["high"]) == expected
    assert (first["dataset"], first["reward"], first["seeds"]) == ("synthetic", "bor", 2)
    depth = table.iloc[1]
    assert (depth["ours"], depth["theirs"], depth["difference"]) == (3.0, 1.0, 2.0)


def test_agents_that_never_meet_or_are_ambiguous_are_refused(tmp_path):
    runs = [run(tmp_path, "agent=fixed_depth", "agent.depth=1"), run(tmp_path, "agent=best_fixed_depth", "seed=1")]
    with pytest.raises(InputError, match="no runs of the same"):
        compare(runs, "fixed_1", "best_fixed_depth")
    runs += [run(tmp_path, "agent=best_fixed_depth", "seed=1", "gamma=0.5")]
    with pytest.raises(InputError, match="several experiments under seed 1"):
        compare([*runs, run(tmp_path, "agent=fixed_depth", "agent.depth=1", "seed=1")], "fixed_1", "best_fixed_depth")
