import json

import pytest

from dragoman.bridge import AgentSpec, BridgeSettings, read_agents_file
from dragoman.bridge.problem import AgentsFileError


def write(tmp_path, content):
    path = tmp_path / "agents.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_agents_keep_their_order(tmp_path):
    agents = {
        "zed": {"command": "one", "args": ["a", "b"], "env": {"K": "v"}, "cwd": "sub", "title": "The first"},
        "alpha": {"command": "two", "description": "not for us"},
    }
    assert read_agents_file(write(tmp_path, {"agents": agents})) == (
        AgentSpec("zed", ("one", "a", "b"), str(tmp_path / "sub"), {"K": "v"}, "The first"),
        AgentSpec("alpha", ("two",)),
    )


def test_agents_of_an_editor_get_names_that_fit_in_urls(tmp_path):
    servers = {"Claude Code!": {"command": "x", "type": "custom"}, "elsewhere": {"url": "https://example.com"}}
    assert read_agents_file(write(tmp_path, {"agent_servers": servers})) == (
        AgentSpec("claude-code", ("x",), title="Claude Code!"),
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "expected"),
        ("[]", "expected"),
        ({}, "contains no agent"),
        ({"agents": {"a": {}}}, "command"),
        ({"agents": {"a": {"command": ""}}}, "its command is empty"),
        ({"agents": {"…": {"command": "x"}}}, "no letters or digits"),
        ({"agents": {"A b": {"command": "x"}, "a-b": {"command": "y"}}}, "use a different name for each"),
    ],
)
def test_problem_with_the_file_is_reported(tmp_path, content, problem):
    path = write(tmp_path, content)
    with pytest.raises(AgentsFileError, match=problem) as refused:
        read_agents_file(path)
    assert str(path) in str(refused.value)


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(AgentsFileError, match="cannot be read"):
        read_agents_file(tmp_path / "none.json")


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "x" * 65, "ä"])
def test_name_that_cannot_be_in_a_path_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="cannot be the name"):
        BridgeSettings(agents=(AgentSpec(name, ("x",)),), home=tmp_path, cwd="/")


def test_bridge_needs_an_agent(tmp_path):
    with pytest.raises(ValueError, match="needs an agent"):
        BridgeSettings(agents=(), home=tmp_path, cwd="/")
