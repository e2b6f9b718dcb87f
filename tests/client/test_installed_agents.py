"""The agents on PATH: found by their programs, and nothing is started."""

from pathlib import Path

from dragoman.client.installed_agents import find_installed_agents


def program(folder: Path, name: str, *, mode: int = 0o755) -> str:
    file = folder / name
    file.write_text("#!/bin/sh\ntouch started\n")
    file.chmod(mode)
    return str(file)


def test_an_empty_path_has_no_agents(tmp_path: Path) -> None:
    assert find_installed_agents(str(tmp_path)) == []


def test_an_agent_is_found_with_the_path_of_its_program_and_the_registrys_arguments(tmp_path: Path) -> None:
    place = program(tmp_path, "opencode")
    [agent] = find_installed_agents(str(tmp_path))
    assert (agent.name, agent.title, agent.command, agent.problem) == ("opencode", "OpenCode", (place, "acp"), "")
    assert not (tmp_path / "started").exists()


def test_a_file_that_may_not_be_executed_is_no_agent(tmp_path: Path) -> None:
    program(tmp_path, "opencode", mode=0o644)
    assert find_installed_agents(str(tmp_path)) == []


def test_a_tool_without_its_adapter_is_named_last_with_the_way_to_get_it(tmp_path: Path) -> None:
    program(tmp_path, "claude")
    place = program(tmp_path, "goose")
    first, second = find_installed_agents(str(tmp_path))
    assert first.command == (place, "acp")
    assert (second.name, second.command) == ("claude-acp", ())
    assert "claude-agent-acp is not on PATH; install it: npm install -g" in second.problem


def test_a_tool_with_its_adapter_is_the_adapter(tmp_path: Path) -> None:
    program(tmp_path, "codex")
    place = program(tmp_path, "codex-acp")
    [agent] = find_installed_agents(str(tmp_path))
    assert agent.command == (place,)
