"""One run: compose, build, train on the training queries, play the held-out ones greedily, record.

python -m experiments.run agent=dqn reward=f1 seed=3
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from experiments.compose import Config, identity, named, resolved
from experiments.record import Run, code_hash, git_state, open_run, recording, still_valid, text_hash, versions
from toolpick.datasets import Dataset
from toolpick.errors import InputError


def finished(config: Config, dataset: Dataset) -> Run | None:
    """The finished run of this configuration, if code, libraries and data are still those that made it."""
    data = {dataset.name: dataset.content_hash}
    return still_valid(Path(config["outputs"]) / "runs" / identity(config), data, code_hash(config))


def execute(config: Config) -> Run:
    """Do one run, or find it done: a finished run of the same configuration, code and data is not repeated.

    Raises:
        InputError: the configuration or the data is at fault, or the outputs cannot be written.
    """
    from experiments.build import make, make_agent, make_task, playing_env
    from experiments.monitor import CurveMonitor
    from toolpick_agents.evaluation import evaluate

    _check(config)
    run_id = identity(config)
    agent, dataset = make_agent(config), make(config, "dataset")()
    logs = Path(config["outputs"]) / "tensorboard" / run_id if config["tensorboard"] else None
    done = finished(config, dataset)
    if done is not None and (logs is None or logs.exists()):
        return done
    task = make_task(config, dataset)
    names = named(config) | {"dataset": dataset.name}
    names["agent"] = getattr(agent, "name", names["agent"])
    folder = Path(config["outputs"]) / "runs" / run_id
    with recording(folder) as scratch:
        title = f"{names['agent']} {names['reward']} seed {config['seed']}"
        monitor = CurveMonitor(
            agent,
            task.validation,
            every=config["curve_every"],
            gamma=config["gamma"],
            title=title if config["progress"] and agent.training_steps else "",
            tensorboard=logs,
        )
        start = time.perf_counter()
        policy = agent.train(task.train, gamma=config["gamma"], seed=config["seed"], monitor=monitor, tensorboard=logs)
        seconds = time.perf_counter() - start
        monitor.finish(policy).to_parquet(scratch / "curves.parquet")
        rows = evaluate(policy, playing_env(task.test, agent.plays), gamma=config["gamma"])
        rows.to_parquet(scratch / "rows.parquet")
        (scratch / "agent").mkdir()
        policy.save(scratch / "agent")
        learned_on = [text_hash(text) for rules in (task.train, task.validation) for text in rules.rankings.query_texts]
        (scratch / "learned_on.json").write_text(json.dumps(learned_on), encoding="utf-8")
        meta = {
            "id": run_id,
            "config": config,
            "names": names,
            "oracle": agent.oracle,
            "git": git_state(),
            "versions": versions(),
            "code": code_hash(config),
            "data": {dataset.name: dataset.content_hash},
            "train_seconds": seconds,
        }
        (scratch / "run.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
    return open_run(folder)


def _check(config: Config) -> None:
    """Refuse values that no group would refuse by itself."""
    whole = {"seed": 0, "curve_every": 1}
    for key, least in whole.items():
        if not isinstance(config[key], int) or isinstance(config[key], bool) or config[key] < least:
            raise InputError(f"configuration: {key} must be a whole number of {least} or more, got {config[key]!r}")
    for key, most in {"gamma": 1.0, "step_cost": float("inf")}.items():
        value = config[key]
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
            raise InputError(f"configuration: {key} must be a number of at least 0 and at most {most:g}, got {value!r}")


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    """The command line: one run, or with -m a sweep."""
    from experiments.collect import summary_line

    context = HydraConfig.get()
    try:
        run = execute(resolved(cfg, context.runtime.choices))
        print(f"{run.folder}  {summary_line(run)}")
    except InputError as error:
        if context.mode == RunMode.MULTIRUN and "BasicLauncher" not in context.launcher["_target_"]:
            raise  # a worker must not exit
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted: nothing of the unfinished run was kept; finished runs are", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
