"""Two agents on the same held-out queries: paired differences with intervals.

python -m experiments.compare outputs/runs --ours hazard_stop --theirs best_fixed_depth

One comparison for each dataset, scorer and reward under which both have runs, over the seeds they share.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from experiments.compose import experiment_of
from experiments.record import Run, open_runs, write_csv
from experiments.stats import Estimate, paired_bootstrap
from toolpick import InputError, metrics

MEASURES = ("bor_reward", "f1", "hit", "depth")


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with a column for each of `MEASURES`, recomputed from the raw facts."""
    chance = metrics.p_rand(rows["n_tools"], rows["n_relevant"], rows["depth"])
    hit = rows["hits"] > 0
    return rows.assign(
        bor_reward=metrics.bor_reward(hit, chance),
        f1=metrics.f1(rows["hits"], rows["n_relevant"], rows["depth"]),
        hit=hit.astype(float),
    )


def compare(runs: Sequence[Run], ours: str, theirs: str, measures: Sequence[str] = ("bor_reward",)) -> pd.DataFrame:
    """Paired bootstrap of one agent against another, wherever both have run.

    Returns:
        A row a dataset, scorer, reward and measure: `agent`, `against`, `seeds`, `ours` and `theirs` (means over
        seeds), and the `difference` with its 95 % interval `low`, `high` (`experiments.stats.paired_bootstrap`).

    Raises:
        InputError: the two never meet, or one of them has runs of several experiments under one seed.
    """
    table = []
    for place in dict.fromkeys(_place(run) for run in runs):
        a, b = (_by_seed(runs, agent, place) for agent in (ours, theirs))
        seeds = sorted(a.keys() & b.keys())
        if not seeds:
            continue
        left, right = ([measured(side[seed].rows()) for seed in seeds] for side in (a, b))
        for measure in measures:
            found = paired_bootstrap(left, right, measure)
            means = [float(pd.Series([rows[measure].mean() for rows in side]).mean()) for side in (left, right)]
            table.append(
                dict(zip(("dataset", "scorer", "reward"), place, strict=True))
                | {"agent": ours, "against": theirs, "measure": measure, "seeds": len(seeds)}
                | {"ours": means[0], "theirs": means[1]}
                | found._asdict()
            )
    if not table:
        raise InputError(f"{ours} and {theirs} have no runs of the same dataset, scorer, reward and seed")
    frame = pd.DataFrame(table).rename(columns={"value": "difference"})
    return frame.sort_values(["dataset", "scorer", "reward"], kind="stable", ignore_index=True)


def printable(compared: pd.DataFrame) -> str:
    """The table with each difference and its interval in one column."""
    ends = compared[["difference", "low", "high"]].to_numpy(dtype=float)
    texts = [f"{value:.3f} [{low:.3f}, {high:.3f}]" for value, low, high in (Estimate(*row) for row in ends)]
    return compared.drop(columns=["low", "high"]).assign(difference=texts).round(3).to_string(index=False)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="folder of run folders, e.g. outputs/runs")
    parser.add_argument("--ours", required=True, help="agent, as in the column of experiments.collect")
    parser.add_argument("--theirs", required=True, help="likewise")
    parser.add_argument("--measure", nargs="+", default=["bor_reward"], choices=MEASURES)
    parser.add_argument("-o", "--output", type=Path, help="CSV file to write besides")
    arguments = parser.parse_args()
    try:
        table = compare(open_runs(arguments.runs), arguments.ours, arguments.theirs, arguments.measure)
        print(printable(table))
        if arguments.output:
            write_csv(table, arguments.output)
    except InputError as error:
        sys.exit(f"error: {error}")


def _place(run: Run) -> tuple[str, str, str]:
    names = run.meta["names"]
    return names["dataset"], names["scorer"], names["reward"]


def _by_seed(runs: Sequence[Run], agent: str, place: tuple[str, str, str]) -> dict[int, Run]:
    chosen: dict[int, Run] = {}
    for run in runs:
        if run.meta["names"]["agent"] != agent or _place(run) != place:
            continue
        first = chosen.setdefault(run.config["seed"], run)
        if experiment_of(first.config) != experiment_of(run.config):
            raise InputError(f"agent {agent} has runs of several experiments under seed {run.config['seed']}: {place}")
    return chosen


if __name__ == "__main__":
    main()
