"""Agents that do not work, and the checker's report about them."""

import shlex
import sys
from pathlib import Path

import pytest

from dragoman.check.driver import AgentOptions, InvalidScriptError, ScriptTurn, check_agent, read_script
from dragoman.check.driver.run import rows_at_once
from dragoman.check.results import CheckReport
from dragoman.errors import StartError

ROOT = Path(__file__).parents[3]


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


ANSWER_S = 1.5
"""The time to answer. A good agent on a busy machine is slow as well, and must not be blamed."""


def clean_agent(home: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.check.mutants.agent", str(home))


def spoken_for(report: CheckReport) -> dict[str, tuple[str, str]]:
    return {each.id: (each.verdict, each.detail) for each in report.results if each.verdict != "not_exercised"}


async def test_slow_starting_agent_is_awaited(tmp_path: Path):
    text = f"import time; time.sleep(2); from tests.check.mutants.agent import main; main({str(tmp_path)!r})"
    options = AgentOptions(
        command=program(text),
        env={"PYTHONPATH": str(ROOT)},
        timeout_s=ANSWER_S,
        scenes=frozenset({"lists"}),
        auth="key",
    )
    report = await check_agent(options)
    assert {verdict for verdict, _ in spoken_for(report).values()} == {"pass"}
    assert spoken_for(report)["ACP-LIST-003"] == ("pass", "")


async def test_agent_that_echoes_any_version_is_not_version_2():
    text = (
        "import json, sys\n"
        "for asked in map(json.loads, sys.stdin):\n"
        "    result = {'protocolVersion': asked['params']['protocolVersion'], 'agentCapabilities': {}}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': result}), flush=True)"
    )
    report = await check_agent(AgentOptions(command=program(text), scenes=frozenset()))
    assert report.protocols == [1]
    report = await check_agent(AgentOptions(command=program(text), scenes=frozenset(), protocols=(2,)))
    assert report.protocols == [2]


@pytest.mark.parametrize("left", ["", "import subprocess; subprocess.Popen(['sleep', '600']); "])
async def test_agent_that_exits_at_start_breaks_a_must(left: str):
    report = await check_agent(AgentOptions(command=program(f"{left}raise SystemExit(3)"), start_timeout_s=20))
    unanswered = "the agent exited 3 before it answered initialize; expected a version and capabilities"
    assert spoken_for(report) == {
        "ACP-INIT-001": ("fail", unanswered),
        "ACP-WIRE-019": ("fail", "the agent exited 3 though its stdin was open; expected it to keep running"),
    }
    assert report.exit_code("must") == 1


async def test_silent_agent_is_only_blamed_for_silence():
    options = AgentOptions(command=program("import sys; sys.stdin.read()"), start_timeout_s=0.5)
    assert spoken_for(await check_agent(options)) == {
        "ACP-WIRE-011": (
            "fail",
            "initialize got no answer from the agent in 0.5 s; if it only needs longer, use --start-timeout",
        )
    }


async def test_agent_of_another_version_passes_no_version_1_rule(tmp_path: Path):
    report = await check_agent(
        AgentOptions(
            command=(*clean_agent(tmp_path), "ACP-INIT-010"),
            env={"PYTHONPATH": str(ROOT)},
            auth="key",
            protocols=(1,),
        )
    )
    verdicts = spoken_for(report)
    detail = "asked for version 1, the agent answered 2: by the rules of version 1 nothing more is judged"
    assert verdicts.pop("ACP-INIT-010") == ("fail", detail)
    assert {each.split("-")[1] for each in verdicts} == {"WIRE", "INIT", "AUTH"}
    assert {"ACP-INIT-001", "ACP-INIT-003"} <= verdicts.keys()


@pytest.mark.parametrize(
    ("rule", "implied"),
    [
        ("ACP-LOAD-001", {"ACP-LOAD-007", "ACP-RESUME-003"}),
        ("ACP-RESUME-001", {"ACP-LOAD-007", "ACP-RESUME-003"}),
        ("ACP-CLOSE-002", set[str]()),  # closed and gone, so the failed load is the same mistake
    ],
)
async def test_forgetful_agent_is_judged_by_reopening_on_one_connection(rule: str, implied: set[str], tmp_path: Path):
    agent = shlex.join([sys.executable, "-m", "tests.check.mutants.agent"])
    command = ("sh", "-c", f'home={shlex.quote(str(tmp_path))}/$$; mkdir $home; exec {agent} $home "$0"', rule)
    scenes = frozenset({"reopen_sessions"})
    options = AgentOptions(command=command, env={"PYTHONPATH": str(ROOT)}, auth="key", scenes=scenes)
    failed = {name for name, (verdict, _) in spoken_for(await check_agent(options)).items() if verdict != "pass"}
    assert failed == {rule, *implied}


async def test_processes_left_by_an_agent_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.check.driver.connection.ORPHAN_S", 0.1)
    command = ("sh", "-c", f"sleep 20 & sleep 20 & exec {shlex.join(clean_agent(tmp_path))}")
    scenes = frozenset({"close_input"})
    verdicts = spoken_for(
        await check_agent(AgentOptions(command=command, env={"PYTHONPATH": str(ROOT)}, auth="key", scenes=scenes))
    )
    assert verdicts["ACP-WIRE-018"] == ("fail", "2 child processes remain; expected none")
    assert {name for name, (verdict, _) in verdicts.items() if verdict != "pass"} == {"ACP-WIRE-018"}


async def test_agent_ignoring_unknown_methods_is_not_blamed_for_long_lines(tmp_path: Path):
    text = (
        "from tests.check.mutants.agent import Agent, SessionFiles\n"
        "Agent.handle_strange_request = lambda *_: None\n"
        f"Agent(SessionFiles({str(tmp_path)!r}), None).serve()"
    )
    options = AgentOptions(
        command=program(text),
        env={"PYTHONPATH": str(ROOT)},
        auth="key",
        timeout_s=ANSWER_S,
        scenes=frozenset({"long_line"}),
    )
    verdicts = spoken_for(await check_agent(options))
    assert {name for name, (verdict, _) in verdicts.items() if verdict != "pass"} == {"ACP-WIRE-011"}
    assert verdicts["ACP-WIRE-014"] == ("pass", "")


def altered_agent(home: Path, change: str) -> tuple[str, ...]:
    """Return the command of the clean agent with a change to its class."""
    return program(
        "import os, sys, threading, time\n"
        "from tests.check.mutants.agent import Agent, SessionFiles\n"
        f"{change}\n"
        f"Agent(SessionFiles({str(home)!r}), None).serve()"
    )


@pytest.mark.parametrize(
    ("change", "scene", "rule"),
    [
        ("Agent.delete = lambda *_: time.sleep(60)", "lists", ("ACP-WIRE-011", "warn")),
        ("Agent.delete = lambda *_: (os.close(1), time.sleep(60))", "lists", ("ACP-WIRE-011", "fail")),
        ("Agent.handle_garbage = lambda *_: time.sleep(60)", "strange_lines", ("ACP-WIRE-012", "fail")),
    ],
    ids=["hangs", "closes its stdout", "hangs at garbage"],
)
async def test_agent_that_stops_answering_is_blamed_once(
    change: str, scene: str, rule: tuple[str, str], tmp_path: Path
):
    options = AgentOptions(
        command=altered_agent(tmp_path, change),
        env={"PYTHONPATH": str(ROOT)},
        auth="key",
        timeout_s=ANSWER_S,
        scenes=frozenset({scene}),
    )
    verdicts = spoken_for(await check_agent(options))
    assert {(name, verdict) for name, (verdict, _) in verdicts.items() if verdict != "pass"} == {rule}


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("sys.stderr.write('This folder is not trusted: MCP servers are off.')", "not_exercised"),
        ("self.send('aside', {'jsonrpc': '2.0', 'method': '_log', 'params': 'untrusted'})", "not_exercised"),
        ("None", "fail"),
    ],
    ids=["on stderr", "in a message", "not at all"],
)
async def test_agent_that_distrusts_the_directory_need_not_start_servers(words: str, verdict: str, tmp_path: Path):
    options = AgentOptions(
        command=altered_agent(tmp_path, f"Agent.start_server = lambda self, *_: {words}"),
        env={"PYTHONPATH": str(ROOT)},
        auth="key",
        timeout_s=ANSWER_S,
        scenes=frozenset({"add_server"}),
    )
    assert {each.verdict for each in (await check_agent(options)).results if each.id == "ACP-MCP-002"} == {verdict}


@pytest.mark.parametrize(("start_s", "rows"), [(0.2, 4), (1.2, 2), (3.0, 1)])
def test_slow_starting_agents_get_fewer_concurrent_rows(start_s: float, rows: int):
    assert rows_at_once(start_s) == rows


async def test_very_slow_starting_agent_runs_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.check.driver.run.AT_ONCE", ())  # so that any start counts as slow
    two = tmp_path / "two"
    lock = (
        "import fcntl\n"
        f"file = open({str(tmp_path / 'lock')!r}, 'w')\n"
        "try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        f"except OSError: open({str(two)!r}, 'w')"
    )
    options = AgentOptions(
        command=altered_agent(tmp_path, lock),
        env={"PYTHONPATH": str(ROOT)},
        auth="key",
        scenes=frozenset({"unknown_version", "bad_initialize", "log_in", "unknown_sessions"}),
    )
    await check_agent(options)
    assert not two.exists()


async def test_missing_agent_command_is_reported():
    with pytest.raises(StartError, match="no-such-agent"):
        await check_agent(AgentOptions(command=("no-such-agent",)))


async def test_check_without_prompts_sends_none(tmp_path: Path):
    options = AgentOptions(command=clean_agent(tmp_path), env={"PYTHONPATH": str(ROOT)}, auth="key", prompt=False)
    report = await check_agent(options)
    verdicts = spoken_for(report)
    assert {verdict for verdict, _ in verdicts.values()} == {"pass"}
    assert not any("-CANCEL-" in each or "-TOOL-" in each or "-LOAD-001" in each for each in verdicts)
    assert "ACP-LIST-003" in verdicts


async def test_agent_requests_no_capability_that_is_not_offered(tmp_path: Path):
    options = AgentOptions(
        command=clean_agent(tmp_path),
        env={"PYTHONPATH": str(ROOT)},
        auth="key",
        scenes=frozenset({"converse"}),
        turns=(ScriptTurn("work"),),
        without=frozenset({"terminal"}),
    )
    verdicts = spoken_for(await check_agent(options))
    assert {verdict for verdict, _ in verdicts.values()} == {"pass"}
    assert "ACP-FS-001" in verdicts
    assert not any("-TERM-" in each for each in verdicts)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("prompt: hello", "Expected `array`"),
        ("- promt: hello", "promt"),
        ("- prompt: hello\n  permission: maybe", "maybe"),
        ("- prompt: [", "is not a script"),
        ("[]", "contains no turns"),
        ("\xff", "is not a script"),
    ],
)
def test_invalid_script_is_reported_with_its_problem(text: str, problem: str, tmp_path: Path):
    path = tmp_path / "turns.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidScriptError, match=r"turns\.yaml") as caught:
        read_script(path)
    assert problem in str(caught.value)


def test_missing_script_is_reported(tmp_path: Path):
    with pytest.raises(InvalidScriptError, match="cannot be read: No such file"):
        read_script(tmp_path / "none.yaml")


def test_a_script_has_prompts_with_answers_and_cancels(tmp_path: Path):
    path = tmp_path / "turns.yaml"
    path.write_text("- prompt: one\n- prompt: two\n  permission: reject\n- prompt: three\n  cancel: permission\n")
    assert read_script(path) == (
        ScriptTurn("one"),
        ScriptTurn("two", "reject"),
        ScriptTurn("three", "allow", "permission"),
    )
