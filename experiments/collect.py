"""From recorded rows to tables: one row a run.

python -m experiments.collect outputs/runs -o table.csv
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.compose import differing, experiment_of
from experiments.record import Run, open_runs, write_csv
from toolpick import metrics
from toolpick.errors import InputError

LABEL = ("dataset", "scorer", "agent", "reward")


def summarize(rows: pd.DataFrame) -> dict[str, Any]:
    """Metrics of one run's rows; every one is recomputed from the raw facts. Columns: docs/shortlist.md."""
    hit = rows["hits"] > 0
    chance = metrics.p_rand(rows["n_tools"], rows["n_relevant"], rows["depth"])
    bucket = metrics.difficulty(rows["first_relevant_rank"])
    summary: dict[str, Any] = {
        "n_tools": int(rows["n_tools"].iloc[0]),
        "n_queries": len(rows),
        "coverage": metrics.coverage(hit),
        "mean_depth": metrics.mean_depth(rows["depth"]),
        "bor_bits": metrics.bor_bits(hit, chance),
        "mean_bor_reward": float(metrics.bor_reward(hit, chance).mean()),
        "mean_f1": float(metrics.f1(rows["hits"], rows["n_relevant"], rows["depth"]).mean()),
        "mean_return": float(rows["return"].mean()),
    }
    for name in metrics.DIFFICULTY_BUCKETS:
        inside = bucket == name
        summary[f"queries_{name}"] = int(inside.sum())
        summary[f"coverage_{name}"] = float(hit[inside].mean())
        summary[f"depth_{name}"] = float(rows["depth"][inside].mean())
    return summary


def collect(runs: Iterable[Run]) -> pd.DataFrame:
    """A table with a row a run: what it was, `summarize` of its rows, and what it took.

    Settings in which runs of one agent, reward, dataset and scorer differ beyond the seed become columns of their
    dotted keys, and `experiment` tells repetitions from other experiments.
    """
    runs, table = list(runs), []
    for run in runs:
        names = {key: run.meta["names"][key] for key in LABEL}
        cost = {
            "train_seconds": run.meta["train_seconds"],
            "run_id": run.meta["id"],
            "experiment": experiment_of(run.config),
        }
        table.append(names | {"seed": run.config["seed"]} | summarize(run.rows()) | cost)
    frame = pd.DataFrame(table)
    for _, group in frame.groupby(list(LABEL)):
        if group["experiment"].nunique() > 1:
            for key, values in differing([runs[index].config for index in group.index]).items():
                frame.loc[group.index, key] = [str(value) for value in values]
    return frame.sort_values(["dataset", "scorer", "agent", "reward", "seed"], key=_natural, ignore_index=True)


def _natural(column: pd.Series) -> pd.Series:
    """Sort keys in which fixed_3 comes before fixed_10."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    return column.map(lambda text: re.sub(r"\d+", lambda digits: digits[0].zfill(8), str(text)))


def summary_line(run: Run) -> str:
    """The main figures of a run in one line."""
    s = summarize(run.rows())
    return (
        f"coverage {s['coverage']:.3f} at depth {s['mean_depth']:.2f}, BoR {s['bor_bits']:.3f} bits, "
        f"mean BoR reward {s['mean_bor_reward']:.3f}, mean F1 {s['mean_f1']:.3f} "
        f"on {s['n_queries']} held-out queries"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Collect finished runs into one table, a row a run.")
    parser.add_argument("runs", type=Path, help="folder of run folders, e.g. outputs/runs")
    parser.add_argument("-o", "--output", type=Path, help="CSV file to write; printed where left out")
    arguments = parser.parse_args()
    try:
        table = collect(open_runs(arguments.runs))
        if arguments.output:
            write_csv(table, arguments.output)
        else:
            print(table.to_string(index=False))
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
