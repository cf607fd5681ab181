"""The same depth for every query: chosen by hand, or on the training queries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import ONE_SHOT, Monitor

_FILE = "fixed_depth.json"


@dataclass(frozen=True)
class FixedDepthPolicy:
    """Presents the first `depth` tools: action depth-1 of the one-shot environment."""

    depth: int

    def __call__(self, observations: NDArray) -> NDArray[np.int64]:
        return np.full(len(observations), self.depth - 1)

    def save(self, folder: Path) -> None:
        (folder / _FILE).write_text(json.dumps({"depth": self.depth}), encoding="utf-8")


@dataclass(frozen=True)
class FixedDepth:
    """Always K = `depth`.

    Raises:
        InputError: a depth outside 1..D of the environment it is trained on.
    """

    depth: int = 5

    plays: ClassVar[str] = ONE_SHOT
    oracle: ClassVar[bool] = False
    training_steps: ClassVar[int] = 0

    @property
    def name(self) -> str:
        """Name in result rows."""
        return f"fixed_{self.depth}"

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> FixedDepthPolicy:
        """Nothing to learn; checks the depth."""
        if not 1 <= self.depth <= rules.max_depth:
            raise InputError(f"agent fixed_depth: depth must be in 1..{rules.max_depth} (max_depth), got {self.depth}")
        return FixedDepthPolicy(self.depth)

    def load(self, folder: Path) -> FixedDepthPolicy:
        """See `Agent.load`."""
        return load_fixed_depth(folder)


@dataclass(frozen=True)
class BestFixedDepth:
    """The K with the highest mean pay of a stop on the training queries; the smallest of equals.

    It is chosen by pay alone, without step costs and discount, which makes it the strongest fixed depth on the
    measure that results are compared by.
    """

    plays: ClassVar[str] = ONE_SHOT
    oracle: ClassVar[bool] = False
    training_steps: ClassVar[int] = 0

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> FixedDepthPolicy:
        """Reads the pay of every training query at every depth."""
        return FixedDepthPolicy(int(rules.pay.mean(axis=0).argmax()) + 1)

    def load(self, folder: Path) -> FixedDepthPolicy:
        """See `Agent.load`."""
        return load_fixed_depth(folder)


def load_fixed_depth(folder: Path) -> FixedDepthPolicy:
    """Read what `FixedDepthPolicy.save` wrote."""
    return FixedDepthPolicy(json.loads((folder / _FILE).read_text(encoding="utf-8"))["depth"])
