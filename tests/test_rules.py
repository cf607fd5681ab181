"""Rules that read the whole score list: by hand, against brute force, and what they promise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toolpick import InputError
from toolpick.datasets.synthetic import Synthetic
from toolpick.rankings import rank
from toolpick.rewards.bor import Bor
from toolpick.rewards.bor_with_floor import BorWithFloor
from toolpick.rewards.cost_aware import CostAware
from toolpick.rewards.f1 import F1
from toolpick.rewards.ndcg import Ndcg
from toolpick.scorers.given import Given
from toolpick.shortlist_one_shot import ShortlistOneShotEnv
from toolpick.shortlist_rules import make_rules
from toolpick_agents.attn_cut import AttnCut
from toolpick_agents.conformal import Conformal
from toolpick_agents.elbow import Elbow
from toolpick_agents.evaluation import evaluate
from toolpick_agents.fixed_depth import BestFixedDepth
from toolpick_agents.hazard import fit_hazard, hazard_features
from toolpick_agents.hazard_stop import HazardStop
from toolpick_agents.q_learning import QLearning
from toolpick_agents.relative_threshold import RelativeThreshold
from toolpick_agents.score_gap import ScoreGap
from toolpick_agents.with_floor import WithFloor

RANKINGS = rank(Synthetic(n_tools=40, n_queries=300, found_at={1: 0.5, 3: 0.75, 10: 0.92})(), Given())
TRAIN, TEST = RANKINGS.subset(range(200)), RANKINGS.subset(range(200, 300))
RULES, HELD = make_rules(TRAIN), make_rules(TEST)
SILENT = {"monitor": lambda step, policy: None, "gamma": 1.0, "seed": 0}
LISTS = np.array([[9.0, 8.5, 3.0, 2.9, 2.8], [5.0, 1.0, 0.9, 0.8, 0.7], [4.0, 4.0, 4.0, 4.0, 4.0]])


def test_score_gap_cuts_at_the_largest_drop():
    assert ScoreGap().depths(LISTS).tolist() == [2, 1, 1]
    assert ScoreGap(buffer=2).depths(LISTS).tolist() == [4, 3, 3]
    assert ScoreGap(search_share=0.2).depths(LISTS).tolist() == [1, 1, 1]
    assert ScoreGap().depths(LISTS[:, :1]).tolist() == [1, 1, 1]


def test_relative_threshold_shows_what_comes_near_the_top():
    assert RelativeThreshold(0.9).depths(LISTS).tolist() == [2, 1, 5]
    assert RelativeThreshold(0.15).depths(LISTS).tolist() == [5, 4, 5]
    assert RelativeThreshold(0.5).depths(-LISTS[:, ::-1]).min() >= 1


def test_relative_threshold_chooses_the_share_that_pays_most_in_training():
    chosen = RelativeThreshold(candidates=20).train(RULES, **SILENT)
    pays = {s / 20: evaluate(RelativeThreshold(s / 20), ShortlistOneShotEnv(RULES))["pay"].mean() for s in range(1, 21)}
    assert pays[chosen.share or 0.0] == max(pays.values())


def test_elbow_cuts_before_the_bend():
    """First list: the chord falls from 9 to 2.8 by 1.55 a rank; the third score lies 2.9 below it."""
    assert Elbow().depths(LISTS).tolist() == [2, 1, 1]


@pytest.mark.parametrize("rule", [ScoreGap(), RelativeThreshold(0.5), Elbow()])
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=15))
@settings(max_examples=60)
def test_any_list_gets_a_depth_within_it(rule, scores):
    ranked = np.sort(np.array([scores]))[:, ::-1]
    assert 1 <= rule.depths(ranked)[0] <= len(scores)


def test_the_hazard_equals_scikit_learns_pipeline():
    features = hazard_features(TRAIN.scores)
    at_risk = np.arange(1, 41) <= TRAIN.first_relevant_rank[:, None]
    event = np.arange(1, 41) == TRAIN.first_relevant_rank[:, None]
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(features[at_risk], event[at_risk])
    expected = pipeline.predict_proba(hazard_features(TEST.scores).reshape(-1, 6))[:, 1].reshape(100, 40)
    assert fit_hazard(TRAIN, 40)(TEST.scores) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("isotonic", [False, True])
def test_the_hazard_is_calibrated_on_unseen_queries(isotonic):
    """Within the first ten ranks, the mean predicted P(K) is near the share found."""
    found = fit_hazard(TRAIN, 40, isotonic=isotonic).found_by(TEST.scores).mean(axis=0)
    for k in (1, 2, 5, 10):
        assert found[k - 1] == pytest.approx((TEST.first_relevant_rank <= k).mean(), abs=0.12)
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("reward", [Bor(), F1(), Ndcg(), CostAware(0.5), BorWithFloor(1.0)])
def test_hazard_stop_maximises_expected_pay_by_brute_force(reward):
    rules = make_rules(TRAIN, reward, max_depth=8)
    policy = HazardStop().train(rules, **SILENT)
    scores = TEST.scores[:5, :8]
    found = policy.hazard.found_by(scores)
    for row in range(5):
        expected = []
        for k in range(1, 9):
            total = (1 - found[row, 7]) * rules.pay_by_first_rank()[8, k - 1]
            for r in range(1, 9):
                probability = found[row, r - 1] - (found[row, r - 2] if r > 1 else 0.0)
                total += probability * rules.pay_by_first_rank()[r - 1, k - 1]
            expected.append(total)
        assert policy.action_values(scores)[row] == pytest.approx(expected)
        assert policy(scores)[row] == int(np.argmax(expected))


def test_for_bor_expected_pay_is_found_times_bits():
    policy = HazardStop().train(RULES, **SILENT)
    found = policy.hazard.found_by(TEST.scores)
    assert policy.action_values(TEST.scores) == pytest.approx(found * np.log2(40 / np.arange(1, 41)))


def test_pay_by_first_rank_is_what_such_a_query_is_paid():
    for reward in (Bor(), F1(), Ndcg()):
        rules = make_rules(TEST, reward)
        table = rules.pay_by_first_rank()
        for query in range(10):
            assert rules.pay[query] == pytest.approx(table[TEST.first_relevant_rank[query] - 1])


def test_the_pay_table_of_a_shallower_list_is_a_corner_of_the_whole():
    for reward in (Bor(), F1(), Ndcg(), CostAware()):
        rules = make_rules(TEST, reward)
        assert rules.pay_by_first_rank(max_depth=6)[:6] == pytest.approx(rules.pay_by_first_rank()[:6, :6])


def test_hazard_stop_beats_the_best_fixed_depth_where_gaps_tell():
    fixed = evaluate(BestFixedDepth().train(RULES, **SILENT), ShortlistOneShotEnv(HELD))["pay"].mean()
    assert evaluate(HazardStop().train(RULES, **SILENT), ShortlistOneShotEnv(HELD))["pay"].mean() > fixed


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_conformal_covers_as_promised_over_twenty_splits(coverage):
    """Mean over 20 random splits: at least the promise, at most 1/(n+1) and ties above, within three errors."""
    covered = []
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(300)
        train, test = make_rules(RANKINGS.subset(order[:200])), make_rules(RANKINGS.subset(order[200:]))
        policy = Conformal(coverage).train(train, gamma=1.0, seed=seed, monitor=lambda step, policy: None)
        covered.append((evaluate(policy, ShortlistOneShotEnv(test))["hits"] > 0).mean())
    error = np.sqrt(coverage * (1 - coverage) / 300)  # 300 distinct queries, whatever the number of splits
    assert coverage - 3 * error < np.mean(covered) < coverage + 1 / 101 + 3 * error


def test_a_promise_too_high_for_its_calibration_queries_shows_everything():
    policy = Conformal(0.999).train(RULES, **SILENT)
    assert (policy(TEST.scores) == 39).all()


def test_with_floor_meets_its_floor_at_less_depth_than_conformal_or_fixed():
    agent = WithFloor(HazardStop(), floor=0.85)
    rows = evaluate(agent.train(RULES, **SILENT), ShortlistOneShotEnv(HELD))
    assert (rows["hits"] > 0).mean() > 0.85 - 3 * np.sqrt(0.85 * 0.15 / 100)
    assert rows["depth"].mean() < 20, "it does not collapse to showing everything"
    low = evaluate(replace(agent, floor=0.7).train(RULES, **SILENT), ShortlistOneShotEnv(HELD))
    assert low["depth"].mean() < rows["depth"].mean()


def test_a_floor_out_of_reach_says_so():
    shallow = make_rules(TRAIN, max_depth=2)
    with pytest.raises(InputError, match="95% are not covered within max_depth 2"):
        WithFloor(HazardStop(), floor=0.95).train(shallow, **SILENT)


def test_attn_cut_learns_to_beat_chance_depths():
    rows = evaluate(AttnCut(gradient_steps=300).train(RULES, **SILENT), ShortlistOneShotEnv(HELD))
    assert rows["pay"].mean() > make_rules(TEST).pay.mean()


@pytest.mark.parametrize(
    "agent",
    [ScoreGap(buffer=1), RelativeThreshold(), Elbow(), HazardStop(), HazardStop(isotonic=True), Conformal(),
     WithFloor(HazardStop(), steps=2, folds=2), AttnCut(gradient_steps=5)],
    ids=lambda agent: type(agent).__name__,
)  # fmt: skip
def test_a_saved_rule_decides_as_before(agent, tmp_path):
    policy = agent.train(RULES, **SILENT)
    policy.save(tmp_path)
    assert (agent.load(tmp_path)(TEST.scores) == policy(TEST.scores)).all()
    assert set(policy(TEST.scores)) <= set(range(40))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ScoreGap(0.0), "score_gap"),
        (lambda: ScoreGap(buffer=-1), "score_gap"),
        (lambda: RelativeThreshold(float("nan")), "relative_threshold"),
        (lambda: RelativeThreshold()(LISTS), "trained first"),
        (lambda: Conformal(1.0), "coverage must lie between"),
        (lambda: WithFloor(HazardStop(), 1.5), "floor must lie between"),
        (lambda: WithFloor(QLearning()), "one-shot"),
        (lambda: Bor(0), "at_least"),
        (lambda: BorWithFloor(-1.0), "multiplier"),
        (lambda: CostAware(-1.0), "price"),
        (lambda: Conformal().train(make_rules(TRAIN.subset([0])), **SILENT), "too few"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_new_rewards_by_hand(three_tools):
    """q0: R=1 at rank 1; q1: R=2 at ranks 2 and 3, N=3."""
    rankings = rank(three_tools, Given())
    both = make_rules(rankings, Bor(at_least=2)).pay
    assert both == pytest.approx(np.array([[0, 0, 0], [0, 0, 0]]))  # at K = 3 chance finds both too
    floor = make_rules(rankings, BorWithFloor(2.0)).pay
    assert floor == pytest.approx(make_rules(rankings, Bor()).pay + np.array([[2, 2, 2], [0, 2, 2]]))
    d2, d3 = 1 / np.log2(3), 1 / 2
    ndcg = np.array([[1, 1 - d2 / 4, 1 - d2 / 4 - d3 / 4], [-0.25, -0.25 + d2, -0.25 + d2 + d3]])
    ndcg[1] /= 1 + d2
    assert make_rules(rankings, Ndcg(0.25)).pay == pytest.approx(ndcg)
    tokens = np.array([tool.estimated_tokens for tool in three_tools.tools])
    assert tokens[0] == len('{"name": "add", "description": "", "parameters": {}}') / 4
    cost = make_rules(rankings, CostAware(10.0)).pay
    assert cost[0, 0] == pytest.approx(1 - 10 * tokens[0] / 1000)
    assert cost[1, 2] == pytest.approx(1 - 10 * tokens.sum() / 1000)


def test_at_least_two_pays_only_when_two_are_shown(small_rankings):
    rules = make_rules(small_rankings, Bor(at_least=2))
    assert ((rules.pay > 0) <= (rules.hits >= 2)).all()
    assert (rules.pay > 0).any()
