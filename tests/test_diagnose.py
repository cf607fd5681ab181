"""Registry diagnostics: by hand, against independent counts, and through the command."""

import sys

import numpy as np
import pandas as pd
import pytest

from experiments import diagnose
from experiments.diagnose import by_depth, describe, findings
from toolpick.datasets.synthetic import Synthetic
from toolpick.rankings import rank
from toolpick.rewards.f1 import F1
from toolpick.scorers.given import Given
from toolpick.scorers.random import RandomScores
from toolpick.shortlist_rules import make_rules


def test_a_diagnosis_by_hand(three_tools):
    """q0: R=1 at rank 1; q1: R=2 at ranks 2 and 3, N=3."""
    table = by_depth(make_rules(rank(three_tools, Given()), F1()))
    assert table["found"].tolist() == [0.5, 1.0, 1.0]
    assert table["p_rand"].tolist() == pytest.approx([(1 / 3 + 2 / 3) / 2, (2 / 3 + 1) / 2, 1.0])
    assert table["ceiling"].tolist() == pytest.approx([1.0, -np.log2(5 / 6), 0.0])
    assert table["bor_bits"].tolist() == pytest.approx([0.0, np.log2(6 / 5), 0.0])
    assert table["expected_relevant"].tolist() == pytest.approx([0.5, 1.0, 1.5])
    assert table["mean_pay"].tolist() == pytest.approx([0.5, 7 / 12, 13 / 20])


def test_findings_of_bfcl(bfcl_rankings):
    found = findings(make_rules(bfcl_rankings))
    assert (found["n_tools"], found["n_queries"], found["relevant"]) == (370, 400, {1: 400})
    assert found["found_1"] == 0.655
    assert sum(found["ranks"].values()) == 400
    assert found["ranks"]["easy"] == 262
    assert found["recommended"] == 2
    assert found["floor_depth"] == int(np.quantile(bfcl_rankings.first_relevant_rank, 0.9, method="inverted_cdf"))
    assert not found["broken"]


def test_a_random_scorer_is_flagged_and_an_informed_one_is_not():
    data = Synthetic(n_tools=100, n_queries=300)()
    assert findings(make_rules(rank(data, RandomScores())))["broken"]
    assert not findings(make_rules(rank(data, Given())))["broken"]


def test_the_sentences_say_what_was_found():
    rules = make_rules(rank(Synthetic(n_tools=30, n_relevant=3, found_at={1: 0.4})(), Given()), max_depth=3)
    found = findings(rules)
    text = describe(found, by_depth(rules))
    assert "30 tools, 400 queries; relevant tools a query: {3: 400}" in text
    assert "90% of queries are not covered at any depth up to 3" in text
    assert f"recommended depth {found['recommended']}" in text
    everything = make_rules(rank(Synthetic(n_tools=30, n_relevant=3)(), Given()))
    assert "from depth 30 on a random list holds 3 relevant tools" in describe(
        findings(everything), by_depth(everything)
    )


def test_the_command_prints_and_draws(tmp_path, capsys, monkeypatch):
    words = ["diagnose", "dataset=synthetic", "scorer=given", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    diagnose.main()
    assert "recommended depth" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "diagnosis.csv")) == 120
    assert (tmp_path / "diagnosis.png").stat().st_size > 10_000
    monkeypatch.setattr(sys, "argv", ["diagnose", "scorer=nobody"])
    with pytest.raises(SystemExit, match="nobody"):
        diagnose.main()
