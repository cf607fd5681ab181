"""A registry made of an OpenAPI 3 file: one tool an operation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolpick.datasets import Dataset, Tool
from toolpick.datasets.openapi_references import References
from toolpick.datasets.records import a_dict, json_document, read_queries, schema, text, typed
from toolpick.datasets.yaml_document import yaml_document
from toolpick.errors import InputError

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_IGNORED_HEADERS = {"accept", "content-type", "authorization"}  # by the specification


@dataclass(frozen=True)
class OpenApi:
    """The operations of an OpenAPI 3 file, JSON (`.json`) or YAML (any other suffix), and queries as JSON Lines.

    A tool's name is its operationId, or "METHOD path" where there is none; its description is summary and
    description. Its parameters are those of the operation and its path, then the request body: the properties of a
    JSON object, those of its `allOf` parts included, or else one parameter "body". A name that is taken already
    gets its place in front, as in "query.id" or "body.id". References are followed within the file; how far, says
    `toolpick.datasets.openapi_references`.

    Args:
        tools: path of the OpenAPI file, UTF-8.
        queries: path of the query file, as for `Jsonl`.
        name: the dataset's name in rows; the query file's stem where empty.

    Raises:
        InputError: a file that cannot be read or is not OpenAPI 3, a reference that leads out of the file or to
            nothing, a key that is missing or of the wrong type; the message names file, operation and key.
    """

    tools: str
    queries: str
    name: str = ""

    def __call__(self) -> Dataset:
        path = Path(self.tools)
        try:
            tools = tuple(_tools(path))
        except RecursionError as error:
            raise InputError(f"{path}: nested too deeply to be read") from error
        return Dataset(self.name or Path(self.queries).stem, tools, read_queries(Path(self.queries)))


def _tools(path: Path) -> list[Tool]:
    document = a_dict(json_document(path) if path.suffix.lower() == ".json" else yaml_document(path), str(path))
    if not str(document.get("openapi", "")).startswith("3."):
        found = f"swagger {document['swagger']}" if "swagger" in document else repr(document.get("openapi"))
        raise InputError(f"{path}: key 'openapi' must be a version 3 number, found {found}; convert the file first")
    references = References(document, str(path))
    tools = []
    for route, item in typed(document, "paths", dict, str(path), default={}).items():
        where = f"{path} paths.{route}"
        item = a_dict(references.follow(item, where), where)
        for method in _METHODS:
            if method in item:
                tools.append(_tool(method, route, item, references, f"{where}.{method}"))
    return tools


def _tool(method: str, route: str, item: dict[str, Any], references: References, where: str) -> Tool:
    references.begin()
    operation = a_dict(item[method], where)
    said = [text(operation, key, where, default="") for key in ("summary", "description")]
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in _parameters(item, operation, references, where):
        place = parameter["in"]
        key = _free(properties, parameter["name"], place)
        properties[key] = _card(parameter, f"{where}.parameters.{parameter['name']}")
        if parameter.get("required") or place == "path":
            required.append(key)
    if "requestBody" in operation:
        body = a_dict(references.inline(operation["requestBody"], f"{where}.requestBody"), f"{where}.requestBody")
        _add_body(properties, required, body, f"{where}.requestBody")
    return Tool(
        name=text(operation, "operationId", where, default="") or f"{method.upper()} {route}",
        description="\n".join(part for part in said if part),
        parameters={"type": "object", "properties": properties, "required": required},
        where=where,
    )


def _parameters(item: dict[str, Any], operation: dict[str, Any], references: References, where: str) -> list[Any]:
    """Those of the path, then those of the operation, which replace the former by place and name."""
    merged = {}
    for owner, place in ((item, where.rpartition(".")[0]), (operation, where)):
        for index, entry in enumerate(typed(owner, "parameters", list, place, default=[])):
            here = f"{place}.parameters[{index}]"
            parameter = a_dict(references.inline(entry, here), here)
            key = text(parameter, "in", here), text(parameter, "name", here)
            if key[0] != "header" or key[1].lower() not in _IGNORED_HEADERS:
                merged[key] = parameter
    return list(merged.values())


def _card(parameter: dict[str, Any], where: str) -> dict[str, Any]:
    """A parameter's schema with the parameter's own description."""
    holder = parameter
    if "schema" not in parameter and "content" in parameter:
        holder = _media(parameter, where)
    card = schema(holder, "schema", where, default={})
    described = text(parameter, "description", where, default="")
    return card | {"description": described} if described else card


def _add_body(properties: dict[str, Any], required: list[str], body: dict[str, Any], where: str) -> None:
    card = schema(_media(body, where), "schema", where, default={})
    names: dict[str, str] = {}
    for part in _object_parts(card):
        for name, value in schema({"schema": part}, "schema", where).get("properties", {}).items():
            if name not in names:
                names[name] = _free(properties, name, "body")
                properties[names[name]] = value
    if not names:
        names[""] = _free(properties, "body", "body")
        properties[names[""]] = card
    if body.get("required"):
        musts = [must for part in _object_parts(card) for must in typed(part, "required", list, where, default=[])]
        required += [key for name, key in names.items() if name in musts or not name]


def _object_parts(card: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema and its `allOf` parts, theirs included."""
    inner = card.get("allOf")
    found = [card]
    for part in inner if isinstance(inner, list) else []:
        found += _object_parts(part) if isinstance(part, dict) else []
    return found


def _media(owner: dict[str, Any], where: str) -> dict[str, Any]:
    """The entry of `content` for JSON, or else the first."""
    content = typed(owner, "content", dict, where, default={})
    for wanted in ("application/json", *(kind for kind in content if kind.endswith("+json")), *content):
        if wanted in content:
            return a_dict(content[wanted], f"{where}.content.{wanted}")
    return {}


def _free(properties: dict[str, Any], name: str, place: str) -> str:
    while name in properties:
        name = f"{place}.{name}"
    return name
