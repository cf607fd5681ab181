"""A learned truncation of the whole score list: self-attention over ranks, AttnCut's objective, small."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from toolpick.shortlist_rules import ShortlistRules
from toolpick_agents import ONE_SHOT, Monitor
from toolpick_agents.hazard import FEATURES, hazard_features

_FILE = "attn_cut.pt"
_TICKS = 100


class CutNetwork(torch.nn.Module):
    """Logits over cut positions from the features of every rank: (n, D, 6) to (n, D)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.mean = torch.nn.Buffer(torch.zeros(len(FEATURES)))
        self.std = torch.nn.Buffer(torch.ones(len(FEATURES)))
        self.embed = torch.nn.Linear(len(FEATURES), width)
        self.attend = torch.nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, batch_first=True)
        self.score = torch.nn.Linear(width, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """See the class."""
        hidden = self.attend(self.embed((features - self.mean) / self.std))
        return self.score(hidden).squeeze(-1)


@dataclass(frozen=True, eq=False)
class AttnCutPolicy:
    """Presents the list up to the most probable cut."""

    network: CutNetwork

    plays: ClassVar[str] = ONE_SHOT
    unit: ClassVar[str] = "log probability"

    def __call__(self, observations: NDArray) -> NDArray[np.int64]:
        return self.action_values(observations).argmax(axis=1)

    def action_values(self, observations: NDArray) -> NDArray[np.float32]:
        """(n, D) log probabilities of cutting at each depth."""
        features = torch.tensor(hazard_features(np.asarray(observations, dtype=np.float64)), dtype=torch.float32)
        self.network.eval()
        with torch.no_grad():
            return torch.log_softmax(self.network(features), dim=1).numpy()

    def save(self, folder: Path) -> None:
        torch.save(self.network.state_dict(), folder / _FILE)


@dataclass(frozen=True)
class AttnCut:
    """Reward-augmented maximum likelihood over cut positions (Wu et al., AttnCut, AAAI 2021).

    The target distribution over cuts is softmax(pay / temperature); the loss is its cross entropy with the
    network's. AttnCut's recurrent layer is left out: log rank is among the features instead.

    Args:
        gradient_steps: batches to train on, however many queries there are; the weights with the best validation
            return seen by the monitor are handed back.
        batch_size: queries in a batch.
        learning_rate: of Adam.
        weight_decay: of Adam.
        temperature: of the target, in standard deviations of the training pay.
        width: of the hidden layer.
        heads: of the attention.
    """

    gradient_steps: int = 400
    batch_size: int = 32
    learning_rate: float = 1e-2
    weight_decay: float = 1e-4
    temperature: float = 10.0
    width: int = 16
    heads: int = 2

    plays: ClassVar[str] = ONE_SHOT
    oracle: ClassVar[bool] = False

    @property
    def training_steps(self) -> int:
        """`_TICKS` a gradient step, so that the monitor evaluates about every twenty of them."""
        return _TICKS * self.gradient_steps

    def train(
        self, rules: ShortlistRules, *, gamma: float, seed: int, monitor: Monitor, **options: Any
    ) -> AttnCutPolicy:
        """See `Agent.train`."""
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        rng = np.random.default_rng([seed, 4])
        features = torch.tensor(hazard_features(rules.rankings.scores[:, : rules.max_depth]), dtype=torch.float32)
        pay = torch.tensor(rules.pay)
        target = torch.softmax(pay / (self.temperature * pay.std().clamp(min=1e-9)), dim=1).float()
        network = CutNetwork(self.width, self.heads)
        network.mean.copy_(features.mean(dim=(0, 1)))
        network.std.copy_(features.std(dim=(0, 1)).clamp(min=1e-6))
        optimizer = torch.optim.Adam(network.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        best, weights = -np.inf, None
        for step in range(1, self.gradient_steps + 1):
            network.train()
            batch = torch.from_numpy(rng.integers(rules.n_queries, size=self.batch_size))
            log_probability = torch.log_softmax(network(features[batch]), dim=1)
            loss = -(target[batch] * log_probability).sum(dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            judged = monitor(_TICKS * step, AttnCutPolicy(network))
            if judged is not None and judged > best:
                best, weights = judged, {key: value.clone() for key, value in network.state_dict().items()}
        if weights is not None:
            network.load_state_dict(weights)
        return AttnCutPolicy(network)

    def load(self, folder: Path) -> AttnCutPolicy:
        """See `Agent.load`."""
        network = CutNetwork(self.width, self.heads)
        network.load_state_dict(torch.load(folder / _FILE, weights_only=True))
        return AttnCutPolicy(network)
