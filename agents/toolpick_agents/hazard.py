"""How likely each rank holds the first relevant tool, given that no earlier one did: a discrete hazard."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolpick.errors import InputError
from toolpick.rankings import Rankings

FEATURES = ("log_depth", "score_over_top", "gap_over_top", "top_score", "score_over_first_five", "score")


def hazard_features(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, D, 6) features `FEATURES` of score lists (n, D). Ratios to a top score of 0 or less are 0."""
    n, n_ranks = scores.shape
    top, five = scores[:, :1], scores[:, :5].mean(axis=1, keepdims=True)
    gap = scores - np.concatenate([scores[:, 1:], scores[:, -1:]], axis=1)
    columns = (
        np.log(np.arange(1, n_ranks + 1))[None, :],
        _ratio(scores, top),
        _ratio(gap, top),
        top,
        _ratio(scores, five),
        scores,
    )
    return np.stack([np.broadcast_to(column, (n, n_ranks)) for column in columns], axis=-1)


@dataclass(frozen=True, eq=False)
class Hazard:
    """A logistic model of the hazard, optionally recalibrated by a rising step function.

    Attributes:
        mean: (6,) of the features on the training pairs.
        std: (6,) likewise.
        weights: (6,) of the standardised features.
        bias: of the logit.
        knots: (m,) raw hazards, rising; empty without recalibration.
        levels: (m,) hazards they stand for, interpolated in between.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    weights: NDArray[np.float64]
    bias: float
    knots: NDArray[np.float64]
    levels: NDArray[np.float64]

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        """(n, D) hazards of score lists (n, D)."""
        logit = (hazard_features(scores) - self.mean) / self.std @ self.weights + self.bias
        hazards: NDArray[Any] = 1.0 / (1.0 + np.exp(-np.clip(logit, -50, 50)))
        if len(self.knots):
            hazards = np.interp(hazards, self.knots, self.levels)
        return hazards

    def found_by(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        """(n, D) probability P(K) that the first relevant tool is within rank K."""
        return 1.0 - np.cumprod(1.0 - self(scores), axis=1)


def save_hazard(path: Path, hazard: Hazard, **extra: NDArray) -> None:
    """Write a hazard, and arrays that go with it, as an npz file."""
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in vars(hazard).items()} | extra
    np.savez(path, **arrays)


def load_hazard(path: Path) -> tuple[Hazard, dict[str, NDArray]]:
    """What `save_hazard` wrote: the hazard and the other arrays."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    own = {field.name: arrays.pop(field.name) for field in fields(Hazard)}
    return Hazard(**own), arrays


def fit_hazard(rankings: Rankings, max_depth: int, *, isotonic: bool = False, seed: int = 0) -> Hazard:
    """Fit on all (query, rank) pairs up to the first relevant tool.

    Args:
        rankings: of the training queries.
        max_depth: ranks 1..D are used.
        isotonic: recalibrate the hazards by isotonic regression on out-of-fold predictions, five folds by query.
        seed: of the folds.

    Raises:
        InputError: every query, or none, has its first relevant tool at each rank, so that there is nothing to fit.
    """
    scores, first = rankings.scores[:, :max_depth], rankings.first_relevant_rank
    ranks = np.arange(1, scores.shape[1] + 1)[None, :]
    at_risk, event = ranks <= first[:, None], ranks == first[:, None]
    features = hazard_features(scores)
    if event[at_risk].all() or not event[at_risk].any():
        raise InputError(
            f"hazard: the {len(first)} training queries have {event.sum()} first hits in {at_risk.sum()} ranks, "
            "which leaves nothing to fit; use more queries or another scorer"
        )
    plain = _logistic(features[at_risk], event[at_risk])
    if not isotonic:
        return plain
    from sklearn.isotonic import IsotonicRegression

    fold = np.random.default_rng([seed, 5]).permutation(len(first)) % 5
    predicted = np.zeros(scores.shape)
    for k in range(5):
        inside = at_risk & (fold != k)[:, None]
        known = event[inside]
        model = plain if known.all() or not known.any() else _logistic(features[inside], known)
        predicted[fold == k] = model(scores[fold == k])
    steps = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(predicted[at_risk], event[at_risk])
    return Hazard(plain.mean, plain.std, plain.weights, plain.bias, steps.X_thresholds_, steps.y_thresholds_)


def _logistic(features: NDArray[np.float64], event: NDArray[np.bool_]) -> Hazard:
    from sklearn.linear_model import LogisticRegression

    mean, std = features.mean(axis=0), features.std(axis=0)
    std = np.where(std > 1e-12, std, 1.0)
    model = LogisticRegression(C=1.0, max_iter=1000).fit((features - mean) / std, event)
    none = np.zeros(0)
    return Hazard(mean, std, model.coef_[0], float(model.intercept_[0]), none, none)


def _ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    a, b = np.broadcast_arrays(numerator, denominator)
    return np.divide(a, b, out=np.zeros(a.shape), where=b > 0)
