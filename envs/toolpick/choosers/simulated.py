"""A stand-in for a language model, which knows the labels and errs as published models do on average."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from toolpick.choosers import NONE, Presented
from toolpick.errors import InputError

_LARGEST_EXPONENT = 50.0


@dataclass(frozen=True)
class SimulatedOracle:
    """Chooses by a multinomial logit (McFadden, 1974) over the tools shown and "none of them".

    Each alternative has a weight, and is chosen with its share of the sum of weights: 1 for a relevant tool,
    `none` for none of them, and for a distractor

        confusion * exp(-steepness * (s_rel - s) / |s_top|)

    where s is its score, s_rel the best score of a relevant tool that is shown (s_top where none is) and s_top
    the score at the first rank. So each further distractor costs accuracy, more so the closer its score comes
    to the relevant tool's, and most where it outranks it. Where all scores are 0, all distractors weigh alike.

    The draw is frozen noise, a counter-based function of seed, query and tool: asking again gives the same
    answer in any batch, and an additional distractor can only draw the choice to itself.

    The defaults are fitted to published numbers (`experiments.calibrate_chooser`, docs/downstream.md): they are
    assumed, not measured, and whatever is made with this class is simulated.

    Args:
        none: weight of calling none of the tools, 0 or more.
        confusion: weight of a distractor that scores as the relevant tool does, 0 or more.
        steepness: how fast a distractor's weight falls with its distance, 0 or more.
        seed: of the noise.

    Raises:
        InputError: a setting below 0 or not finite.
    """

    none: float = 0.0287
    confusion: float = 0.0395
    steepness: float = 13.1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("none", "confusion", "steepness"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(f"chooser simulated: {name} must be 0 or more, got {getattr(self, name)}")

    def __call__(self, presented: Presented) -> NoReturn:
        raise TypeError("the simulated chooser needs labels: use toolpick.choosers.choose, which hands them to oracles")

    def oracle_choices(self, presented: Presented, relevant: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(n,) choices. `relevant` is (n, D) bool, see `toolpick.choosers.relevant_shown`."""
        weights = self._weights(presented, relevant)
        # The largest of log weight + Gumbel noise falls on each alternative with its share of the weights.
        with np.errstate(divide="ignore"):
            best = (np.log(weights) + self._noise(presented)).argmax(axis=1)
        alternatives = np.column_stack([np.full(len(presented), NONE), presented.order])
        return np.take_along_axis(alternatives, best[:, None], axis=1)[:, 0]

    def oracle_accuracy(self, presented: Presented, relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(n,) probability, over seeds, that a relevant tool is chosen."""
        weights = self._weights(presented, relevant)
        return (weights[:, 1:] * relevant).sum(axis=1) / weights.sum(axis=1)

    def _weights(self, presented: Presented, relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(n, 1 + D): of none, and of the tool at each rank; 0 beyond the depth."""
        scores, shown = presented.scores, presented.order >= 0
        top = scores[:, :1]
        best = np.where(relevant, scores, -np.inf).max(axis=1, keepdims=True)
        best = np.where(relevant.any(axis=1, keepdims=True), best, top)
        distance = np.divide(best - scores, np.abs(top), out=np.zeros_like(scores), where=shown & (top != 0))
        exponent = np.clip(-self.steepness * distance, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
        tools = np.where(relevant, 1.0, self.confusion * np.exp(exponent)) * shown
        # With no weight anywhere (none=0, confusion=0, nothing relevant) none of them is what is left.
        none = np.where(tools.sum(axis=1) > 0, self.none, max(self.none, 1.0))
        return np.column_stack([none, tools])

    def _noise(self, presented: Presented) -> NDArray[np.float64]:
        """(n, 1 + D) standard Gumbel noise by seed, query id and tool name; 0 beyond the depth."""
        noise = np.zeros((len(presented), 1 + presented.order.shape[1]))
        for row, query in enumerate(presented.query_ids):
            names = [None, *(tool.name for tool in presented.shown(row))]
            noise[row, : len(names)] = [_gumbel(self.seed, query, name) for name in names]
        return noise


def _gumbel(seed: int, query: str, tool: str | None) -> float:
    digest = hashlib.blake2b(repr((seed, query, tool)).encode(), digest_size=8).digest()
    uniform = (int.from_bytes(digest, "big") + 0.5) / 2**64
    return float(-np.log(-np.log(uniform)))
