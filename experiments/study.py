"""The named experiments of conf/experiment, all or some: `make study`.

python -m experiments.study                              all of them; the same command goes on where it was stopped
python -m experiments.study bor_table2_bfcl_bm25 rules   some
python -m experiments.study rules scorer=bm25            with settings in place of those of the yaml

An experiment's grid is its `hydra.sweeper.params`, so that `python -m experiments.run -m experiment=NAME` means the
same runs. All runs lie in OUTPUTS/runs, each once; OUTPUTS/NAME/runs links those of an experiment, which is a folder
for collect, compare, figures and downstream; OUTPUTS/NAME/table.csv has a row a run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from hydra.errors import HydraException

from experiments.collect import collect
from experiments.compose import CONF, Config, combinations, composed, identity, overridden
from experiments.record import Run, open_run, write_csv
from experiments.sweep import sweep
from toolpick.errors import InputError

OUTPUTS = Path("outputs/study")
_FILE = "study.json"


@dataclass(frozen=True)
class Results:
    """What there is of one experiment.

    Attributes:
        name: of the yaml in conf/experiment.
        runs: finished ones.
        failures: what went wrong, a message a run that failed.
        missing: runs that were not reached.
    """

    name: str
    runs: tuple[Run, ...]
    failures: tuple[str, ...]
    missing: int


def names() -> list[str]:
    """Experiments that have a grid."""
    return sorted(path.stem for path in (CONF / "experiment").glob("*.yaml") if _grid(path.stem))


def configs(name: str, outputs: Path = OUTPUTS, overrides: Sequence[str] = ()) -> list[Config]:
    """Every configuration of an experiment.

    Args:
        name: of the yaml in conf/experiment.
        outputs: where runs go.
        overrides: `key=value`, or `key=a,b` for a grid of them; they take the place of the yaml's.

    Raises:
        InputError: an experiment that does not exist or has no grid.
    """
    grid = _grid(name)
    if not grid:
        raise InputError(f"no experiment {name!r} with a grid in {CONF / 'experiment'}; there are {', '.join(names())}")
    given = {override.partition("=")[0] for override in overrides}
    wish = [f"{key}={value}" for key, value in grid.items() if key not in given] + list(overrides)
    seeds = next((word for word in wish if word.startswith("seed=")), "seed=0")
    others = [word for word in wish if word != seeds]
    base = composed([f"experiment={name}", f"outputs={outputs}"])
    bases = [overridden(base, [f"{key}={value}" for key, value in one.items()]) for one in combinations(others)]
    return [one | {"seed": int(seed["seed"])} for one in bases for seed in combinations([seeds])]


def study(
    experiments: Sequence[str], outputs: Path = OUTPUTS, *, workers: int = 2, overrides: Sequence[str] = ()
) -> list[Results]:
    """Do what is not done yet of some experiments, and file the runs by experiment.

    Runs come in a shuffled order, so that the mean time of those done foretells that of the rest.

    Raises:
        InputError: an experiment that does not exist, or outputs that cannot be written.
    """
    grids = {name: configs(name, outputs, overrides) for name in experiments}
    distinct = list({identity(config): config for grid in grids.values() for config in grid}.values())
    failed = _rank_each(distinct, workers)
    order = np.random.default_rng(0).permutation(len(distinct))
    todo = [distinct[index] for index in order if identity(distinct[index]) not in failed]
    failures: dict[int, InputError] = {}
    try:
        sweep(todo, workers=workers, title="study", failures=failures)
    finally:
        failed |= {identity(todo[index]): str(error) for index, error in failures.items()}
        for name, grid in grids.items():
            _file(outputs, name, [identity(config) for config in grid], failed)
    return [read(name, outputs) for name in experiments]


def read(name: str, outputs: Path = OUTPUTS) -> Results:
    """What `study` has filed under this name.

    Raises:
        InputError: `study` has filed nothing there.
    """
    path = outputs / name / _FILE
    try:
        filed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise InputError(f"{path} cannot be read; python -m experiments.study {name} makes it") from error
    folders = [outputs / name / "runs" / run_id for run_id in filed["runs"]]
    runs = tuple(open_run(folder) for folder in folders if (folder / "run.json").is_file())
    failures = tuple(filed["failures"].values())
    return Results(name, runs, failures, len(folders) - len(runs) - len(failures))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="NAME|key=value", help="experiments, and settings for all of them")
    parser.add_argument("--outputs", type=Path, default=OUTPUTS, help="folder for runs and tables")
    parser.add_argument("--workers", type=int, default=2, help="processes; results do not depend on it")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    arguments = parser.parse_args()
    overrides = [word for word in arguments.words if "=" in word]
    chosen = [word for word in arguments.words if "=" not in word] or names()
    start = time.perf_counter()
    try:
        if arguments.list:
            for name in chosen:
                print(f"{name:32} {len(configs(name, arguments.outputs, overrides)):4} runs  {_title(name)}")
            return
        results = study(chosen, arguments.outputs, workers=arguments.workers, overrides=overrides)
        for result in results:
            if result.runs:
                write_csv(collect(result.runs), arguments.outputs / result.name / "table.csv")
    except (InputError, HydraException) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept; the same command goes on from them", file=sys.stderr)
        sys.exit(130)
    for result in results:
        print(
            f"{result.name:32} {len(result.runs):4} runs" + f", {len(result.failures)} failed" * bool(result.failures)
        )
        for message in sorted(set(result.failures)):
            print(f"    {message}")
    print(f"{time.perf_counter() - start:.0f} s; tables are in {arguments.outputs}")


def _grid(name: str) -> dict[str, str]:
    path = CONF / "experiment" / f"{name}.yaml"
    if not path.is_file():
        return {}
    return yaml.safe_load(path.read_text(encoding="utf-8")).get("hydra", {}).get("sweeper", {}).get("params", {})


def _title(name: str) -> str:
    lines = (CONF / "experiment" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return lines[1].removeprefix("# ")


def _rank_each(distinct: Sequence[Config], workers: int) -> dict[str, str]:
    """Rank each registry by each scorer once and leave it in the cache; where that fails, messages by run."""
    from joblib import Parallel, delayed
    from tqdm import tqdm

    pairs: dict[str, list[Config]] = {}
    for config in distinct:
        pairs.setdefault(json.dumps([config["dataset"], config["scorer"]], sort_keys=True), []).append(config)
    failed = {}
    with tqdm(total=len(pairs), desc="rank", unit="registry") as bar:
        jobs = (delayed(_ranking_fails)(configs[0]) for configs in pairs.values())
        messages = Parallel(n_jobs=workers, return_as="generator")(jobs)
        for same, message in zip(pairs.values(), messages, strict=True):
            failed |= {identity(config): message for config in same if message}
            bar.update()
    return failed


def _ranking_fails(config: Config) -> str:
    from experiments.build import make
    from toolpick.rankings import rank

    try:
        rank(make(config, "dataset")(), make(config, "scorer"))
    except InputError as error:
        return str(error)
    return ""


def _file(outputs: Path, name: str, run_ids: Sequence[str], failed: dict[str, str]) -> None:
    """Link the finished runs of an experiment into a folder of their own, and list all of them."""
    folder = outputs / name
    links = folder / "runs"
    mine = {run_id: message for run_id, message in failed.items() if run_id in run_ids}
    try:
        if links.exists():
            shutil.rmtree(links)
        links.mkdir(parents=True)
        for run_id in run_ids:
            if (outputs / "runs" / run_id / "run.json").is_file() and run_id not in mine:
                (links / run_id).symlink_to(os.path.join("..", "..", "runs", run_id), target_is_directory=True)
        content = {"runs": list(run_ids), "failures": mine}
        (folder / _FILE).write_text(json.dumps(content, indent=1), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error


if __name__ == "__main__":
    main()
