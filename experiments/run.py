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

from experiments.compose import Config, identity, resolved
from experiments.record import Run, code_hash, git_state, open_run, recording, still_valid, versions
from toolpick.errors import InputError


def execute(config: Config) -> Run:
    """Do one run, or find it done: a finished run of the same configuration, code and data is not repeated.

    Raises:
        InputError: the configuration or the data is at fault, or the outputs cannot be written.
    """
    from experiments.build import make_agent, make_task, playing_env
    from experiments.monitor import CurveMonitor
    from toolpick_agents.evaluation import evaluate

    run_id = identity(config)
    agent, task = make_agent(config), make_task(config)
    data = {task.dataset.name: task.dataset.content_hash}
    folder = Path(config["outputs"]) / "runs" / run_id
    done = still_valid(folder, data)
    if done is not None:
        return done
    names = config["names"] | {
        "dataset": task.dataset.name,
        "agent": getattr(agent, "name", config["names"]["agent"]),
    }
    with recording(folder) as scratch:
        title = f"{names['agent']} {names['reward']} seed {config['seed']}"
        logs = Path(config["outputs"]) / "tensorboard" / run_id if config["tensorboard"] else None
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
        monitor.close().to_parquet(scratch / "curves.parquet")
        rows = evaluate(policy, playing_env(task.test, agent.plays), gamma=config["gamma"])
        rows.to_parquet(scratch / "rows.parquet")
        (scratch / "agent").mkdir()
        policy.save(scratch / "agent")
        meta = {
            "id": run_id,
            "config": config,
            "names": names,
            "oracle": agent.oracle,
            "git": git_state(),
            "versions": versions(),
            "code": code_hash(),
            "data": data,
            "train_seconds": seconds,
        }
        (scratch / "run.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
    return open_run(folder)


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    """The command line: one run, or with -m a sweep."""
    from experiments.collect import summary_line

    context = HydraConfig.get()
    try:
        run = execute(resolved(cfg, context.runtime.choices))
        print(f"{run.folder}  {summary_line(run)}")
    except InputError as error:
        if context.mode == RunMode.MULTIRUN:
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted: nothing of the unfinished run was kept; finished runs are", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
