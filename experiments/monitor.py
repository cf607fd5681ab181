"""Watching an agent learn: the validation curve, the progress bar and TensorBoard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from experiments.build import playing_env
from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import Agent
from toolpick_agents.evaluation import evaluate

CURVE_COLUMNS = ["step", "return", "pay", "depth", "coverage"]


class CurveMonitor:
    """Evaluates the policy on the validation queries every `every` environment steps.

    Args:
        agent: whose training is watched.
        rules: the game on the validation queries.
        every: environment steps between evaluations; the first comes at the first call, the last in `finish`.
        gamma: discount of the return.
        title: of the progress bar; no bar where empty.
        tensorboard: folder for scalars `validation/...`; none where None.
    """

    def __init__(
        self,
        agent: Agent,
        rules: ShortlistRules,
        *,
        every: int,
        gamma: float,
        title: str = "",
        tensorboard: Path | None = None,
    ) -> None:
        from tqdm import tqdm

        self._env = playing_env(rules, agent.plays)
        self._every, self._gamma, self._next, self._seen = every, gamma, 0, 0
        self._points: list[dict[str, float]] = []
        self._bar = tqdm(total=agent.training_steps, desc=title, unit="step", disable=not title, mininterval=0.5)
        self._writer: Any = None
        if tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(tensorboard / "validation"))

    def __call__(self, step: int, policy: Callable[[NDArray], NDArray]) -> float | None:
        """See `toolpick_agents.Monitor`."""
        self._seen = step
        if step < self._next:
            return None
        return self._evaluate(step, policy)

    def finish(self, policy: Callable[[NDArray], NDArray]) -> pd.DataFrame:
        """Evaluate the trained policy, end the bar and hand out the curve: a row an evaluation, `CURVE_COLUMNS`."""
        if self._seen and self._points[-1]["step"] < self._seen:
            self._evaluate(self._seen, policy)
        self._bar.close()
        if self._writer is not None:
            self._writer.close()
        return pd.DataFrame(self._points, columns=CURVE_COLUMNS)

    def _evaluate(self, step: int, policy: Callable[[NDArray], NDArray]) -> float:
        self._next = (step // self._every + 1) * self._every
        rows = evaluate(policy, self._env, gamma=self._gamma)
        point = {
            "step": step,
            "return": float(rows["return"].mean()),
            "pay": float(rows["pay"].mean()),
            "depth": float(rows["depth"].mean()),
            "coverage": float((rows["hits"] > 0).mean()),
        }
        self._points.append(point)
        shown = {key: f"{point[key]:.3f}" for key in ("return", "depth", "coverage")}
        self._bar.set_postfix(shown, refresh=False)
        self._bar.update(min(step, self._bar.total or step) - self._bar.n)
        if self._writer is not None:
            for key in CURVE_COLUMNS[1:]:
                self._writer.add_scalar(f"validation/{key}", point[key], step)
        return point["return"]
