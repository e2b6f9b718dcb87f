"""The published schema is generated from the types and agrees with the reader."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from dragoman.assistant.profile.profile import parse_profile
from tests.table import each_row

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "src/dragoman/assistant/profile/agent-file.schema.json").read_text())
TEMPLATE = ROOT / "src/dragoman/assistant/profile/template.yaml"


def uncommented():
    """Remove the # as a user would. In prose, a blank and a letter follow it."""
    return re.sub(r"^#(?! \S|$)", "", TEMPLATE.read_text(), flags=re.MULTILINE)


def keys(schema=SCHEMA, name=""):
    """Yield the dotted name of every leaf key. NAME stands for names that users choose."""
    for part in [schema, *schema.get("anyOf", [])]:
        if "$ref" in part:
            yield from keys(SCHEMA["$defs"][part["$ref"].rpartition("/")[2]], name)
        for key, value in part.get("properties", {}).items():
            inner = list(keys(value, f"{name}{key}."))
            yield from inner or [f"{name}{key}"]
        for each in (part.get("additionalProperties"), part.get("items")):
            yield from keys(each, f"{name}NAME.") if each else ()


def is_in(data, parts):
    if not parts:
        return True
    if parts[0] == "NAME":
        inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else []
        return any(is_in(each, parts[1:]) for each in inner)
    return isinstance(data, dict) and parts[0] in data and is_in(data[parts[0]], parts[1:])


def test_schema_in_the_docs_is_up_to_date():
    command = [sys.executable, ROOT / "scripts/generate_profile_schema.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_schema_is_a_valid_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@each_row(
    "text",
    [
        "{}",
        "model: guide",
        "instructions: {file: a}",
        "limits: {command_timeout_s: null}",
        "permissions: {mode: code}",
        "mcpServers: {a: {command: x, args: [y], env: {A: b}, tools: {t: {include: agent}}}}",
        "mcpServers: {a: {url: 'https://h', type: sse, headers: {A: b}, trust: true}}",
        "rules: {a: b, c: {file: d, priority: 0}, dir: e}",
        "references: [{name: a, text: b}, {dir: c}]",
    ],
)
def test_schema_accepts_a_valid_file(text):
    jsonschema.validate(yaml.safe_load(text), SCHEMA)


@each_row(
    "text",
    [
        "limit: {}",
        "model: {}",
        "model: 5",
        "limits: {turn_requests: 0}",
        "permissions: {mode: cod}",
        "[]",
        "mcpServers: {a: {comand: x}}",
        "mcpServers: []",
        "rules: [a]",
        "rules: {a: {include: never}}",
        "search: {top_k: 0}",
    ],
)
def test_schema_rejects_an_invalid_file(text):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), SCHEMA)


def test_every_key_is_documented():
    page = (ROOT / "docs/agent-file.md").read_text()
    shown = {re.sub("^references", "rules", key) for key in keys()}
    assert {"mcpServers.NAME.tools.NAME.include", "rules.NAME.priority", "search.top_k"} <= shown
    assert [key for key in shown if f"| `{key}` |" not in page] == []


def test_every_key_has_a_description():
    for definition in [SCHEMA, *SCHEMA["$defs"].values()]:
        assert all(value["description"] for value in definition["properties"].values())


def test_template_changes_nothing_as_it_is():
    assert yaml.safe_load(TEMPLATE.read_text()) is None


def test_uncommented_template_is_valid_and_has_every_key():
    data = yaml.safe_load(uncommented())
    jsonschema.validate(data, SCHEMA)
    parse_profile(uncommented(), TEMPLATE)
    missing = {key for key in keys() if not is_in(data, key.split("."))}
    # A text replaces the file, because there is none next to the template.
    files = {"instructions.file"} | {f"{key}.NAME.{way}" for key in ("rules", "references") for way in ("file", "dir")}
    assert missing - files == {"rules.NAME.name"}


def test_template_shows_the_defaults():
    profile = parse_profile(uncommented(), TEMPLATE)
    default = parse_profile("", TEMPLATE)
    shown = (profile.permissions, profile.limits, profile.search)
    assert shown == (default.permissions, default.limits, default.search)
