"""From yaml to a plain configuration, the same for the command line and for programs."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from toolpick.errors import InputError

CONF = Path(__file__).resolve().parents[1] / "conf"
GROUPS = ("dataset", "scorer", "split", "observation", "reward", "agent")
AFTERWARDS = ("chooser",)  # applied to finished runs, and so no part of their configuration
NOT_IDENTITY = ("outputs", "progress", "tensorboard", "hydra")

Config = dict[str, Any]


def composed(overrides: Sequence[str] = (), *, config_name: str = "config") -> Config:
    """The configuration that these overrides make, as the command line would make it."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose(config_name, overrides=list(overrides), return_hydra_config=True)
    return resolved(cfg, cfg.hydra.runtime.choices)


def resolved(cfg: DictConfig, choices: Mapping[str, Any]) -> Config:
    """A plain dictionary with interpolations resolved, and under `names` the variant chosen in each group."""
    try:
        content = {key: OmegaConf.to_container(cfg, resolve=True)[key] for key in _own_keys(cfg)}  # pyright: ignore
    except OmegaConfBaseException as error:
        raise InputError(f"configuration: {error}") from error
    missing = [key for key in _leaves(content) if key[1] == "???"]
    if missing:
        raise InputError(f"configuration: {missing[0][0]} must be given, e.g. {missing[0][0]}=VALUE")
    return content | {"names": {group: choices[group] for group in GROUPS}}


def combinations(overrides: Sequence[str]) -> list[dict[str, str]]:
    """All assignments of single values to keys that lists with comma-separated values stand for."""
    choices = []
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        if override.is_sweep_override():
            values = list(override.sweep_string_iterator())
        else:
            values = [override.get_value_element_as_str()]
        choices.append([(override.get_key_element(), value) for value in values])
    return [dict(chosen) for chosen in itertools.product(*choices)]


def overridden(config: Config, overrides: Sequence[str]) -> Config:
    """A recorded configuration with some keys or whole groups replaced, e.g. `scorer=bm25` or `max_depth=20`."""
    cfg = OmegaConf.create(config)
    OmegaConf.set_struct(cfg, True)
    names = dict(config["names"])
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise InputError(f"override {override!r} is not of the form key=value")
        try:
            if key in GROUPS:
                cfg[key] = _variant(key, value)
                names[key] = value
            else:
                OmegaConf.update(cfg, key, OmegaConf.create(f"value: {value}")["value"], merge=False)  # pyright: ignore
        except (OmegaConfBaseException, yaml.YAMLError) as error:
            raise InputError(f"override {override!r}: {error}") from error
    return resolved(cfg, names)


def afterwards(overrides: Sequence[str]) -> Config:
    """The configuration of one `AFTERWARDS` group by itself, e.g. from `chooser=llm chooser.workers=2`.

    Raises:
        InputError: no variant is chosen, or an override is unknown or of another group.
    """
    chosen = [override.partition("=") for override in overrides if override.partition("=")[0] in AFTERWARDS]
    if len(chosen) != 1:
        raise InputError(f"choose one variant, e.g. {AFTERWARDS[0]}=NAME; got {list(overrides)}")
    group, _, name = chosen[0]
    config = {group: OmegaConf.to_container(_variant(group, name)), "names": dict.fromkeys(GROUPS) | {group: name}}
    settings = [override for override in overrides if override.partition("=")[0] != group]
    return overridden(config, settings) | {"names": {group: name}}


def _variant(group: str, name: str) -> DictConfig:
    path = CONF / group / f"{name}.yaml"
    if not path.is_file():
        known = sorted(file.stem for file in path.parent.glob("*.yaml"))
        raise InputError(f"no variant {name!r} of {group}; there are {known}")
    cfg = OmegaConf.load(path)
    assert isinstance(cfg, DictConfig)
    return cfg


def identity(config: Config) -> str:
    """A run's id: a hash of everything in its configuration that can change a result."""
    counted = {key: value for key, value in config.items() if key not in NOT_IDENTITY}
    return hashlib.sha256(json.dumps(_one_form(counted), sort_keys=True).encode()).hexdigest()[:16]


def named(config: Config) -> dict[str, str]:
    """The variant of each group; where `_target_` was overridden, the class that stands there now."""
    names = {}
    for group, name in config["names"].items():
        target = config[group]["_target_"]
        path = CONF / group / f"{name}.yaml"
        same = path.is_file() and yaml.safe_load(path.read_text(encoding="utf-8"))["_target_"] == target
        names[group] = name if same else target.rpartition(".")[2]
    return names


def experiment_of(config: Config) -> str:
    """A hash of everything in the configuration but the seed: runs that share it are repetitions."""
    return identity({key: value for key, value in config.items() if key != "seed"})


def differing(configs: Sequence[Config]) -> dict[str, list[Any]]:
    """The settings, by dotted key, that are not the same in all configurations, with each one's value."""
    apart = (*NOT_IDENTITY, "seed", "names")
    flat = [dict(_leaves({key: value for key, value in config.items() if key not in apart})) for config in configs]
    columns = {key: [one.get(key) for one in flat] for key in dict.fromkeys(key for one in flat for key in one)}
    return {key: values for key, values in columns.items() if len({repr(_one_form(value)) for value in values}) > 1}


def _one_form(node: Any) -> Any:
    """The same tree with 1.0 and 1 written alike."""
    if isinstance(node, dict):
        return {str(key): _one_form(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_one_form(value) for value in node]
    return int(node) if isinstance(node, float) and node.is_integer() else node


def _own_keys(cfg: DictConfig) -> list[str]:
    return [str(key) for key in cfg if key not in ("hydra", "experiment", "names")]


def _leaves(node: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in _leaves(value, f"{path}.{key}".strip("."))]
    return [(path, node)]
