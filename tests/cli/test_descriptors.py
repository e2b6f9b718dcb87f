"""Commands started without stdin, as in some CI and cron jobs."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", ["agent", "run Hello", "sessions", "mcp", "chat"])
def test_closed_stdin_counts_as_ended(command, tmp_path):
    without_stdin = f'exec "$0" -m dragoman {command} <&-'
    ended = subprocess.run(
        ["sh", "-c", without_stdin, sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 0
