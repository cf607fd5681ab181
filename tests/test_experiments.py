"""From the command line to tables and figures, on tiny data: one run end to end for each entry point."""

import importlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from experiments import figures, record, reproduce
from experiments.collect import collect, summarize
from experiments.compose import composed
from experiments.play import replay
from experiments.record import open_run, open_runs, recording, text_hash
from experiments.run import execute
from experiments.sweep import sweep
from experiments.tune import tune
from toolpick import InputError
from toolpick.metrics import bor_reward, p_rand
from toolpick.splits.random import Random
from toolpick_agents.evaluation import COLUMNS
from toolpick_agents.fixed_depth import BestFixedDepth

ROOT = Path(__file__).resolve().parents[1]
TINY = [
    "dataset=synthetic",
    "dataset.n_tools=20",
    "dataset.n_queries=60",
    "scorer=given",
    "max_depth=10",
    "curve_every=200",
    "progress=false",
]
TINY_DQN = ["agent=dqn", "agent.total_timesteps=600", "agent.algorithm.learning_starts=64"]
TINY_Q = ["agent=q_learning", "agent.total_timesteps=1000"]
TIMING = ["train_seconds"]


def command(module, *words, **options):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        capture_output=True, text=True, timeout=300, env=environment, **options,
    )  # fmt: skip


def tiny(outputs, *overrides):
    return composed([*TINY, f"outputs={outputs}", *overrides])


@pytest.fixture(scope="module")
def dqn_run(tmp_path_factory):
    return execute(tiny(tmp_path_factory.mktemp("dqn"), *TINY_DQN))


def test_a_run_records_rows_curve_agent_and_its_circumstances(dqn_run):
    rows, curves, meta = dqn_run.rows(), dqn_run.curves(), dqn_run.meta
    assert list(rows.columns) == COLUMNS
    assert len(rows) == 18  # 30 % of 60
    assert list(curves.columns) == ["step", "return", "pay", "depth", "coverage"]
    assert curves["step"].iloc[-1] == 600
    assert len(curves) == 4
    assert set(meta) >= {"id", "config", "names", "git", "versions", "code", "data", "train_seconds", "oracle"}
    assert meta["names"]["agent"] == "dqn"
    assert (dqn_run.folder / "agent" / "model.zip").is_file()
    assert dqn_run.folder.name == meta["id"]


def test_pay_and_return_can_be_recomputed_from_the_raw_facts(dqn_run):
    rows = dqn_run.rows()
    chance = p_rand(rows["n_tools"], rows["n_relevant"], rows["depth"])
    assert rows["pay"].tolist() == pytest.approx(bor_reward(rows["hits"] > 0, chance).tolist())
    cost = 0.01 * (rows["depth"] - 1)
    assert rows["return"].tolist() == pytest.approx((rows["pay"] - cost).tolist())


def test_a_finished_run_is_not_repeated_but_for_new_code_or_data(tmp_path, monkeypatch):
    config = tiny(tmp_path, "agent=best_fixed_depth")
    first = execute(config)
    stamp = (first.folder / "run.json").stat().st_mtime_ns
    assert execute(config).meta == first.meta
    assert (first.folder / "run.json").stat().st_mtime_ns == stamp
    monkeypatch.setattr("experiments.run.code_hash", lambda config: "other")
    assert execute(config).meta["code"] == "other"
    assert len(open_runs(tmp_path / "runs")) == 1


class Spy(BestFixedDepth):
    """Writes down which queries it is trained and validated on."""

    seen: ClassVar[dict] = {}

    def train(self, rules, *, gamma, seed, monitor, **options):
        Spy.seen["train"] = rules.rankings.query_ids
        Spy.seen["validation"] = vars(monitor)["_env"].unwrapped.rules.rankings.query_ids
        Spy.seen["discount"] = vars(monitor)["_gamma"]
        return super().train(rules, gamma=gamma, seed=seed, monitor=monitor)


def test_agents_learn_and_choose_on_learning_queries_and_are_judged_on_the_held_out(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.build.make_agent", lambda config: Spy())
    config = tiny(tmp_path, "agent=best_fixed_depth", "gamma=0.7")
    run = execute(config)
    split = Random()(60, 0)
    parts = {name: {f"synthetic_{i}" for i in getattr(split, name)} for name in ("train", "validation", "test")}
    assert set(Spy.seen["train"]) == parts["train"]
    assert set(Spy.seen["validation"]) == parts["validation"]
    assert set(run.rows()["query_id"]) == parts["test"]
    assert Spy.seen["discount"] == 0.7
    assert run.learned_on() == {text_hash(f"Synthetic request {i}.") for i in (*split.train, *split.validation)}


def test_the_curve_ends_with_the_policy_that_is_played(tmp_path):
    run = execute(tiny(tmp_path, "agent=q_learning", "agent.total_timesteps=640", "curve_every=500"))
    assert run.curves()["step"].tolist() == [32, 512, 640]


def test_a_reward_outside_the_checkout_is_named_and_watched(tmp_path, monkeypatch):
    module = tmp_path / "own_reward.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    for cost in (0.0, 0.5):
        module.write_text(f"def pay(shortlist):\n    return shortlist.hit - {cost} * shortlist.depth\n")
        record._module_source.cache_clear()
        importlib.invalidate_caches()
        sys.modules.pop("own_reward", None)
        config = tiny(tmp_path, "agent=best_fixed_depth") | {
            "reward": {"_target_": "own_reward.pay", "_partial_": True}
        }
        run = execute(config)
        assert run.meta["names"]["reward"] == "pay"
        if cost:
            assert run.rows()["pay"].tolist() == pytest.approx(
                ((run.rows()["hits"] > 0) - 0.5 * run.rows()["depth"]).tolist()
            )


def test_what_a_killed_process_left_is_no_run(tmp_path):
    run = execute(tiny(tmp_path, "agent=best_fixed_depth"))
    shutil.copytree(run.folder, run.folder.with_name(f".{run.folder.name}.1234abcd"))
    assert len(open_runs(tmp_path / "runs")) == 1


def test_different_experiments_are_told_apart_and_never_drawn_as_seeds(tmp_path):
    runs = [execute(tiny(tmp_path, "agent=best_fixed_depth", f"gamma={gamma}")) for gamma in (1, 0.5)]
    table = collect(runs)
    assert table["experiment"].nunique() == 2
    assert set(table["gamma"]) == {"1", "0.5"}
    with pytest.raises(InputError, match="2 different experiments"):
        figures.draw(runs, tmp_path / "figures")
    repetitions = [runs[0], execute(tiny(tmp_path, "agent=best_fixed_depth", "seed=1"))]
    assert "gamma" not in collect(repetitions)
    figures.draw(repetitions, tmp_path / "figures")


def test_a_table_that_cannot_be_written_leaves_nothing(tmp_path):
    execute(tiny(tmp_path, "agent=best_fixed_depth"))
    (tmp_path / "file").write_text("in the way")
    for module in ("experiments.collect", "experiments.figures"):
        done = command(module, tmp_path / "runs", "-o", tmp_path / "file" / "x.csv")
        assert (done.returncode, "cannot write" in done.stderr, "Traceback" in done.stderr) == (1, True, False)
    done = command("experiments.collect", tmp_path / "runs", "-o", tmp_path / "new" / "x.csv")
    assert done.returncode == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x.csv"]


def test_logs_asked_for_later_are_made(tmp_path):
    run = execute(tiny(tmp_path, *TINY_Q))
    execute(tiny(tmp_path, *TINY_Q, "tensorboard=true"))
    assert list((tmp_path / "tensorboard" / run.folder.name).rglob("events*"))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=-1", "seed must be a whole number of 0 or more"),
        ("seed=1.5", "seed must be a whole number"),
        ("curve_every=0", "curve_every must be a whole number of 1 or more"),
        ("gamma=2", "gamma must be a number of at least 0 and at most 1"),
        ("gamma=-0.1", "gamma must be a number"),
        ("step_cost=abc", "step_cost must be a number"),
    ],
)
def test_settings_that_belong_to_no_group_are_checked_too(tmp_path, override, message):
    with pytest.raises(InputError, match=message):
        execute(tiny(tmp_path, "agent=best_fixed_depth", override))


def test_a_network_that_cannot_read_the_task_says_so(tmp_path):
    one_shot = [
        "agent=ppo",
        "agent.plays=toolpick/ShortlistOneShot-v0",
        "agent.total_timesteps=256",
        "agent.num_envs=2",
    ]
    run = execute(tiny(tmp_path, *one_shot, "agent.algorithm.n_steps=16", "agent.algorithm.batch_size=16"))
    with pytest.raises(InputError, match="cannot read these observations"):
        replay(run, ["max_depth=5"])
    assert (
        replay(run, ["step_cost=1e-3"])["return"].tolist() != run.rows()["return"].tolist()
        or run.rows()["depth"].max() == 1
    )


def test_a_sweep_with_a_bad_value_ends_with_a_message(tmp_path):
    done = command("experiments.run", "-m", *TINY, f"outputs={tmp_path}", "agent=fixed_depth", "agent.depth=1,0")
    assert done.returncode == 2
    assert "error: agent fixed_depth: depth must be in 1..10" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(open_runs(tmp_path / "runs")) == 1


def test_a_replayed_agent_gives_the_recorded_rows(dqn_run):
    assert_frame_equal(replay(dqn_run), dqn_run.rows())


def own_files(folder, first=0):
    """Twenty tools, and thirty queries that name them."""
    lines = [json.dumps({"name": f"tool_{i}", "description": f"does thing{i}"}) for i in range(20)]
    (folder / "tools.jsonl").write_text("\n".join(lines))
    queries = [
        {"query": f"request {q} thing{q % 20}", "relevant": [f"tool_{q % 20}"]} for q in range(first, first + 30)
    ]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    return [f"dataset.tools={folder / 'tools.jsonl'}", f"dataset.queries={folder / 'queries.jsonl'}"]


def test_queries_it_learned_on_are_refused_in_a_file_of_another_name_too(tmp_path):
    words = ["dataset=jsonl", *own_files(tmp_path), "scorer=bm25", "max_depth=null", "agent=best_fixed_depth"]
    run = execute(composed([*words, f"outputs={tmp_path}", "progress=false"]))
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="were trained or validated on"):
        replay(run, own_files(tmp_path / "other", first=3))
    assert len(replay(run, own_files(tmp_path / "other", first=100))) == 9


def test_a_trained_agent_plays_other_data_but_never_what_it_learned_on(dqn_run, tmp_path):
    other = replay(dqn_run, ["dataset=jsonl", *own_files(tmp_path), "scorer=bm25", "max_depth=null"])
    assert len(other) == 9
    for refused, message in (
        (["seed=1"], "were trained or validated on"),
        (["split.test_share=0.6"], "were trained or validated on"),
        (["agent=q_learning"], "keeps its agent"),
        (["observation=notebook"], "keeps its observation"),
    ):
        with pytest.raises(InputError, match=message):
            replay(dqn_run, refused)


def test_the_same_seed_gives_the_same_rows_for_any_number_of_workers(tmp_path):
    tables = []
    for workers in (1, 2):
        configs = [
            tiny(tmp_path / str(workers), f"seed={seed}", *agent) for agent in (TINY_DQN, TINY_Q) for seed in (0, 1)
        ]
        runs = sweep(configs, workers=workers)
        assert [run.config["seed"] for run in runs] == [0, 1, 0, 1]
        tables.append((collect(runs).drop(columns=TIMING), pd.concat([run.rows() for run in runs])))
        curves = pd.concat([run.curves() for run in runs])
        tables[-1] = (*tables[-1], curves)
    for one, two in zip(*tables, strict=True):
        assert_frame_equal(one, two)


def test_a_summary_by_hand():
    rows = pd.DataFrame(
        {
            "query_id": ["a", "b", "c", "d"],
            "depth": [1, 2, 4, 4],
            "hits": [1, 1, 0, 1],
            "n_relevant": 1,
            "n_tools": 8,
            "first_relevant_rank": [1, 2, 7, 4],
            "pay": 0.0,
            "return": [1.0, 2.0, 3.0, 4.0],
        }
    )
    summary = summarize(rows)
    assert summary["coverage"] == 0.75
    assert summary["mean_depth"] == 2.75
    assert summary["bor_bits"] == pytest.approx(np.log2(0.75 / (2.75 / 8)))
    assert summary["mean_bor_reward"] == pytest.approx((3 + 2 + 0 + 1) / 4)
    assert summary["mean_f1"] == pytest.approx((1 + 2 / 3 + 0 + 2 / 5) / 4)
    assert summary["mean_return"] == 2.5
    assert (summary["queries_medium"], summary["coverage_medium"], summary["depth_medium"]) == (2, 1.0, 3.0)
    assert (summary["queries_hard"], summary["coverage_hard"]) == (1, 0.0)
    assert summary["queries_very_hard"] == 0
    assert np.isnan(summary["depth_very_hard"])


def test_the_command_line_runs_sweeps_collects_and_plays(tmp_path):
    out = f"outputs={tmp_path}"
    done = command("experiments.run", *TINY, out, *TINY_Q, "tensorboard=true")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.split()[0])
    assert re.search(r"coverage 0\.\d+ at depth \d", done.stdout)
    assert (folder / "agent" / "q_table.csv").is_file()
    assert list((tmp_path / "tensorboard" / folder.name).rglob("events*"))
    done = command("experiments.run", "-m", *TINY, out, "agent=best_fixed_depth", "reward=bor,f1", "seed=range(2)")
    assert done.returncode == 0, done.stderr
    assert len(open_runs(tmp_path / "runs")) == 5
    done = command("experiments.collect", tmp_path / "runs", "-o", tmp_path / "table.csv")
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "table.csv")
    assert table.groupby(["agent", "reward"]).size().to_dict() == {
        ("best_fixed_depth", "bor"): 2, ("best_fixed_depth", "f1"): 2, ("q_learning", "bor"): 1,
    }  # fmt: skip
    done = command("experiments.play", folder, "--show", 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("---- cut ----") == 2
    recorded = table.set_index("run_id").loc[folder.name]
    assert f"{recorded['coverage']:.4f}" in done.stdout


def test_reproduce_writes_its_table_and_figures(tmp_path):
    overrides = [word for word in TINY if not word.startswith("max_depth")] + [
        "dataset.n_tools=120",
        "max_depth=100",
    ]
    # Every agent of the real experiment, with training cut short.
    configs = reproduce.configs(str(tmp_path), seeds=(0, 1), extra=overrides)
    for config in configs:
        if "total_timesteps" in config["agent"]:
            config["agent"] |= {"total_timesteps": 400}
    runs = sweep(configs, workers=2)
    reproduce.report(runs, tmp_path / "reproduce")
    table = pd.read_csv(tmp_path / "reproduce" / "shortlist.csv")
    promised = "dataset,scorer,agent,reward,seed,n_tools,n_queries,coverage,mean_depth,bor_bits,mean_bor_reward,mean_f1"
    assert list(table.columns[:12]) == promised.split(",")
    assert {f"{kind}_{b}" for kind in ("coverage", "depth") for b in ("easy", "medium", "hard", "very_hard")} <= set(
        table
    )
    agents = {"dqn", "q_learning", "best_fixed_depth", "clairvoyant", *(f"fixed_{k}" for k in (1, 3, 5, 10, 50))}
    assert set(table["agent"]) == agents
    assert len(table) == len(agents) * 3 * 2
    assert len(pd.read_csv(tmp_path / "reproduce" / "comparisons.csv")) == 12
    for name in ("coverage_against_depth", "depth_by_difficulty", "learning_curves"):
        assert (tmp_path / "reproduce" / f"{name}.png").stat().st_size > 10_000


def test_tune_ranks_settings_by_their_validation_pay(tmp_path):
    swept = [*TINY, f"outputs={tmp_path}", "agent=q_learning", "agent.total_timesteps=400,800", "gamma=1,0.5"]
    table = tune(swept, seeds=2)
    assert len(table) == 4
    assert table["pay"].is_monotonic_decreasing
    assert set(table["settings"]) == {
        f"agent.total_timesteps={steps} gamma={gamma}" for steps in (400, 800) for gamma in (1, 0.5)
    }
    runs = [run for run in open_runs(tmp_path / "runs") if run.config["gamma"] == 1]
    lasts = [run.curves()["pay"].iloc[-1] for run in runs if run.config["agent"]["total_timesteps"] == 400]
    assert len(lasts) == 2
    shown = table.loc[table["settings"] == "agent.total_timesteps=400 gamma=1", "pay"]
    assert shown.tolist() == pytest.approx([np.mean(lasts)])
    with pytest.raises(InputError, match="does not learn"):
        tune([*TINY, f"outputs={tmp_path}", "agent=fixed_depth"], seeds=1)


def test_the_tune_and_figures_commands(tmp_path):
    done = command("experiments.tune", *TINY, f"outputs={tmp_path}", *TINY_Q, "gamma=1,0.5", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert "gamma=0.5" in done.stdout
    execute(tiny(tmp_path / "one", *TINY_Q))
    done = command("experiments.figures", tmp_path / "one" / "runs", "-o", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "figures").glob("*.png"))) == 3
    done = command("experiments.tune", "agent=nobody")
    assert (done.returncode, "nobody" in done.stderr, "Traceback" in done.stderr) == (1, True, False)


def test_reproduce_with_bad_words_ends_with_a_message(tmp_path):
    for words in (["agent.depht=1"], ["max_depth=0", "dataset=synthetic", "scorer=given"]):
        done = command("experiments.reproduce", "--outputs", tmp_path, "--seeds", "1", "--workers", "1", *words)
        assert (done.returncode, "error: " in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["agent=fixed_depth", "agent.depth=0"], r"^error: agent fixed_depth: depth must be in 1\.\.10"),
        (["agent=fixed_depth", "agent.depth=11"], r"^error: agent fixed_depth: depth must be in 1\.\.10"),
        (["max_depth=21"], r"^error: max_depth must be a whole number in 1\.\.20"),
        (["max_depth=0"], r"^error: max_depth must be a whole number in 1\.\.20"),
        (["dataset=jsonl", "~dataset.n_tools"], ""),
        (["agent=nobody"], "Could not find 'agent/nobody'"),
        (["sed=1"], "Key 'sed' is not in struct"),
        (["dataset.n_queries=2"], "the split leaves no .* queries"),
        (["scorer=bm25", "dataset.found_at={1: 2.0}"], "found_at must rise"),
    ],
)
def test_bad_input_ends_with_a_message_and_nothing_half_written(tmp_path, words, message):
    done = command("experiments.run", *TINY, f"outputs={tmp_path}", "agent=best_fixed_depth", *words)
    assert done.returncode != 0
    assert re.search(message, done.stderr, re.MULTILINE), done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.json"))
    assert not list(tmp_path.rglob("*.parquet"))


def test_commands_on_a_folder_without_runs_say_so(tmp_path):
    for module in ("experiments.collect", "experiments.play"):
        done = command(module, tmp_path)
        assert done.returncode == 1
        assert "no finished run" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    """The operating system refuses to write past 200 bytes a file."""

    def full():
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    done = command("experiments.run", *TINY, f"outputs={tmp_path}", "agent=best_fixed_depth", preexec_fn=full)
    assert done.returncode == 2
    assert re.search(r"^error: cannot write run .*; nothing was kept", done.stderr, re.MULTILINE), done.stderr
    assert not list((tmp_path / "runs").iterdir())


def _interrupted(folder):
    with recording(folder) as scratch:
        (scratch / "run.json").write_text(json.dumps({"id": "new"}))
        raise KeyboardInterrupt


def test_an_interrupted_recording_leaves_the_old_run_and_no_scraps(tmp_path):
    folder = tmp_path / "runs" / "id"
    with recording(folder) as scratch:
        (scratch / "run.json").write_text(json.dumps({"id": "old"}))
    with pytest.raises(KeyboardInterrupt):
        _interrupted(folder)
    assert open_run(folder).meta == {"id": "old"}
    with recording(folder) as scratch:
        (scratch / "run.json").write_text(json.dumps({"id": "new"}))
    assert open_run(folder).meta == {"id": "new"}
    assert [path.name for path in folder.parent.iterdir()] == ["id"]
