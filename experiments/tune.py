"""Compare settings on the validation queries alone.

python -m experiments.tune agent=dqn 'agent.algorithm.policy_kwargs.net_arch=[16,16],[64,64]' gamma=1,.95

Every combination of the comma-separated values is trained under each seed. The runs go to outputs/tune, apart from
those of other experiments. Held-out rows are recorded as in any run, and not read here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import pandas as pd
from hydra.errors import HydraException

from experiments.compose import combinations, composed
from experiments.stats import mean_interval
from experiments.sweep import sweep
from toolpick import InputError


def tune(overrides: Sequence[str], *, seeds: int = 5, workers: int = 2) -> pd.DataFrame:
    """Train every combination and rank them by validation pay.

    Returns:
        A row a combination, best first: `settings`, the last evaluation's mean `pay` of a stop with its 95 % t
        interval over seeds (`low`, `high`), `depth`, `deepest` (the largest mean depth of any seed), `coverage`,
        `train_seconds`.

    Raises:
        InputError: a combination that cannot be composed or run, or an agent that does not learn.
    """
    chosen = combinations(overrides)
    varied = [key for key in chosen[0] if len({one[key] for one in chosen}) > 1]
    # Apart from other runs, which `collect` and `figures` would take them for.
    bases = [composed([f"{k}={v}" for k, v in ({"outputs": "outputs/tune"} | one).items()]) for one in chosen]
    runs = sweep([base | {"seed": seed} for base in bases for seed in range(seeds)], workers=workers, title="tune")
    table = []
    for index, one in enumerate(chosen):
        group = runs[index * seeds : (index + 1) * seeds]
        curves = [run.curves() for run in group]
        if any(curve.empty for curve in curves):
            raise InputError(f"agent {group[0].meta['names']['agent']} has no validation curve: it does not learn")
        last = pd.DataFrame([curve.iloc[-1] for curve in curves])
        pay = mean_interval(last["pay"])
        table.append(
            {
                "settings": " ".join(f"{key}={one[key]}" for key in varied) or "(as given)",
                "pay": pay.value,
                "low": pay.low,
                "high": pay.high,
                "depth": last["depth"].mean(),
                "deepest": last["depth"].max(),
                "coverage": last["coverage"].mean(),
                "train_seconds": sum(run.meta["train_seconds"] for run in group) / seeds,
            }
        )
    return pd.DataFrame(table).sort_values("pay", ascending=False, ignore_index=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="+", help="key=value or key=a,b,c, as for experiments.run -m")
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0..n-1 for each combination")
    parser.add_argument("--workers", type=int, default=2, help="processes; results do not depend on it")
    arguments = parser.parse_args()
    try:
        table = tune(arguments.overrides, seeds=arguments.seeds, workers=arguments.workers)
    except (InputError, HydraException) as error:
        sys.exit(f"error: {error}")
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
