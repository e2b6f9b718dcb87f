"""Requests over stdio that are too long or too deeply nested to read."""

import json
import os
import subprocess
import sys

import pytest

from dragoman.wire import MAX_LINE_BYTES

DEEP = b"[" * 1_000 + b"]" * 1_000
TIMEOUT_S = 60


def ask(home, *requests):
    """Start the agent, send these lines and return its answers by id."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "agent"],
        input=b"".join(request + b"\n" for request in requests),
        capture_output=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "DRAGOMAN_HOME": str(home)},
        check=True,
    )
    return {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}


HELLO = b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":1}}'


@pytest.mark.parametrize(
    "line", [b'{"jsonrpc":"2.0","id":5,"method":"session/new","params":%b}', b'{"jsonrpc":"2.0","params":%b,"id":5}']
)
def test_too_deeply_nested_request_is_answered_under_its_id(tmp_path, line):
    answers = ask(tmp_path, line % DEEP, HELLO)
    assert "nested deeper than 200 levels" in answers[5]["error"]["message"]
    assert "result" in answers["hello"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"%b"}}',
        b'{"jsonrpc":"2.0","method":"session/new","params":{"cwd":"%b"},"id":5}',
    ],
)
def test_too_long_request_is_answered_under_its_id(tmp_path, line):
    answers = ask(tmp_path, line % (b"x" * MAX_LINE_BYTES), HELLO)
    assert f"longer than the limit of {MAX_LINE_BYTES} bytes" in answers[5]["error"]["message"]
    assert "result" in answers["hello"]
