"""The published schema is made from the types, and says what the reader says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from dragoman.agent.profile.file import parse_profile

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs/agent-file.schema.json").read_text())
TEMPLATE = ROOT / "src/dragoman/agent/profile/template.yaml"


def uncommented():
    """Take the # away, as a person would: prose has a blank and a letter behind it."""
    return re.sub(r"^#(?! \S|$)", "", TEMPLATE.read_text(), flags=re.MULTILINE)


def keys(schema=SCHEMA, name=""):
    """Yield the dotted name of every key that has no keys of its own."""
    for part in [schema, *schema.get("anyOf", [])]:
        if "$ref" in part:
            yield from keys(SCHEMA["$defs"][part["$ref"].rpartition("/")[2]], name)
        for key, value in part.get("properties", {}).items():
            inner = list(keys(value, f"{name}{key}."))
            yield from inner or [f"{name}{key}"]


def test_the_schema_in_the_docs_is_up_to_date():
    command = [sys.executable, ROOT / "scripts/generate_profile_schema.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "text",
    ["{}", "model: guide", "instructions: {file: a}", "limits: {command_timeout_s: null}", "permissions: {mode: code}"],
)
def test_the_schema_takes_a_good_file(text):
    jsonschema.validate(yaml.safe_load(text), SCHEMA)


@pytest.mark.parametrize(
    "text",
    ["limit: {}", "model: {}", "model: 5", "limits: {turn_requests: 0}", "permissions: {mode: cod}", "[]"],
)
def test_the_schema_refuses_a_bad_file(text):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), SCHEMA)


def test_every_key_is_in_the_documentation():
    page = (ROOT / "docs/agent-file.md").read_text()
    assert [key for key in keys() if f"| `{key}` |" not in page] == []


def test_every_key_has_a_description():
    for definition in [SCHEMA, *SCHEMA["$defs"].values()]:
        assert all(value["description"] for value in definition["properties"].values())


def test_the_template_says_nothing_as_it_is():
    assert yaml.safe_load(TEMPLATE.read_text()) is None


def test_the_template_without_its_comment_signs_is_a_good_file_with_every_key():
    data = yaml.safe_load(uncommented())
    jsonschema.validate(data, SCHEMA)
    parse_profile(uncommented(), TEMPLATE)
    for key in set(keys()) - {"instructions.file"}:
        at = data
        for part in key.split("."):
            assert part in at, key
            at = at[part]


def test_the_template_shows_the_defaults():
    profile = parse_profile(uncommented(), TEMPLATE)
    default = parse_profile("", TEMPLATE)
    assert (profile.permissions, profile.limits) == (default.permissions, default.limits)
