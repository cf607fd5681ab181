"""What a registry and a scorer allow before any agent is trained.

python -m experiments.diagnose dataset=metatool scorer=bm25 -o outputs/diagnosis

Over all queries, labels in view: this describes the ranking, and is no result of an agent.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hydra.errors import HydraException

from experiments.build import make
from experiments.compose import composed
from experiments.record import write_csv
from experiments.stats import wilson_interval
from toolpick import InputError, metrics
from toolpick.rankings import Rankings, rank
from toolpick.shortlist_rules import ShortlistRules, make_rules

_CHANCE_RULES_FROM = 3.0  # lambda at which a random shortlist hits almost as often (arXiv 2605.18857)
_BROKEN_AT = 5


def by_depth(rules: ShortlistRules) -> pd.DataFrame:
    """A row a depth 1..D.

    Columns: `depth`, `found` (share of queries with a relevant tool within it), `p_rand` (the mean chance of that),
    `bor_bits`, `ceiling` (bits of a perfect list), `expected_relevant` (lambda = K*R/N, mean over queries), and
    `mean_pay` (of stopping there, under the rules' reward).
    """
    rankings, depths = rules.rankings, np.arange(1, rules.max_depth + 1)
    chance = metrics.p_rand(rankings.n_tools, rankings.n_relevant[:, None], depths[None, :])
    found = rules.hits > 0
    return pd.DataFrame(
        {
            "depth": depths,
            "found": found.mean(axis=0),
            "p_rand": chance.mean(axis=0),
            "bor_bits": [metrics.bor_bits(found[:, k], chance[:, k]) for k in range(rules.max_depth)],
            "ceiling": [metrics.bor_ceiling(chance[:, k]) for k in range(rules.max_depth)],
            "expected_relevant": metrics.expected_relevant(rankings.n_tools, rankings.n_relevant.mean(), depths),
            "mean_pay": rules.pay.mean(axis=0),
        }
    )


def findings(rules: ShortlistRules, floor: float = 0.9) -> dict[str, Any]:
    """The diagnosis in numbers.

    Returns:
        `n_tools`, `n_queries`, `relevant` (count of queries by R), `ranks` (count of queries by difficulty bucket),
        `found_1`, `median_rank`; `tied_top` (share of queries whose best score several tools have) and `no_match`
        (share whose scores are all equal); `broken`: whether found@5, by the lower end of its Wilson interval, does
        not exceed what chance finds; `recommended` depth, the one with the highest mean pay; `floor_depth`, the
        least that covers `floor` of the queries, or None; `chance_depth`, the first at which lambda reaches 3, or
        None.
    """
    rankings, table = rules.rankings, by_depth(rules)
    width = min(_BROKEN_AT, rules.max_depth)
    hits = int((rules.hits[:, width - 1] > 0).sum())
    covered = table.loc[table["found"] >= floor, "depth"]
    chance = table.loc[table["expected_relevant"] >= _CHANCE_RULES_FROM, "depth"]
    scores = rankings.scores
    return {
        "n_tools": rankings.n_tools,
        "n_queries": rankings.n_queries,
        "relevant": {int(r): int(n) for r, n in zip(*np.unique(rankings.n_relevant, return_counts=True), strict=True)},
        "ranks": _bucket_counts(rankings),
        "found_1": float(table["found"].iloc[0]),
        "median_rank": float(np.median(rankings.first_relevant_rank)),
        "tied_top": float((scores[:, :1] == scores[:, 1:2]).mean()) if rankings.n_tools > 1 else 0.0,
        "no_match": float((np.ptp(scores, axis=1) == 0).mean()),
        "broken": bool(wilson_interval(hits, rankings.n_queries).low <= table["p_rand"].iloc[width - 1]),
        "recommended": int(table["depth"].iloc[int(table["mean_pay"].to_numpy().argmax())]),
        "floor_depth": int(covered.iloc[0]) if len(covered) else None,
        "chance_depth": int(chance.iloc[0]) if len(chance) else None,
    }


def describe(found: dict[str, Any], table: pd.DataFrame, *, floor: float = 0.9) -> str:
    """The diagnosis in sentences."""
    at = table.set_index("depth")
    best = at.loc[found["recommended"]]
    lines = [
        f"{found['n_tools']} tools, {found['n_queries']} queries; relevant tools a query: {found['relevant']}",
        f"first relevant tool by rank: {found['ranks']}, median {found['median_rank']:.0f}",
        f"best score shared by several tools for {found['tied_top']:.1%} of queries, all scores equal for "
        f"{found['no_match']:.1%}",
    ]
    if found["broken"]:
        lines.append("BROKEN SCORER: found@5 is not above what a random shortlist finds")
    lines.append(
        f"recommended depth {found['recommended']}: it pays most, {best['mean_pay']:.3f} on average; it finds "
        f"{best['found']:.1%} where chance finds {best['p_rand']:.1%}"
    )
    if found["floor_depth"] is None:
        lines.append(f"{floor:.0%} of queries are not covered at any depth up to {table['depth'].iloc[-1]}")
    else:
        lines.append(f"{floor:.0%} of queries are covered from depth {found['floor_depth']} on")
    if found["chance_depth"] is not None:
        lines.append(f"from depth {found['chance_depth']} on a random list holds 3 relevant tools: depth buys nothing")
    return "\n".join(lines)


def draw(rankings: Rankings, table: pd.DataFrame, path: Path) -> None:
    """Found@K beside chance, the BoR ceiling, and the histogram of first ranks; a PNG."""
    from experiments.figures import figure_and_axes, save

    figure, (left, middle, right) = figure_and_axes(12.0, 3.8, columns=3)
    left.plot(table["depth"], table["found"], color="#0072b2", label="this ranking")
    left.plot(table["depth"], table["p_rand"], color="0.5", linestyle="--", label="chance")
    left.set_ylabel("share of queries with a relevant tool")
    left.set_ylim(0, 1.02)
    middle.plot(table["depth"], table["ceiling"], color="0.5", linestyle="--", label="ceiling")
    middle.plot(table["depth"], table["bor_bits"], color="#0072b2", label="this ranking")
    middle.set_ylabel("Bits-over-Random")
    ticks = [k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if k <= table["depth"].iloc[-1]]
    for axes in (left, middle):
        axes.set_xlabel("depth K (log scale)")
        axes.set_xscale("log")
        axes.set_xticks(ticks, [str(k) for k in ticks])
        axes.minorticks_off()
        axes.legend(fontsize=8, frameon=False)
    counts = _bucket_counts(rankings)
    right.bar(list(counts), list(counts.values()), color="#0072b2")
    right.set_ylabel("queries")
    right.set_xticks(range(4), ["1", "2-5", "6-20", "21+"])
    right.set_xlabel("rank of the first relevant tool")
    save(figure, path)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", help="dataset=..., scorer=..., reward=..., max_depth=...")
    parser.add_argument("--floor", type=float, default=0.9, help="share of queries to cover")
    parser.add_argument("-o", "--output", type=Path, help="folder for diagnosis.csv and diagnosis.png")
    arguments = parser.parse_args()
    try:
        config = composed(["max_depth=null", *arguments.overrides])
        rankings = rank(make(config, "dataset")(), make(config, "scorer"))
        rules = make_rules(rankings, make(config, "reward"), max_depth=config["max_depth"])
        table = by_depth(rules)
        print(describe(findings(rules, arguments.floor), table, floor=arguments.floor))
        if arguments.output:
            write_csv(table, arguments.output / "diagnosis.csv")
            draw(rankings, table, arguments.output / "diagnosis.png")
    except (InputError, HydraException) as error:
        sys.exit(f"error: {error}")


def _bucket_counts(rankings: Rankings) -> dict[str, int]:
    buckets = metrics.difficulty(rankings.first_relevant_rank)
    return {name: int((buckets == name).sum()) for name in metrics.DIFFICULTY_BUCKETS}


if __name__ == "__main__":
    main()
