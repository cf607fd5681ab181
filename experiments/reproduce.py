"""The first experiment, whole: `make reproduce`.

Every agent under every reward on the real BFCL registry, five seeds with a random split each; a table, three
figures, and the paired comparison of the trained DQN with the best fixed depth.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from hydra.errors import HydraException

from experiments import figures
from experiments.collect import collect
from experiments.compare import compare, printable
from experiments.compose import Config, composed
from experiments.record import Run, write_csv
from experiments.stats import Estimate, mean_interval, rank_reversals
from experiments.sweep import sweep
from toolpick.errors import InputError

REWARDS = ("bor", "f1", "f1_scaled")
SEEDS = tuple(range(5))
AGENTS = (  # the slow ones first, so that two workers end together
    ("agent=dqn",),
    ("agent=q_learning",),
    ("agent=best_fixed_depth",),
    *(("agent=fixed_depth", f"agent.depth={depth}") for depth in (1, 3, 5, 10, 50)),
    ("agent=clairvoyant",),
)
_LEARNED = ("dqn", "q_learning")
_MEASURES = ("coverage", "mean_depth", "bor_bits", "mean_bor_reward", "mean_f1")


def configs(outputs: str, *, seeds: Sequence[int] = SEEDS, extra: Sequence[str] = ()) -> list[Config]:
    """Every configuration of the experiment, slow agents first."""
    bases = [
        composed([*agent, f"reward={reward}", f"outputs={outputs}", *extra]) for agent in AGENTS for reward in REWARDS
    ]
    return [base | {"seed": seed} for base in bases for seed in seeds]


def comparisons(runs: Sequence[Run]) -> pd.DataFrame:
    """Each learned agent against the best fixed depth of the same reward: paired, on mean BoR reward and F1."""
    return pd.concat(compare(runs, agent, "best_fixed_depth", ("bor_reward", "f1")) for agent in _LEARNED)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", default="outputs", help="folder for runs and results")
    parser.add_argument("--workers", type=int, default=2, help="processes; results do not depend on it")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many seeds")
    parser.add_argument("overrides", nargs="*", help="key=value for every run, as for experiments.run")
    arguments = parser.parse_args()
    start = time.perf_counter()
    try:
        todo = configs(arguments.outputs, seeds=range(arguments.seeds), extra=arguments.overrides)
        runs = sweep(todo, workers=arguments.workers, title="reproduce")
        folder = Path(arguments.outputs) / "reproduce"
        report(runs, folder)
    except (InputError, HydraException) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept; the same command goes on from them", file=sys.stderr)
        sys.exit(130)
    print(f"\n{len(runs)} runs in {time.perf_counter() - start:.0f} s; tables and figures are in {folder}")


def report(runs: Sequence[Run], folder: Path) -> None:
    """Write the tables and figures, and print the tables."""
    table, compared = collect(runs), comparisons(runs)
    write_csv(table, folder / "shortlist.csv")
    write_csv(compared, folder / "comparisons.csv")
    figures.draw(runs, folder)
    print("\nHeld-out queries: mean over seeds ± half of the 95 % t interval")
    print(summary_table(table).to_string(index=False))
    means = table[table["reward"] == "bor"].groupby("agent")[["bor_bits", "mean_bor_reward"]].mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is printed in full
        reversals = rank_reversals(means)
    if len(reversals):
        print("\nPairs that BoR and the mean BoR reward put in opposite orders (reward bor, means over seeds)")
        print(reversals.round(3).to_string(index=False))
    learned = table[table["agent"].isin(_LEARNED)]
    deepest = learned.sort_values("mean_depth").iloc[-1]
    cap = runs[0].config["max_depth"]
    print(
        f"\nLargest mean depth of a learned agent in any run: {deepest['mean_depth']:.2f} "
        f"({deepest['agent']}, {deepest['reward']}, seed {deepest['seed']}); the cap is {cap} for every agent"
    )
    print("\nDifference to the best fixed depth: [95 % paired bootstrap over query ids and splits]")
    print(printable(compared.drop(columns=["dataset", "scorer", "against", "seeds"])))


def summary_table(table: pd.DataFrame) -> pd.DataFrame:
    """A row an agent and reward: mean over seeds and half its 95 % t interval, as text.

    An agent that did the same under every reward is one row, with reward "any".
    """
    lines = []
    for agent, runs in table.groupby("agent", sort=False):
        cells = {}
        for reward, group in runs.groupby("reward", sort=False):
            cells[reward] = {"seeds": len(group)} | {m: _half_width(mean_interval(group[m])) for m in _MEASURES}
        if len(cells) > 1 and len({tuple(cell.values()) for cell in cells.values()}) == 1:
            cells = {"any": next(iter(cells.values()))}
        lines += [{"agent": agent, "reward": reward} | cell for reward, cell in cells.items()]
    return pd.DataFrame(lines)


def _half_width(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} ± {estimate.high - estimate.value:.3f}"


if __name__ == "__main__":
    main()
