"""Every variant has a file and a yaml, and every yaml builds."""

import dataclasses
import importlib
import json
import pkgutil
from functools import partial

import pytest
import yaml
from hydra.errors import HydraException

from experiments import study
from experiments.build import make, make_agent
from experiments.compose import (
    AFTERWARDS,
    CONF,
    GROUPS,
    afterwards,
    combinations,
    composed,
    identity,
    overridden,
    resolved,
)
from toolpick import InputError
from toolpick_agents.sb3 import Sb3

ROOMS = {
    "dataset": "toolpick.datasets",
    "scorer": "toolpick.scorers",
    "split": "toolpick.splits",
    "observation": "toolpick.observations",
    "reward": "toolpick.rewards",
    "agent": "toolpick_agents",
    "chooser": "toolpick.choosers",
}
NOT_VARIANTS = {
    "toolpick.scorers.cache",
    "toolpick.scorers.embeddings",
    "toolpick.scorers.sentence_models",
    *(f"toolpick.datasets.{name}" for name in ("fetch", "openapi_references", "records", "yaml_document")),
    *(f"toolpick_agents.{name}" for name in ("evaluation", "vec_env", "dqn", "one_shot", "hazard")),
}
OWN_FILES = {"jsonl", "openai_tools", "mcp_tools", "openapi"}
YAMLS = [(group, path.stem) for group in GROUPS for path in sorted((CONF / group).glob("*.yaml"))]


def needed(group, name):
    """Settings without a default."""
    return [f"{group}={name}"] + (["dataset.tools=t", "dataset.queries=q"] if name in OWN_FILES else [])


@pytest.mark.parametrize("group", GROUPS + AFTERWARDS)
def test_every_file_of_a_room_has_a_yaml_that_names_it(group):
    room = importlib.import_module(ROOMS[group])
    files = {f"{room.__name__}.{info.name}" for info in pkgutil.iter_modules(room.__path__)} - NOT_VARIANTS
    targets = {yaml.safe_load(path.read_text())["_target_"] for path in (CONF / group).glob("*.yaml")}
    assert {target.rpartition(".")[0] for target in targets} == files


@pytest.mark.parametrize(("group", "name"), YAMLS)
def test_every_yaml_builds_a_frozen_callable_or_agent_with_all_its_settings(group, name):
    config = composed(needed(group, name))
    made = make(config, group)
    assert dataclasses.is_dataclass(made)
    assert type(made).__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
    assert callable(made) or hasattr(made, "train")
    assert config["names"][group] == name


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONF / "chooser").glob("*.yaml")))
def test_every_chooser_builds_with_all_its_settings_and_is_no_part_of_a_run(name):
    forced = {"recorded": ["path=p"], "llm": ["chat.base_url=http://a/v1", "chat.model=m"]}
    config = afterwards([f"chooser={name}", *(f"chooser.{setting}" for setting in forced.get(name, []))])
    made = make(config, "chooser")
    assert dataclasses.is_dataclass(made)
    settings = {field.name for field in dataclasses.fields(made)}
    assert type(made).__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
    assert callable(made)
    assert config["names"] == {"chooser": name}
    assert set(config["chooser"]) == settings | {"_target_"}
    assert not set(AFTERWARDS) & {*composed(), *composed()["names"]}


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONF / "experiment").glob("*.yaml")))
def test_every_named_experiment_composes_and_builds(name):
    config = composed([f"experiment={name}"])
    for group in GROUPS:
        make(config, group)
    assert identity(config) != identity(composed()) or name in study.names()


@pytest.mark.parametrize("name", study.names())
def test_the_grid_of_a_named_experiment_is_what_the_command_line_makes_of_it(name):
    params = yaml.safe_load((CONF / "experiment" / f"{name}.yaml").read_text(encoding="utf-8"))["hydra"]["sweeper"][
        "params"
    ]
    settings = combinations([f"{key}={value}" for key, value in params.items()])
    grid = [identity(config) for config in study.configs(name)]
    assert len(set(grid)) == len(grid) == len(settings)
    for one in (settings[0], settings[-1]):
        typed = composed([f"experiment={name}", *(f"{key}={value}" for key, value in one.items())])
        assert identity(typed) in grid


def test_the_records_say_what_they_say():
    a, b = composed(["experiment=record_a"]), composed(["experiment=record_b"])
    assert (a["gamma"], a["step_cost"], a["max_depth"]) == (0.95, 0.01, None)
    assert (b["gamma"], b["step_cost"], b["max_depth"]) == (0.95, 0.005, 100)
    for config, episodes, buffer, batch in ((a, 8000, 50_000, 128), (b, 15_000, 20_000, 64)):
        agent = make_agent(config)
        assert isinstance(agent, Sb3)
        (schedule,) = agent.callbacks
        assert schedule().episodes == episodes  # pyright: ignore[reportAttributeAccessIssue]
        assert isinstance(agent.algorithm, partial)
        settings = agent.algorithm.keywords
        assert (settings["buffer_size"], settings["batch_size"], settings["learning_rate"]) == (buffer, batch, 1e-3)
        assert settings["policy_kwargs"] == {"net_arch": [64, 64]}


def test_the_identity_covers_what_changes_results_and_nothing_else():
    base = composed()
    assert identity(base) == identity(composed(["outputs=/elsewhere", "progress=false", "tensorboard=true"]))
    assert identity(composed(["gamma=1"])) == identity(composed(["gamma=1.0"]))
    for change in (
        "seed=1",
        "gamma=0.9",
        "agent.total_timesteps=7",
        "reward=f1",
        "curve_every=500",
        "max_depth=50",
    ):
        assert identity(composed([change])) != identity(base)


def test_a_recorded_configuration_can_be_changed_by_key_and_by_group():
    base = json.loads(json.dumps(composed()))
    assert overridden(base, []) == base
    assert overridden(base, ["scorer=bm25", "max_depth=20"]) == composed(["scorer=bm25", "max_depth=20"])
    assert overridden(base, ["agent.total_timesteps=5"])["agent"]["total_timesteps"] == 5
    for bad, message in (("scorer=bm5", "no variant 'bm5' of scorer"), ("sed=1", "'sed'"), ("seed", "key=value")):
        with pytest.raises(InputError, match=message):
            overridden(base, [bad])


@pytest.mark.parametrize("override", ["agent=nobody", "sed=1", "agent.depht=3", "experiment=none_such"])
def test_unknown_variants_and_keys_are_refused_when_composing(override):
    with pytest.raises(
        HydraException, match=override.partition("=")[0].partition(".")[2] or override.partition("=")[2]
    ):
        composed([override])


def test_settings_that_a_class_does_not_know_are_refused_by_group():
    with pytest.raises(InputError, match=r"agent=fixed_depth.*unexpected keyword argument 'depht'"):
        make(composed(["agent=fixed_depth", "+agent.depht=3"]), "agent")
    with pytest.raises(InputError, match=r"reward=hit_minus_cost.*cost must be 0 or more"):
        make(composed(["reward=hit_minus_cost", "reward.cost=-1"]), "reward")


def test_a_setting_that_must_be_given_is_asked_for():
    with pytest.raises(InputError, match=r"dataset\.tools must be given"):
        composed(["dataset=jsonl"])


def test_resolved_needs_no_hydra(tmp_path):
    from omegaconf import OmegaConf

    cfg = OmegaConf.create({"a": 1, "b": "${a}", "hydra": {"x": 1}, "experiment": None})
    assert resolved(cfg, dict.fromkeys(GROUPS, "n")) == {"a": 1, "b": 1, "names": dict.fromkeys(GROUPS, "n")}
