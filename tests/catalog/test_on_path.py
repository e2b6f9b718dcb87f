"""The agents on PATH, which are found without starting them."""

from pathlib import Path

from dragoman.catalog.on_path import find_installed_agents


def program(folder: Path, name: str, *, mode: int = 0o755) -> str:
    file = folder / name
    file.write_text("#!/bin/sh\ntouch started\n")
    file.chmod(mode)
    return str(file)


def test_an_empty_path_has_no_agents(tmp_path: Path) -> None:
    assert find_installed_agents(str(tmp_path)) == []


def test_agent_is_found_with_its_path_and_registry_arguments(tmp_path: Path) -> None:
    place = program(tmp_path, "opencode")
    [agent] = find_installed_agents(str(tmp_path))
    assert (agent.name, agent.title, agent.command, agent.problem) == ("opencode", "OpenCode", (place, "acp"), "")
    assert not (tmp_path / "started").exists()


def test_file_without_execute_permission_is_not_an_agent(tmp_path: Path) -> None:
    program(tmp_path, "opencode", mode=0o644)
    assert find_installed_agents(str(tmp_path)) == []


def test_tool_without_adapter_is_listed_last_with_install_help(tmp_path: Path) -> None:
    program(tmp_path, "claude")
    place = program(tmp_path, "goose")
    first, second = find_installed_agents(str(tmp_path))
    assert first.command == (place, "acp")
    assert (second.name, second.command) == ("claude-acp", ())
    assert "claude-agent-acp is not on PATH; install it: npm install -g" in second.problem


def test_tool_with_its_adapter_is_listed_as_the_adapter(tmp_path: Path) -> None:
    program(tmp_path, "codex")
    place = program(tmp_path, "codex-acp")
    [agent] = find_installed_agents(str(tmp_path))
    assert agent.command == (place,)
