"""Our own agent is judged like any other. It has no finding, and exercises the same rules as before."""

import sys
from pathlib import Path

import pytest

from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent
from dragoman.check.results import CheckReport
from tests.bridge.guard.serving import serving

AGENT = (sys.executable, "-m", "dragoman", "agent")

SCRIPT = """
- - thought: They want a note.
  - text: "I will write it. "
  - tool: {name: update_plan, arguments: {entries: [{content: Write it, priority: high, status: in_progress}]}}
  - tool: {name: read_file, arguments: {path: notes.txt, start_line: 2}}
  - tool: {name: write_file, arguments: {path: made.txt, content: "made\\n"}}
- - tool: {name: run_command, arguments: {command: "echo done"}}
- - text: "Done. "
  - usage: {input: 12, output: 4}
"""

LOGINS = {f"ACP-AUTH-00{number}" for number in range(1, 6)}
FORMS = {f"ACP-ELICIT-00{number}" for number in range(1, 10)}
NEVER_DONE = {
    "ACP-AUTH-002",  # neither the guide nor a script needs a key
    "ACP-AUTH-004",
    *FORMS,  # it sends no forms itself
    "ACP-CONTENT-002",  # it only sends text
    "ACP-CONTENT-003",
    "ACP-EXT-002",  # it has no custom methods
    "ACP-EXT-005",  # it sends no traces
    "ACP-FS-004",  # it reads complete files and selects the lines itself
    "ACP-LIST-007",  # its pages are longer than our lists
    "ACP-PROMPT-007",  # a script costs nothing
    "ACP-TOOL-004",  # it sends nothing more about a finished tool call
    "ACP-WIRE-007",  # it sends one request at a time
}
"""Rules that the agent never exercises, however it is driven here."""
SELDOM_DONE = {"ACP-PROMPT-009"}
"""Rules that it only exercises on a busy machine, with notices about slow MCP servers."""


def silent(report: CheckReport) -> set[str]:
    return {each.id for each in report.results if each.verdict == "not_exercised"} - SELDOM_DONE


def blamed(report: CheckReport) -> dict[str, str]:
    return {each.id: each.detail for each in report.results if each.verdict in ("fail", "warn", "error")}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return path


@pytest.mark.extended
async def test_our_agent_breaks_no_rule_with_tools(script: Path):
    command = (*AGENT, "--model", f"script:{script}")
    turns = (ScriptTurn("one"), ScriptTurn("two"))
    report = await check_agent(AgentOptions(command=command, turns=turns, protocols=(1,)))
    assert blamed(report) == {}
    assert silent(report) == NEVER_DONE


@pytest.mark.extended
async def test_our_agent_breaks_no_rule_of_version_2(script: Path):
    command = (*AGENT, "--model", f"script:{script}")
    turns = (ScriptTurn("one"), ScriptTurn("two"))
    report = await check_agent(AgentOptions(command=command, turns=turns, protocols=(2,)))
    assert blamed(report) == {}
    assert report.exit_code() == 0
    assert {"ACP-LOAD-006", "ACP-LOAD-008", "ACP-PROMPT-012", "ACP-CANCEL-001", "ACP-PERM-008"}.isdisjoint(
        silent(report)
    )


async def test_long_work_is_not_interrupted(tmp_path: Path):
    path = tmp_path / "slow.yaml"
    path.write_text('- - delay_s: 1.5\n  - text: "Done. "\n')
    command = (*AGENT, "--model", f"script:{path}")
    report = await check_agent(AgentOptions(command=command, scenes=frozenset({"add_server"}), protocols=(2,)))
    assert blamed(report) == {}
    assert "ACP-PROMPT-006" not in silent(report)  # the work ended normally


@pytest.mark.extended
async def test_our_agent_breaks_no_rule_without_tools():
    report = await check_agent(AgentOptions(command=AGENT, protocols=(1,)))
    assert blamed(report) == {}
    assert report.exit_code() == 0
    needs_tools = {"FS", "NEW", "PERM", "PLAN", "TERM", "TOOL"}
    rest = {each for each in silent(report) - NEVER_DONE if each.split("-")[1] not in needs_tools}
    # Its turns may end before anything can be done to them.
    too_late = {"ACP-CANCEL-001", "ACP-CANCEL-002", "ACP-CLOSE-001", "ACP-PROMPT-005", "ACP-WIRE-025"}
    assert rest <= too_late


async def test_our_agent_without_a_key_breaks_no_login_rule(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    options = AgentOptions(
        command=(*AGENT, "--model", "anthropic:claude-x"), scenes=frozenset({"log_in"}), protocols=(1,)
    )
    report = await check_agent(options)
    assert blamed(report) == {}
    assert LOGINS - silent(report) == {"ACP-AUTH-001", "ACP-AUTH-003", "ACP-AUTH-005"}


@pytest.mark.extended
async def test_our_bridge_breaks_no_rule(tmp_path: Path, script: Path):
    with serving(tmp_path, "--model", f"script:{script}", agent=()) as served:
        report = await check_agent(
            AgentOptions(
                url=served.acp, token=served.token, turns=(ScriptTurn("one"), ScriptTurn("two")), protocols=(1,)
            )
        )
    assert blamed(report) == {}
    assert silent(report) - NEVER_DONE == {
        "ACP-HTTP-014",  # its agent can load sessions, and only the agent knows which
        "ACP-WIRE-017",  # the exit of a process is not visible at a URL
        "ACP-WIRE-018",
        "ACP-WIRE-019",
        "ACP-MCP-001",  # its child processes are not visible either
        "ACP-MCP-002",
        "ACP-MCP-003",
        "ACP-NEW-005",  # its start directory is not visible either
    }
