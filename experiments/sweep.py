"""Many runs side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from experiments.compose import Config
from experiments.record import Run
from toolpick.errors import InputError


def sweep(
    configs: Sequence[Config],
    *,
    workers: int = 2,
    title: str = "runs",
    failures: dict[int, InputError] | None = None,
) -> list[Run]:
    """Execute configurations in worker processes; finished ones are found, not repeated.

    The bar's remaining time is reckoned from the runs done here, not from those found.

    Args:
        configs: from `experiments.compose.composed`; put the longest first.
        workers: processes. The rows do not depend on it.
        title: of the progress bar.
        failures: where given, a run that fails leaves its error here under its position, and the others go on.

    Returns:
        The runs, in the order of `configs`, without those that failed.

    Raises:
        InputError: of the first run that fails, unless there is a place for it; finished runs are kept.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    quiet = [config | {"progress": False} for config in configs]
    runs = _found(quiet)
    jobs = (delayed(_numbered)(index, config) for index, config in enumerate(quiet) if index not in runs)
    with tqdm(total=len(quiet), initial=len(runs), desc=title, unit="run") as bar:
        results: Any = Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)
        for index, run in results:
            if isinstance(run, Run):
                runs[index] = run
            elif failures is None:
                raise run
            else:
                failures[index] = run
            bar.update()
    return [runs[index] for index in sorted(runs)]


def _found(configs: Sequence[Config]) -> dict[int, Run]:
    """Runs that are finished already; a configuration that cannot be checked is left for its worker to report."""
    from experiments.build import make
    from experiments.run import finished

    datasets: dict[str, Any] = {}
    runs = {}
    for index, config in enumerate(configs):
        try:
            key = json.dumps(config["dataset"], sort_keys=True)
            if key not in datasets:
                datasets[key] = make(config, "dataset")()
            run = finished(config, datasets[key])
        except InputError:
            continue
        if run is not None and not config["tensorboard"]:
            runs[index] = run
    return runs


def _numbered(index: int, config: Config) -> tuple[int, Run | InputError]:
    from experiments.run import execute

    try:
        return index, execute(config)
    except InputError as error:
        return index, error
