"""`dragoman check agent` as a command: one run, one JSON object, and the exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def check(home: Path, *rule: str) -> tuple[int, dict[str, Any]]:
    options = ("--format", "json", "--auth", "key", "--prompt", "work", "--prompt", "and then rest")
    agent = (sys.executable, "-m", "tests.check.mutants.agent", str(home), *rule)
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "check", "agent", *options, "--", *agent],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_a_whole_run_is_one_json_object(tmp_path: Path):
    code, report = check(tmp_path)
    assert code == 0
    assert {each["verdict"] for each in report["results"]} == {"pass"}
    assert report["summary"] == {"pass": len(report["results"]), "fail": 0, "warn": 0, "not_exercised": 0, "error": 0}
    assert {"id", "title", "level", "verdict", "clause", "detail", "evidence"} <= report["results"][0].keys()


@pytest.mark.parametrize("command", [[], [""]])
def test_empty_command_is_a_usage_error(command: list[str]):
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "check", "agent", "--", *command],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 2
    assert "no command after --" in done.stderr


def test_a_failure_shows_the_messages_that_prove_it(tmp_path: Path):
    code, report = check(tmp_path, "ACP-PLAN-001")
    assert code == 1
    failed = [each for each in report["results"] if each["verdict"] == "fail"]
    assert [each["id"] for each in failed] == ["ACP-PLAN-001"]
    assert any('"status": "done"' in each["line"] for each in failed[0]["evidence"])
