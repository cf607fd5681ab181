"""The deciders: agents that learn or compute how deep a shortlist should be.

An agent is a frozen dataclass of settings. It is trained on the rules of the training queries and returns a
policy, which maps a batch of observations to a batch of actions and can be saved.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from numpy.typing import NDArray

from toolpick.shortlist_rules import ShortlistRules

__all__ = ["Agent", "Monitor", "Policy", "ValuePolicy"]

STEPWISE = "toolpick/Shortlist-v0"
ONE_SHOT = "toolpick/ShortlistOneShot-v0"


class Policy(Protocol):
    """Greedy decisions of a trained agent."""

    def __call__(self, observations: NDArray) -> NDArray:
        """Actions (n,) for observations (n, F)."""
        ...

    def save(self, folder: Path) -> None:
        """Write what the agent's `load` needs into an existing folder."""
        ...


@runtime_checkable
class ValuePolicy(Policy, Protocol):
    """A policy that decides by comparing numbers, which say why it stopped where it did.

    Attributes:
        unit: of `action_values`: "return" or "log probability".
    """

    @property
    def unit(self) -> str: ...

    def action_values(self, observations: NDArray) -> NDArray:
        """Numbers (n, A) of the actions, the largest of which it takes, for observations (n, F)."""
        ...


# Called during training with (environment steps so far, the policy as it stands); returns the mean validation
# return when it evaluated the policy, else None.
Monitor = Callable[[int, Callable[[NDArray], NDArray]], float | None]


class Agent(Protocol):
    """Settings that can be turned into a policy.

    Attributes:
        plays: id of the environment its policy decides in.
        oracle: whether the policy knows the labels.
        training_steps: environment steps that training takes, 0 where there is none; for progress bars.
    """

    oracle: ClassVar[bool]

    @property
    def plays(self) -> str: ...

    @property
    def training_steps(self) -> int: ...

    def train(self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any) -> Policy:
        """Learn on the queries of `rules`.

        Args:
            rules: the game on the training queries.
            gamma: discount of the return.
            seed: of every random choice.
            monitor: see `Monitor`.
        """
        ...

    def load(self, folder: Path) -> Policy:
        """A policy that `Policy.save` wrote, without training."""
        ...
