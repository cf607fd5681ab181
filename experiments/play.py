"""Evaluate a trained agent again, on its own or other queries, without training it.

python -m experiments.play outputs/runs/<id> [scorer=bm25 max_depth=50 ...] [--show 3]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

from experiments.build import Task, make_agent, make_task, playing_env
from experiments.collect import summarize
from experiments.compose import Config, overridden
from experiments.record import Run, open_run, text_hash
from toolpick.errors import InputError
from toolpick.shortlist import ShortlistEnv
from toolpick.shortlist_rules import CONTINUE, STOP
from toolpick_agents import Policy
from toolpick_agents.evaluation import evaluate


def load(run: Run, overrides: list[str] | None = None) -> tuple[Policy, Task, Config]:
    """A run's policy and its task, some of whose settings may be replaced.

    Raises:
        InputError: an unknown key or variant, or a task whose observations the policy cannot read.
    """
    config = overridden(run.config, overrides or [])
    fixed = [key for key in ("agent", "observation") if config[key] != run.config[key]]
    if fixed:
        raise InputError(f"a trained agent keeps its {' and '.join(fixed)}; train anew with experiments.run")
    agent, task = make_agent(config), make_task(config)
    _refuse_seen(run, task)
    return agent.load(run.folder / "agent"), task, config


def _refuse_seen(run: Run, task: Task) -> None:
    texts = task.test.rankings.query_texts
    overlap = len(run.learned_on().intersection(map(text_hash, texts)))
    if overlap:
        raise InputError(
            f"{overlap} of the {len(texts)} queries to play were trained or validated on: "
            "keep the run's split and seed, or play other queries"
        )


def replay(run: Run, overrides: list[str] | None = None) -> pd.DataFrame:
    """Rows of the run's policy on the held-out queries of its task."""
    policy, task, config = load(run, overrides)
    return _evaluated(policy, task, config)


def _evaluated(policy: Policy, task: Task, config: Config) -> pd.DataFrame:
    try:
        return evaluate(policy, playing_env(task.test, make_agent(config).plays), gamma=config["gamma"])
    except InputError:
        raise
    except ValueError as error:  # a network meets lists or features of another length
        raise InputError(f"the saved agent cannot read these observations: {error}") from error


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Evaluate a recorded agent without training.")
    parser.add_argument("run", type=Path, help="a run folder, e.g. outputs/runs/<id>")
    parser.add_argument("overrides", nargs="*", help="key=value, as for experiments.run")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="also draw the first N held-out queries")
    arguments = parser.parse_args()
    try:
        run = open_run(arguments.run)
        policy, task, config = load(run, arguments.overrides)
        rows = _evaluated(policy, task, config)
        for query in range(min(arguments.show, len(rows))):
            print(_drawing(task, query, int(rows["depth"][query])), end="\n\n")
        for key, value in summarize(rows).items():
            print(f"{key:20s} {value:.4f}" if isinstance(value, float) else f"{key:20s} {value}")
    except InputError as error:
        sys.exit(f"error: {error}")


def _drawing(task: Task, query: int, depth: int) -> str:
    env = ShortlistEnv(task.test, render_mode="ansi")
    env.reset(options={"query": query})
    for _ in range(depth - 1):
        env.step(CONTINUE)
    env.step(STOP)
    return env.render() or ""


if __name__ == "__main__":
    main()
