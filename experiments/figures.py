"""Figures from finished runs. Nothing here computes a result.

python -m experiments.figures outputs/runs -o outputs/figures
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from experiments.collect import collect
from experiments.record import Run, open_runs
from experiments.stats import Estimate, mean_interval
from toolpick import InputError
from toolpick.metrics import DIFFICULTY_BUCKETS

_COLORS = {"bor": "#0072b2", "f1": "#d55e00", "f1_scaled": "#009e73", "hit_minus_cost": "#cc79a7"}
_MARKERS = {"dqn": "o", "q_learning": "s", "best_fixed_depth": "D", "clairvoyant": "*"}
_NAMES = {
    "dqn": "DQN",
    "q_learning": "Q-learning",
    "best_fixed_depth": "best fixed depth",
    "clairvoyant": "clairvoyant (oracle)",
    "bor": "BoR",
    "f1": "F1",
    "f1_scaled": "F1 · log₂ N",
}
_BUCKETS = {"easy": "easy\nrank 1", "medium": "medium\n2-5", "hard": "hard\n6-20", "very_hard": "very hard\n21+"}
_DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200)
_FIXED = r"fixed_\d+$"
_NOT_LEARNED = r"fixed_\d+$|best_fixed_depth$|clairvoyant$"


def coverage_against_depth(table: pd.DataFrame, path: Path) -> None:
    """Coverage against mean depth, and the mean BoR reward beside it; 95 % t intervals over seeds.

    Args:
        table: from `experiments.collect.collect`.
        path: PNG to write.
    """
    figure, (left, right) = figure_and_axes(11.0, 4.6, columns=2, widths=(1.35, 1.0))
    fixed = table[table["agent"].str.match(_FIXED)].drop_duplicates(subset=["agent", "seed"])
    front = [_point(group) for _, group in fixed.groupby("mean_depth")]
    if front:
        depths, covers = [point[0].value for point in front], [point[1].value for point in front]
        left.plot(depths, covers, "-o", color="0.45", markersize=4, zorder=1, label="fixed depth K")
        for point in front:
            _cross(left, point, _Style("0.45", "o", "0.45", 4))
            text = {"textcoords": "offset points", "color": "0.4", "fontsize": 9}
            left.annotate(f"K={point[0].value:.0f}", (point[0].value, point[1].value), (7, -12), **text)
    rows = []
    for (agent, reward), group in _groups(table[~table["agent"].str.match(_FIXED)]):
        if agent == "clairvoyant" and reward != "bor":
            continue  # the same point: with one relevant tool it stops at its rank under each reward
        style = _style(agent, reward)
        _cross(left, _point(group), style, label=_label(agent, reward))
        rows.append((mean_interval(group["mean_bor_reward"]), _label(agent, reward), style))
    for depth, group in fixed.groupby("mean_depth"):
        rows.append(
            (mean_interval(group["mean_bor_reward"]), f"fixed depth {depth:.0f}", _Style("0.45", "o", "0.45", 4))
        )
    rows.sort(key=lambda row: row[0].value)
    for place, (value, _, style) in enumerate(rows):
        right.errorbar(value.value, place, xerr=_ends(value), **style.keywords())
    right.set_yticks(range(len(rows)), [label for _, label, _ in rows], fontsize=8)
    right.set_xlabel("mean BoR reward on held-out queries (bits)")
    left.set_xscale("log")
    left.set_xticks(_DEPTHS[:-1], [str(depth) for depth in _DEPTHS[:-1]])
    left.minorticks_off()
    left.set_xlabel("mean depth K: tools shown (log scale)")
    left.set_ylabel("coverage of held-out queries")
    left.legend(fontsize=8, loc="lower right", frameon=False)
    save(figure, path)


def depth_by_difficulty(table: pd.DataFrame, path: Path) -> None:
    """Mean depth and coverage of the learned agents by the rank of the first relevant tool.

    Intervals are 95 % t intervals over seeds, cut off at the ends of the axes; buckets are labelled with the
    mean number of held-out queries in them.

    Args:
        table: from `experiments.collect.collect`.
        path: PNG to write.
    """
    learned = table[~table["agent"].str.match(_NOT_LEARNED)]
    if learned.empty:
        return
    figure, (left, right) = figure_and_axes(10.0, 4.2, columns=2)
    groups = _groups(learned)
    for index, ((agent, reward), group) in enumerate(groups):
        shift = (index - (len(groups) - 1) / 2) * 0.7 / len(groups)
        for axes, column in ((left, "depth"), (right, "coverage")):
            for place, bucket in enumerate(DIFFICULTY_BUCKETS):
                value = mean_interval(group[f"{column}_{bucket}"])
                label = _label(agent, reward) if place == 0 else None
                style = _style(agent, reward).keywords()
                axes.errorbar(place + shift, value.value, yerr=_ends(value), label=label, **style)
    counts = {bucket: table[f"queries_{bucket}"].mean() for bucket in DIFFICULTY_BUCKETS}
    labels = [f"{_BUCKETS[bucket]}\n(n={counts[bucket]:.0f})" for bucket in DIFFICULTY_BUCKETS]
    for axes, title in ((left, "mean depth K (log scale)"), (right, "coverage")):
        axes.set_xticks(range(len(DIFFICULTY_BUCKETS)), labels)
        axes.set_ylabel(title)
        axes.set_xlabel("rank of the first relevant tool")
    left.set_yscale("log")
    left.set_yticks(_DEPTHS, [str(depth) for depth in _DEPTHS])
    left.minorticks_off()
    left.set_ylim(0.9, 1.5 * max(group[f"depth_{b}"].mean() for _, group in groups for b in DIFFICULTY_BUCKETS) + 5)
    right.set_ylim(-0.03, 1.03)
    right.legend(fontsize=8, frameon=False)
    save(figure, path)


def learning_curves(runs: Sequence[Run], path: Path) -> None:
    """Validation return, depth and coverage over training: mean over seeds, band of the 95 % t interval.

    Args:
        runs: those whose agent learned are drawn, a row of panels a reward.
        path: PNG to write.
    """
    frames = []
    for run in runs:
        names, curves = run.meta["names"], run.curves()
        # What was evaluated before the first multiple of curve_every is an untrained agent.
        curves = curves[curves["step"] >= run.config["curve_every"]]
        frames.append(curves.assign(agent=names["agent"], reward=names["reward"]))
    curves = pd.concat(frames)
    if curves.empty:
        return
    rewards, columns = sorted(set(curves["reward"])), ("return", "depth", "coverage")
    agents = sorted(set(curves["agent"]))
    figure, grid = figure_and_axes(10.0, 2.6 * len(rewards), rows=len(rewards), columns=3)
    panels = list(getattr(grid, "flat", grid))
    for axes, (reward, column) in zip(panels, [(r, c) for r in rewards for c in columns], strict=True):
        for agent, color in zip(agents, ["#0072b2", "#d55e00", "#009e73", "#cc79a7"] * len(agents), strict=False):
            part = curves[(curves["reward"] == reward) & (curves["agent"] == agent)]
            points = {step: mean_interval(values) for step, values in part.groupby("step")[column]}
            steps, ends = list(points), list(points.values())
            axes.plot(steps, [end.value for end in ends], color=color, label=_NAMES.get(agent, agent))
            axes.fill_between(steps, [e.low for e in ends], [e.high for e in ends], color=color, alpha=0.2, lw=0)
        axes.set_title(f"reward {_NAMES.get(reward, reward)}: validation {column}", fontsize=9)
        axes.set_xscale("log")
        axes.set_xlabel("environment steps", fontsize=8)
        axes.tick_params(labelsize=8)
        if column == "depth":
            axes.set_yscale("log")
            axes.set_yticks(_DEPTHS, [str(depth) for depth in _DEPTHS])
            axes.minorticks_off()
            axes.set_ylim(0.9, 1.2 * curves["depth"].max())
        if column == "coverage":
            axes.set_ylim(None, min(1.0, axes.get_ylim()[1]))
    panels[0].legend(fontsize=8, frameon=False, loc="lower right")
    save(figure, path)


class _Style(NamedTuple):
    color: str
    marker: str
    face: str
    size: float

    def keywords(self) -> dict[str, Any]:
        return {
            "color": self.color,
            "marker": self.marker,
            "markerfacecolor": self.face,
            "markersize": self.size,
            "linestyle": "",
            "capsize": 2,
            "elinewidth": 1,
        }


def _style(agent: str, reward: str) -> _Style:
    if agent == "clairvoyant":
        return _Style("black", "*", "black", 11)
    color = _COLORS.get(reward, "purple")
    # Open and larger, so that it shows where it coincides with plain F1.
    scaled = reward == "f1_scaled"
    return _Style(color, _MARKERS.get(agent, "^"), "none" if scaled else color, 10 if scaled else 7)


def _label(agent: str, reward: str) -> str:
    name = _NAMES.get(agent, agent)
    return name if agent == "clairvoyant" else f"{name}, {_NAMES.get(reward, reward)}"


def _groups(table: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    pairs = dict.fromkeys(zip(table["agent"], table["reward"], strict=True))
    return [((a, r), table[(table["agent"] == a) & (table["reward"] == r)]) for a, r in pairs]


def _point(group: pd.DataFrame) -> tuple[Estimate, Estimate]:
    return mean_interval(group["mean_depth"]), mean_interval(group["coverage"])


def _ends(estimate: Estimate) -> list[list[float]]:
    return [[estimate.value - estimate.low], [estimate.high - estimate.value]]


def _cross(axes: Any, point: tuple[Estimate, Estimate], style: _Style, *, label: str | None = None) -> None:
    x, y = point
    axes.errorbar(x.value, y.value, xerr=_ends(x), yerr=_ends(y), label=label, **style.keywords())


def figure_and_axes(
    width: float, height: float, *, rows: int = 1, columns: int = 1, widths: Sequence[float] | None = None
) -> tuple[Any, Any]:
    """A figure without frames on top and right, and its axes as matplotlib's `subplots` hands them out."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(rows, columns, figsize=(width, height), constrained_layout=True, width_ratios=widths)
    for one in getattr(axes, "flat", [axes]):
        one.spines[["top", "right"]].set_visible(False)
        one.grid(alpha=0.25)
    return figure, axes


def save(figure: Any, path: Path) -> None:
    """Write a PNG and close the figure.

    Raises:
        InputError: it cannot be written.
    """
    from matplotlib import pyplot

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        pyplot.close(figure)


def draw(runs: Sequence[Run], folder: Path) -> None:
    """All figures of these runs, as PNG files in a folder.

    Raises:
        InputError: runs that share agent and reward are of different experiments, or the folder cannot be written.
    """
    table = collect(runs)
    for (agent, reward), group in _groups(table):
        if group["experiment"].nunique() > 1:
            raise InputError(
                f"the runs of agent {agent} under reward {reward} are of {group['experiment'].nunique()} different "
                "experiments, which one point cannot stand for; see the columns of experiments.collect, and put each "
                "experiment's runs under outputs of their own"
            )
    coverage_against_depth(table, folder / "coverage_against_depth.png")
    depth_by_difficulty(table, folder / "depth_by_difficulty.png")
    learning_curves(runs, folder / "learning_curves.png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Draw the figures of finished runs.")
    parser.add_argument("runs", type=Path, help="folder of run folders, e.g. outputs/runs")
    parser.add_argument("-o", "--output", type=Path, default=Path("outputs/figures"), help="folder for PNG files")
    arguments = parser.parse_args()
    try:
        draw(open_runs(arguments.runs), arguments.output)
    except InputError as error:
        sys.exit(f"error: {error}")
    print(f"figures are in {arguments.output}")


if __name__ == "__main__":
    main()
