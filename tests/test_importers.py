"""Users' own registries: OpenAI tools, MCP tools/list and OpenAPI files."""

import json
import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from toolpick import InputError
from toolpick.datasets import Query, Tool, openapi_references, yaml_document
from toolpick.datasets.mcp_tools import McpTools
from toolpick.datasets.openai_tools import OpenAiTools
from toolpick.datasets.openapi import OpenApi
from toolpick.datasets.yaml_document import yaml_document as read_yaml
from toolpick.rankings import rank
from toolpick.scorers.bm25 import Bm25


def made(kind, folder, document, relevant="a", suffix="json"):
    tools, queries = folder / f"tools.{suffix}", folder / "queries.jsonl"
    if not isinstance(document, (str, bytes)):
        document = json.dumps(document)
    tools.write_bytes(document if isinstance(document, bytes) else document.encode())
    queries.write_text(json.dumps({"query": "please", "relevant": [relevant]}))
    return kind(str(tools), str(queries))


SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}

# OpenAI

NESTED = {"type": "function", "function": {"name": "a", "description": "does a", "parameters": SCHEMA, "strict": True}}
FLAT = {"type": "function", "name": "b", "description": None, "parameters": None, "strict": None}


@pytest.mark.parametrize("wrap", [lambda tools: tools, lambda tools: {"model": "m", "tools": tools}])
def test_openai_tools_of_both_forms_are_read(tmp_path, wrap):
    data = made(OpenAiTools, tmp_path, wrap([NESTED, FLAT]))()
    assert data.tools == (Tool("a", "does a", SCHEMA), Tool("b"))
    assert data.queries == (Query("1", "please", ("a",)),)
    assert data.name == "queries"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", r"tools\.json:1: not JSON: .* column 2"),
        (b"\xff", r"tools\.json:1: not UTF-8 at byte 0"),
        ("[" * 100_000, r"tools\.json: not JSON that can be read"),
        ('[{"type": "function", "type": "x"}]', r"tools\.json: key 'type' occurs twice"),
        ("3", r"tools\.json: neither a list nor: expected a JSON object, got int"),
        ({"functions": []}, r"tools\.json: key 'tools' is missing"),
        ([], "registry is empty"),
        ([NESTED, 3], r"tools\.json \[1\]: expected a JSON object, got int"),
        ([NESTED, {"name": "b"}], r"tools\.json \[1\]: key 'type' is missing"),
        ([{"type": "web_search"}], r"tools\.json \[0\]: key 'type' must be 'function', got 'web_search'; leave"),
        ([{"type": "function", "function": {}}], r"tools\.json \[0\]\.function: key 'name' is missing"),
        ([FLAT | {"name": ""}], r"tools\.json \[0\]: key 'name' is empty"),
        ([FLAT | {"parameters": []}], r"tools\.json \[0\]: key 'parameters' must be a dict, got list"),
        ([FLAT | {"parameters": {"properties": []}}], r"tools\.json \[0\]: key 'parameters': its 'properties' must"),
        ([NESTED, NESTED], r"tools\.json \[1\]\.function: tool name 'a' occurs twice, first at .* \[0\]\.function"),
        ([FLAT], r"queries\.jsonl:1: relevant tool 'a' is not in the registry"),
    ],
)  # fmt: skip
def test_bad_openai_tools_are_refused_by_file_entry_and_key(tmp_path, document, message):
    with pytest.raises(InputError, match=message):
        made(OpenAiTools, tmp_path, document)()


# MCP

MCP = {"name": "a", "title": "A", "description": "does a", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}


@pytest.mark.parametrize("wrap", [lambda result: result, lambda result: {"jsonrpc": "2.0", "id": 1, "result": result}])
def test_mcp_tools_are_read_from_the_response_and_from_its_result(tmp_path, wrap):
    bare = {"name": "b", "inputSchema": {"type": "object"}}
    data = made(McpTools, tmp_path, wrap({"tools": [MCP, bare], "nextCursor": None}))()
    assert data.tools == (Tool("a", "does a", SCHEMA), Tool("b", "", {"type": "object"}))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([MCP], r"tools\.json: expected a JSON object, got list"),
        ({"error": {"code": -32601, "message": "no"}}, r"tools\.json: the server answered with an error.*-32601"),
        ({"result": 3}, r"tools\.json: key 'result' must be a dict, got int"),
        ({"result": {}}, r"tools\.json: key 'tools' is missing"),
        ({"tools": [MCP], "nextCursor": "p2"}, r"tools\.json: key 'nextCursor' says that the list goes on"),
        ({"tools": [MCP, "b"]}, r"tools\.json tools\[1\]: expected a JSON object, got str"),
        ({"tools": [{"name": "a"}]}, r"tools\.json tools\[0\]: key 'inputSchema' is missing"),
        ({"tools": [MCP | {"inputSchema": {"properties": 1}}]}, r"tools\[0\]: key 'inputSchema': its 'properties'"),
        ({"tools": [MCP, MCP]}, r"tools\[1\]: tool name 'a' occurs twice"),
    ],
)  # fmt: skip
def test_bad_mcp_lists_are_refused_by_file_entry_and_key(tmp_path, document, message):
    with pytest.raises(InputError, match=message):
        made(McpTools, tmp_path, document)()


# OpenAPI

PETS = """
openapi: 3.0
info: {title: Pets, version: "1"}
paths:
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
      - $ref: '#/components/parameters/Trace'
    get:
      summary: One pet
      description: Finds a pet by its number.
      operationId: get_pet
      parameters:
        - {name: id, in: query, schema: {type: string}, description: not the path's}
        - {name: Trace, in: header, required: true, schema: {type: boolean}}
        - {name: Authorization, in: header, schema: {type: string}}
    put:
      requestBody:
        required: true
        content:
          text/plain: {schema: {type: string}}
          application/json: {schema: {$ref: '#/components/schemas/Pet'}}
  /pets/batch:
    post:
      operationId: add_pets
      requestBody: {content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}}}
components:
  parameters:
    Trace: {name: Trace, in: header, schema: {type: string}}
  schemas:
    Named:
      properties: {name: {type: string}, id: {type: integer}}
      required: [name]
    Pet:
      allOf:
        - $ref: '#/components/schemas/Named'
        - properties:
            name: {type: string, maxLength: 9}
            mother: {$ref: '#/components/schemas/Pet', description: also a pet}
            no: {type: boolean, default: {$ref: data}}
          required: [no]
"""


def pets():
    return yaml.safe_load(PETS.replace("no:", "'no':").replace("[no]", "['no']"))


def openapi(folder, document, relevant="get_pet", suffix="json"):
    return made(OpenApi, folder, document, relevant, suffix)


def test_an_operation_becomes_a_tool(tmp_path):
    get, put, post = openapi(tmp_path, PETS, suffix="yaml")().tools
    assert (get.name, get.description) == ("get_pet", "One pet\nFinds a pet by its number.")
    assert get.parameters == {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "Trace": {"type": "boolean"},  # the operation's replaces the path's
            "query.id": {"type": "string", "description": "not the path's"},
        },
        "required": ["id", "Trace"],
    }
    assert put.name == "PUT /pets/{id}"
    assert list(put.parameters["properties"]) == ["id", "Trace", "name", "body.id", "mother", "no"]
    assert put.parameters["required"] == ["id", "name", "no"]
    properties = put.parameters["properties"]
    assert properties["name"] == {"type": "string"}  # the first of the allOf parts
    assert properties["mother"] == {"description": "also a pet"}  # cut: a pet inside a pet
    assert properties["no"] == {"type": "boolean", "default": {"$ref": "data"}}  # a default is data
    assert list(post.parameters["properties"]) == ["body"]
    assert post.parameters["required"] == []
    assert post.parameters["properties"]["body"]["items"]["allOf"][1]["properties"]["mother"] == {
        "description": "also a pet"
    }


def test_json_and_yaml_give_the_same_registry(tmp_path):
    (tmp_path / "y").mkdir()
    from_json, from_yaml = openapi(tmp_path, pets())(), openapi(tmp_path / "y", PETS, suffix="yml")()
    assert from_json.content_hash == from_yaml.content_hash


def test_an_imported_registry_can_be_ranked(tmp_path):
    data = openapi(tmp_path, pets())()
    assert rank(data, Bm25()).n_tools == 3


def changed(path, value):
    document = pets()
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return document


GET = ["paths", "/pets/{id}", "get"]
PET = ["components", "schemas", "Pet"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], r"tools\.json: expected a JSON object, got list"),
        (changed(["openapi"], "2.0"), r"tools\.json: key 'openapi' must be a version 3 number, found '2\.0'"),
        ({"swagger": "2.0", "paths": {}}, r"found swagger 2\.0; convert"),
        (changed(["paths"], []), r"tools\.json: key 'paths' must be a dict"),
        (changed(["paths"], {}), "registry is empty"),
        (changed(["paths", "/x"], 3), r"paths\./x: expected a JSON object, got int"),
        (changed(GET, 3), r"paths\./pets/\{id\}\.get: expected a JSON object"),
        (changed([*GET, "summary"], 3), r"paths\./pets/\{id\}\.get: key 'summary' must be a str"),
        (changed([*GET, "operationId"], "add_pets"), r"paths\./pets/batch\.post: tool name 'add_pets' occurs twice"),
        (changed([*GET, "parameters"], {}), r"\.get: key 'parameters' must be a list"),
        (changed([*GET, "parameters", 0], {"in": "query"}), r"\.get\.parameters\[0\]: key 'name' is missing"),
        (changed([*GET, "parameters", 0], {"name": "x"}), r"\.get\.parameters\[0\]: key 'in' is missing"),
        (changed([*GET, "parameters", 0, "schema"], 3), r"\.get\.parameters\.id: key 'schema' must be a dict"),
        (changed([*GET, "parameters", 0], {"$ref": "#/none/x"}), r"parameters\[0\]: \$ref '#/none/x' names nothing in"),
        (changed(["paths", "/x"], {"$ref": "#/paths/~1x"}), r"paths\./x: \$ref '#/paths/~1x' leads back to itself"),
        (changed([*PET, "allOf", 0], {"$ref": "other.json#/A"}), r"put\.requestBody: \$ref 'other\.json#/A' names an"),
        (changed([*PET, "allOf", 1, "required"], "no"), r"put\.requestBody: key 'required' must be a list"),
        (changed([*PET, "allOf", 1, "properties"], []), r"put\.requestBody: key 'schema': its 'properties' must be"),
        ("{" * 50_000, r"tools\.json"),
    ],
)  # fmt: skip
def test_bad_openapi_files_are_refused_by_file_operation_and_key(tmp_path, document, message):
    with pytest.raises(InputError, match=message):
        openapi(tmp_path, document)()


def bomb(levels=30, width=10):
    schemas: dict[str, dict] = {"S0": {"type": "string"}}
    for level in range(1, levels):
        inner = {f"p{i}": {"$ref": f"#/components/schemas/S{level - 1}"} for i in range(width)}
        schemas[f"S{level}"] = {"type": "object", "properties": inner}
    return changed(["components", "schemas"], {"Pet": {"$ref": f"#/components/schemas/S{levels - 1}"}, **schemas})


def test_references_that_multiply_are_cut(tmp_path):
    began = time.perf_counter()
    put = openapi(tmp_path, bomb())().tools[1]
    assert time.perf_counter() - began < 5
    assert len(json.dumps(put.parameters)) < 40 * openapi_references.OPERATION_LIMIT
    assert "p9" in put.parameters["properties"]


def test_a_file_of_many_such_operations_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(openapi_references, "DOCUMENT_LIMIT", 30_000)
    document = bomb()
    document["paths"] |= {f"/x{i}": {"put": document["paths"]["/pets/{id}"]["put"]} for i in range(5)}
    with pytest.raises(InputError, match=r"with references followed the file has more than 30000 values"):
        openapi(tmp_path, document)()


# YAML


def parsed(folder, text):
    path = folder / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path)


@pytest.mark.parametrize("compiled", [True, False])
def test_yaml_is_read_as_the_json_it_stands_for(tmp_path, monkeypatch, compiled):
    if not compiled:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert parsed(
        tmp_path, "a: [1, -2.5, 1e3, ~, null, true, False, no, 2024-01-01, 12:30, 0o7, '5', !!str 6, .inf]"
    ) == {"a": [1, -2.5, 1000.0, None, None, True, False, "no", "2024-01-01", "12:30", "0o7", "5", "6", ".inf"]}
    assert parsed(tmp_path, "1: one\ntrue: two\nno: three\n'': |\n  block\n") == {
        "1": "one", "true": "two", "no": "three", "": "block\n",
    }  # fmt: skip
    assert parsed(tmp_path, "a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\nc: {<<: [{k: 5}, *x]}\nd: *x") == {
        "a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}, "c": {"k": 5, "l": 2}, "d": {"k": 1, "l": 2},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", r"x\.yaml:\d: not YAML"),
        ("a: 1\n\tb: 2", r"x\.yaml:2: not YAML"),
        (b"a: \xff", r"x\.yaml:1: not UTF-8"),
        ("", r"x\.yaml: holds no document"),
        ("a: 1\n---\nb: 2", r"x\.yaml:2: a second document begins"),
        ("a: 1\nb: 2\na: 3", r"x\.yaml:3: key 'a' occurs twice"),
        ("a: !!python/object/apply:os.system [ls]", r"x\.yaml:1: tag '.*os\.system' is not read"),
        ("a: !!timestamp 2024-01-01", r"x\.yaml:1: tag .*timestamp"),
        ("a: &x [*x]", r"x\.yaml:1: alias \*x names nothing that ended before it"),
        ("[1]: 2", r"x\.yaml:1: a key must be text"),
        ("a: {<<: 3}", r"x\.yaml:1: '<<' takes a mapping or a list of mappings, got int"),
        ("[" * 100_000, r"x\.yaml:1: nested deeper than 200 levels|not YAML"),
        ("- " * 100_000, r"x\.yaml:1: nested deeper than 200 levels|not YAML"),
    ],
)
def test_bad_yaml_is_refused_by_file_and_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        parsed(tmp_path, text)


@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}]}}"])
def test_a_billion_laughs_are_refused_at_once(tmp_path, form):
    lines = ["a0: &a0 {k: lol}"]
    lines += [f"a{i}: &a{i} " + form.format(", ".join([f"*a{i - 1}"] * 10)) for i in range(1, 12)]
    began = time.perf_counter()
    with pytest.raises(InputError, match=r"x\.yaml:\d+: with aliases followed there are more than 2000000 values"):
        parsed(tmp_path, "\n".join(lines))
    assert time.perf_counter() - began < 5


def test_a_file_beyond_the_size_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(yaml_document, "SIZE_LIMIT", 10)
    with pytest.raises(InputError, match=r"x\.yaml: 12 characters, more than the 10"):
        parsed(tmp_path, "a: 345678901")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abz:#-&*!'\"\n \té~", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abn o:", max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(JSON_VALUES)
def test_what_yaml_writes_is_read_back(tmp_path_factory, value):
    text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=None)
    assert parsed(tmp_path_factory.getbasetemp(), text) == value


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([OpenAiTools, McpTools, OpenApi]), st.binary(max_size=120), st.sampled_from(["json", "yaml"]))
def test_any_bytes_give_a_registry_or_our_own_error(tmp_path_factory, kind, content, suffix):
    message = ""
    try:
        made(kind, tmp_path_factory.getbasetemp(), content, suffix=suffix)()
    except InputError as error:
        message = str(error)
    assert "tools." in message or "registry is empty" in message


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([OpenAiTools, McpTools, OpenApi]), JSON_VALUES, st.integers(0, 10_000))
def test_any_value_in_any_place_gives_a_registry_or_our_own_error(tmp_path_factory, kind, value, place):
    document = {OpenAiTools: [NESTED, FLAT], McpTools: {"tools": [MCP]}, OpenApi: pets()}[kind]
    document = json.loads(json.dumps(document))
    places = list(slots(document))
    holder, key = places[place % len(places)]
    holder[key] = value
    source = made(kind, tmp_path_factory.getbasetemp(), document, relevant="get_pet" if kind is OpenApi else "a")
    try:
        data = source()
    except InputError:
        return
    assert rank(data, Bm25()).n_tools == len(data.tools)


def slots(node):
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], (dict, list)):
            yield from slots(node[key])
