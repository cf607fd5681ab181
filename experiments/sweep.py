"""Many runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.compose import Config
from experiments.record import Run


def sweep(configs: Sequence[Config], *, workers: int = 2, title: str = "runs") -> list[Run]:
    """Execute configurations in worker processes; finished ones are found, not repeated.

    Args:
        configs: from `experiments.compose.composed`; put the longest first.
        workers: processes. The rows do not depend on it.
        title: of the progress bar.

    Returns:
        The runs, in the order of `configs`.

    Raises:
        InputError: of the first run that fails; finished runs are kept.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    quiet = [config | {"progress": False} for config in configs]
    jobs = (delayed(_numbered)(index, config) for index, config in enumerate(quiet))
    runs: dict[int, Run] = {}
    with tqdm(total=len(quiet), desc=title, unit="run") as bar:
        results: Any = Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)
        for index, run in results:
            runs[index] = run
            bar.update()
    return [runs[index] for index in range(len(quiet))]


def _numbered(index: int, config: Config) -> tuple[int, Any]:
    from experiments.run import execute

    return index, execute(config)
