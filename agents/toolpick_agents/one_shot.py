"""What all rules that read the whole score list and name a depth have in common."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import ONE_SHOT, Monitor

_FILE = "rule.json"


@dataclasses.dataclass(frozen=True)
class OneShotRule(ABC):
    """A frozen dataclass that is agent and policy in one: its fields are all it needs to decide.

    A subclass says how deep in `depths`; one that learns its fields from training queries overrides `train`.
    """

    plays: ClassVar[str] = ONE_SHOT
    oracle: ClassVar[bool] = False
    training_steps: ClassVar[int] = 0

    @abstractmethod
    def depths(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Depths (n,) in 1..D for score lists (n, D), non-increasing along the ranks."""

    def __call__(self, observations: NDArray) -> NDArray[np.int64]:
        """Actions (n,) of the one-shot environment: depth less 1."""
        return self.depths(np.asarray(observations, dtype=np.float64)) - 1

    def train(self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any) -> Self:
        """Nothing to learn."""
        return self

    def save(self, folder: Path) -> None:
        """Write the fields."""
        (folder / _FILE).write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")

    def load(self, folder: Path) -> Self:
        """The rule that `save` wrote."""
        return type(self)(**json.loads((folder / _FILE).read_text(encoding="utf-8")))
