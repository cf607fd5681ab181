"""Does a model pick the right tool from the shortlists of finished runs?

python -m experiments.downstream outputs/runs chooser=simulated [chooser.seed=1] [-o outputs/downstream.csv]
python -m experiments.downstream outputs/runs/<id> --lists lists.jsonl

The first prints a table with a row a run, and writes it, with the single choices beside it as Parquet. The second
writes the lists instead, for a model to be asked elsewhere. Columns: docs/downstream.md.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from experiments.build import make, make_task
from experiments.compose import Config, afterwards
from experiments.record import Run, open_run, open_runs
from toolpick import metrics
from toolpick.chat import ChatError
from toolpick.choosers import FAILED, NONE, Presented, choose, present, relevant_shown
from toolpick.errors import InputError
from toolpick.rankings import Rankings

_BATCH = 16  # lists between two moves of the progress bar


def find_runs(folders: Iterable[Path]) -> list[Run]:
    """Runs in the order given; a folder without a run.json stands for all runs in it.

    Raises:
        InputError: a folder that holds no finished run.
    """
    runs = [[open_run(folder)] if (folder / "run.json").is_file() else open_runs(folder) for folder in folders]
    return list({run.meta["id"]: run for group in runs for run in group}.values())


def shortlists(run: Run) -> tuple[Rankings, Presented]:
    """The lists that a run presents for its held-out queries, rebuilt.

    Raises:
        InputError: data or ranking are no longer those of the run.
    """
    task = make_task(run.config)
    rankings, rows = task.test.rankings, run.rows()
    same = (
        run.meta["data"] == {task.dataset.name: task.dataset.content_hash}
        and tuple(rows["query_id"]) == rankings.query_ids
        and np.array_equal(rows["first_relevant_rank"], rankings.first_relevant_rank)
        and np.array_equal(rows["n_relevant"], rankings.n_relevant)
    )
    if not same:
        raise InputError(f"{run.folder}: its data or ranking can no longer be rebuilt; run it again first")
    return rankings, present(rankings, task.dataset.tools, rows["depth"].to_numpy())


def choices(run: Run, chooser: Any, progress: tqdm | None = None) -> pd.DataFrame:
    """What a chooser picks from each list of a run: a row a held-out query.

    Returns:
        Columns `query_id`, `depth`, `first_relevant_rank`, `shown` (a relevant tool is), `chosen` (name, or null
        for none or a failure), `failed`, `right` (the chosen tool is relevant).
    """
    rankings, presented = shortlists(run)
    relevant = relevant_shown(rankings, presented)
    chosen = np.full(len(presented), NONE)
    for start in range(0, len(presented), _BATCH):
        batch = np.arange(start, min(start + _BATCH, len(presented)))
        chosen[batch] = choose(chooser, presented.rows(batch), relevant[batch])
        if progress is not None:
            progress.update(len(batch))
    names = [rankings.tool_names[index] if index >= 0 else None for index in chosen]
    return pd.DataFrame(
        {
            "query_id": presented.query_ids,
            "depth": presented.depth,
            "first_relevant_rank": rankings.first_relevant_rank,
            "shown": relevant.any(axis=1),
            "chosen": pd.Series(names, dtype="object"),
            "failed": chosen == FAILED,
            "right": ((presented.order == chosen[:, None]) & relevant).any(axis=1),
        }
    )


def summarize(rows: pd.DataFrame) -> dict[str, Any]:
    """Metrics of one run's choices. All queries count: a list without a relevant tool cannot be chosen from right."""
    bucket = metrics.difficulty(rows["first_relevant_rank"])
    summary: dict[str, Any] = {
        "n_queries": len(rows),
        "mean_depth": metrics.mean_depth(rows["depth"]),
        "coverage": metrics.coverage(rows["shown"]),
        "choice_accuracy": float(rows["right"].mean()),
        "choice_when_shown": float(rows["right"][rows["shown"]].mean()),
        "failures": int(rows["failed"].sum()),
    }
    for name in metrics.DIFFICULTY_BUCKETS:
        inside = rows[bucket == name]
        summary[f"queries_{name}"] = len(inside)
        summary[f"choice_accuracy_{name}"] = float(inside["right"].mean())
        summary[f"choice_when_shown_{name}"] = float(inside["right"][inside["shown"]].mean())
    return summary


def downstream(runs: Sequence[Run], config: Config) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Put a chooser behind finished runs.

    Args:
        runs: of any tasks.
        config: of the chooser, see `experiments.compose.afterwards`.

    Returns:
        A row a run (what it was, the chooser, `simulated`, and `summarize` of its choices), and a row a choice.

    Raises:
        InputError: a run whose lists cannot be rebuilt, or what the chooser refuses.
        ChatError: a model's endpoint does not answer; what it answered before is recorded.
    """
    chooser = make(config, "chooser")
    name = getattr(chooser, "name", config["names"]["chooser"])
    simulated = hasattr(chooser, "oracle_choices")
    table, details = [], []
    total = sum(len(run.rows()) for run in runs)
    with tqdm(total=total, desc=name, unit="list", disable=None) as progress:
        for run in runs:
            rows = choices(run, chooser, progress)
            kind = {key: run.meta["names"][key] for key in ("dataset", "scorer", "agent", "reward")}
            head = {"run_id": run.meta["id"], **kind, "seed": run.config["seed"]}
            table.append(head | {"chooser": name, "simulated": simulated} | summarize(rows))
            details.append(rows.assign(run_id=run.meta["id"], chooser=name, simulated=simulated))
    return pd.DataFrame(table), pd.concat(details, ignore_index=True)


def write_lists(runs: Iterable[Run], path: Path) -> int:
    """Write each distinct list once as JSON Lines {"query_id", "query", "shown": [names]}; returns how many.

    With "chosen" added to each line, it is a file for `chooser=recorded`.
    """
    lines: dict[str, None] = {}
    for run in runs:
        _, presented = shortlists(run)
        for row, (query_id, text) in enumerate(zip(presented.query_ids, presented.query_texts, strict=True)):
            shown = [tool.name for tool in presented.shown(row)]
            lines[json.dumps({"query_id": query_id, "query": text, "shown": shown})] = None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "words", nargs="+", metavar="RUN|chooser...", help="run folders or folders of them; chooser=NAME"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("outputs/downstream.csv"), help="CSV file to write")
    parser.add_argument("--lists", type=Path, metavar="FILE", help="write the lists as JSON Lines instead of choosing")
    arguments = parser.parse_args()
    overrides = [word for word in arguments.words if re.match(r"chooser(\.[^=]*)?=", word)]
    try:
        if arguments.output.suffix != ".csv":
            raise InputError(f"-o {arguments.output}: name a .csv file; the single choices go to .parquet beside it")
        runs = find_runs(Path(word) for word in arguments.words if word not in overrides)
        if not runs:
            raise InputError("name a run folder, e.g. outputs/runs")
        if arguments.lists and overrides:
            raise InputError(f"--lists writes lists and chooses nothing: leave {overrides[0]} out")
        if arguments.lists:
            print(f"{write_lists(runs, arguments.lists)} lists in {arguments.lists}")
            return
        table, details = downstream(runs, afterwards(overrides))
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(arguments.output, index=False)
        details.to_parquet(arguments.output.with_suffix(".parquet"))
    except (InputError, ChatError) as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        sys.exit(f"error: cannot write {error.filename or arguments.output}: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit("interrupted: nothing was written; a model's recorded answers are kept")
    hidden = table.filter(regex="^queries_|_shown_|^dataset$|^scorer$").columns
    print(table.drop(columns=hidden).round(3).to_string(index=False))
    if table["simulated"].any():
        print("\nsimulated: the choices are made by a model of a model, not measured (docs/downstream.md)")


if __name__ == "__main__":
    main()
