"""Figures from collected tables and curves. Nothing here computes a result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.record import Run
from experiments.stats import mean_interval
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
_BUCKET_LABELS = {
    "easy": "easy\nrank 1",
    "medium": "medium\n2-5",
    "hard": "hard\n6-20",
    "very_hard": "very hard\n21+",
}


def coverage_against_depth(table: pd.DataFrame, path: Path) -> None:
    """Coverage against mean depth, a point an agent and reward with 95 % intervals over seeds both ways.

    Args:
        table: from `experiments.collect.collect`.
        path: PNG to write.
    """
    figure, axes = _axes(7.2, 4.6)
    fixed = table[table["agent"].str.match(r"fixed_\d+$")].drop_duplicates(["agent", "seed"])
    front = [_point(group) for _, group in fixed.groupby("mean_depth")]
    if front:
        depths, covers = [point[0].value for point in front], [point[1].value for point in front]
        axes.plot(depths, covers, "-", color="0.65", zorder=1)
        for point in front:
            _errorbar(axes, point, color="0.45", marker="o", size=4)
        for depth, cover in zip(depths, covers, strict=True):
            axes.annotate(
                f"K={depth:.0f}",
                (depth, cover),
                (0, -14),
                textcoords="offset points",
                color="0.4",
                ha="center",
            )
        axes.plot([], [], "-o", color="0.45", markersize=4, label="fixed depth K")
    for (agent, reward), group in table[~table["agent"].str.match(r"fixed_\d+$")].groupby(["agent", "reward"]):
        if agent == "clairvoyant" and reward != "bor":
            continue  # the same point: it stops at the first relevant tool under each reward
        label = _NAMES.get(str(agent), str(agent))
        label += "" if agent == "clairvoyant" else f", {_NAMES.get(str(reward), reward)}"
        color = "black" if agent == "clairvoyant" else _COLORS.get(str(reward), "purple")
        marker = _MARKERS.get(str(agent), "^")
        _errorbar(axes, _point(group), color=color, marker=marker, size=11 if marker == "*" else 7, label=label)
    axes.set_xscale("log")
    ticks = [1, 2, 3, 5, 10, 20, 50, 100]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("mean depth K: tools shown (log scale)")
    axes.set_ylabel("coverage of held-out queries")
    axes.legend(fontsize=8, loc="lower right", frameon=False)
    _save(figure, path)


def depth_by_difficulty(table: pd.DataFrame, path: Path) -> None:
    """Mean depth, and coverage, by the rank of the first relevant tool; intervals over seeds."""
    figure, (left, right) = _axes(9.0, 4.0, columns=2)
    learned = table[table["agent"].isin(["dqn", "q_learning"])]
    groups = list(learned.groupby(["agent", "reward"]))
    for index, ((agent, reward), group) in enumerate(groups):
        shift = (index - (len(groups) - 1) / 2) * 0.11
        style: dict[str, Any] = {
            "color": _COLORS.get(str(reward), "purple"),
            "marker": _MARKERS.get(str(agent), "^"),
        }
        label = f"{_NAMES.get(str(agent), agent)}, {_NAMES.get(str(reward), reward)}"
        for axes, column in ((left, "depth"), (right, "coverage")):
            for place, bucket in enumerate(DIFFICULTY_BUCKETS):
                value = mean_interval(group[f"{column}_{bucket}"])
                axes.errorbar(
                    place + shift,
                    value.value,
                    yerr=[[value.value - value.low], [value.high - value.value]],
                    capsize=2,
                    markersize=5,
                    linestyle="",
                    label=label if place == 0 else None,
                    **style,
                )
    for axes, title in ((left, "mean depth K (log scale)"), (right, "coverage")):
        axes.set_xticks(range(len(DIFFICULTY_BUCKETS)), [_BUCKET_LABELS[name] for name in DIFFICULTY_BUCKETS])
        axes.set_ylabel(title)
        axes.set_xlabel("rank of the first relevant tool")
    left.set_yscale("log")
    left.set_yticks([1, 2, 3, 5, 10, 20], ["1", "2", "3", "5", "10", "20"])
    left.minorticks_off()
    right.legend(fontsize=8, frameon=False)
    _save(figure, path)


def learning_curves(runs: Sequence[Run], path: Path) -> None:
    """Validation return, depth and coverage over training: mean over seeds, band of the 95 % interval.

    Args:
        runs: of agents that learn; grouped by agent and reward.
        path: PNG to write.
    """
    frames = []
    for run in runs:
        names = run.meta["names"]
        frames.append(run.curves().assign(agent=names["agent"], reward=names["reward"], seed=run.config["seed"]))
    curves = pd.concat(frames)
    panels = [
        (reward, column) for reward in sorted(set(curves["reward"])) for column in ("return", "depth", "coverage")
    ]
    rows = len(panels) // 3
    figure, grid = _axes(10.0, 2.6 * rows, rows=rows, columns=3)
    for axes, (reward, column) in zip(grid.ravel() if hasattr(grid, "ravel") else grid, panels, strict=True):
        part = curves[curves["reward"] == reward]
        for index, (agent, group) in enumerate(part.groupby("agent")):
            by_step = group[group["step"] > 0].groupby("step")[column]
            points = {step: mean_interval(values) for step, values in by_step if len(values) > 1 or len(runs) == 1}
            if not points:
                continue
            color = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"][index % 4]
            steps = list(points)
            axes.plot(steps, [points[s].value for s in steps], color=color, label=_NAMES.get(str(agent), str(agent)))
            axes.fill_between(
                steps, [points[s].low for s in steps], [points[s].high for s in steps], color=color, alpha=0.2
            )
        axes.set_title(f"reward {_NAMES.get(reward, reward)}: validation {column}", fontsize=9)
        axes.set_xlabel("environment steps", fontsize=8)
        axes.tick_params(labelsize=8)
        if column == "depth":
            axes.set_yscale("log")
    (grid.ravel()[0] if hasattr(grid, "ravel") else grid[0]).legend(fontsize=8, frameon=False)
    _save(figure, path)


def _point(group: pd.DataFrame) -> tuple[Any, Any]:
    return mean_interval(group["mean_depth"]), mean_interval(group["coverage"])


def _errorbar(
    axes: Any, point: tuple[Any, Any], *, color: str, marker: str, size: float, label: str | None = None
) -> None:
    x, y = point
    axes.errorbar(
        x.value,
        y.value,
        xerr=[[x.value - x.low], [x.high - x.value]],
        yerr=[[y.value - y.low], [y.high - y.value]],
        color=color,
        marker=marker,
        markersize=size,
        capsize=2,
        linestyle="",
        elinewidth=1,
        label=label,
    )


def _axes(width: float, height: float, *, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(rows, columns, figsize=(width, height), constrained_layout=True)
    for one in getattr(axes, "flat", [axes]):
        one.spines[["top", "right"]].set_visible(False)
        one.grid(alpha=0.25)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
