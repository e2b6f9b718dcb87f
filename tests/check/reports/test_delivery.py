"""`dragoman check` as a command: formats, files, baselines and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import dragoman
from tests.table import each_row

CHECK = [sys.executable, "-m", "dragoman", "check"]
DEADLINE_S = 60
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
BANNER = {"dir": "agent", "line": "Starting up!"}
SHOULD = "ACP-INIT-005"
MUST = "ACP-WIRE-001"


def check(*arguments, **more):
    return dragoman("check", *map(str, arguments), **more)


@pytest.fixture
def trace(tmp_path):
    """Create a recording of an agent that prints a banner and sends no name."""
    answer = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "agentCapabilities": {}}}
    lines = [{"dir": "client", "message": INITIALIZE}, BANNER, {"dir": "agent", "message": answer}]
    path = tmp_path / "trace.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def tidy(tmp_path):
    """Create a recording that only breaks recommendations."""
    answer = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "agentCapabilities": {}}}
    path = tmp_path / "tidy.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in (INITIALIZE, answer)))
    return path


def test_failed_rule_is_exit_code_1_with_evidence(trace):
    done = check("trace", trace, "--role", "agent")
    assert done.returncode == 1
    assert f"FAIL  {MUST}" in done.stdout
    assert "2 ← Starting up!" in done.stdout
    assert "\x1b" not in done.stdout


def test_level_must_ignores_should_rules(tidy):
    assert check("trace", tidy, "--role", "agent").returncode == 1
    done = check("trace", tidy, "--role", "agent", "--level", "must")
    assert done.returncode == 0
    assert f"FAIL  {SHOULD}" in done.stdout


def test_stdout_only_contains_json(trace):
    done = check("trace", trace, "--format", "json")
    read = json.loads(done.stdout)
    verdicts = {each["id"]: each["verdict"] for each in read["results"]}
    assert verdicts[MUST] == "fail"
    assert read["summary"]["fail"] == list(verdicts.values()).count("fail")
    assert done.stderr == ""


def test_report_is_written_to_the_named_file(trace, tmp_path):
    path = tmp_path / "report.html"
    done = check("trace", trace, "--format", "html", "--output", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert path.read_text().startswith("<!doctype html>")


def test_baseline_excuses_known_failures(trace, tmp_path):
    path = tmp_path / "baseline.json"
    written = check("trace", trace, "--role", "agent", "--baseline", path, "--write-baseline")
    assert written.returncode == 0
    assert f"{path} has 2 known failures now" in written.stderr
    done = check("trace", trace, "--role", "agent", "--baseline", path)
    assert done.returncode == 0
    assert f"FAIL (known)  {MUST}" in done.stdout


def test_passing_rule_should_leave_the_baseline(trace, tidy, tmp_path):
    path = tmp_path / "baseline.json"
    check("trace", trace, "--role", "agent", "--baseline", path, "--write-baseline")
    done = check("trace", tidy, "--role", "agent", "--baseline", path)
    assert done.returncode == 0
    assert f"{MUST} passes now; remove it from {path}" in done.stderr


@each_row(
    ("arguments", "words"),
    [
        (["trace", "missing"], "No such file"),
        (["trace", "{trace}", "--baseline", "missing"], "the baseline missing cannot be read"),
        (["trace", "{trace}", "--write-baseline"], "add --baseline FILE"),
        (["trace", "{trace}", "--output", "no/such/place"], "cannot be written"),
        (["matrix", "report.json"], "expected NAME=FILE"),
        (["agent", "--url", "http://127.0.0.1:1/acp", "--", "agent"], "use only one of them"),
        (["client"], "no client given"),
        ([], "ACTION"),
        (["agent", "--", "/no/such/agent"], "/no/such/agent"),
    ],
)
def test_usage_error_is_exit_code_2_with_a_fix(arguments, words, trace):
    done = check(*(str(each).replace("{trace}", str(trace)) for each in arguments))
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_reports_are_compared_in_columns(trace, tidy, tmp_path):
    for name, path in (("a", trace), ("b", tidy)):
        check("trace", path, "--role", "agent", "--format", "json", "--output", tmp_path / f"{name}.json")
    done = check("matrix", f"one={tmp_path / 'a.json'}", f"two={tmp_path / 'b.json'}")
    assert done.returncode == 0
    assert done.stdout.startswith("| rule | level | one | two |\n")
    [row] = [line for line in done.stdout.splitlines() if line.startswith(f"| {MUST} ")]
    assert row.endswith("| **FAIL** | pass |")


PROJECT_TEST = """
import pytest

def test_it_conforms(acp_agent):
    report = acp_agent.check(prompt=False)
    known = [result.id for result in report.results if result.verdict == "fail"]
    acp_agent.assert_conforms(known=known, prompt=False)
    assert acp_agent.check(prompt=False) is report

@pytest.mark.acp_agent("sh", "-c", "echo Starting up!; exec cat")
def test_another(acp_agent):
    acp_agent.assert_conforms(timeout_s=0.5, start_timeout_s=2)

async def test_in_a_loop(acp_agent):
    assert acp_agent.check(prompt=False).summary.passed
"""


def test_pytest_plugin_checks_a_projects_agent(tmp_path):
    (tmp_path / "test_project.py").write_text(PROJECT_TEST)
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nasyncio_mode = auto\nacp_agent = {sys.executable} -m dragoman.testing '[]'\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "dragoman.check.pytest_plugin",
        "-p",
        "pytest_asyncio.plugin",
        "-q",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert f"FAIL  {MUST}" in done.stdout


def test_unused_pytest_plugin_imports_almost_nothing():
    program = (
        "import sys, pytest; before = {*sys.modules}; import dragoman.check.pytest_plugin; "
        "print(*(sys.modules.keys() - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    assert {"asyncio", "concurrent.futures", "msgspec"}.isdisjoint(done.stdout.split())


def test_documented_workflow_uses_existing_commands_and_options():
    workflow = (Path(__file__).parents[3] / "docs" / "check-action.yml").read_text()
    help_text = check("agent", "--help").stdout
    for word in ("--format", "--output", "--baseline"):
        assert word in workflow
        assert word in help_text
