"""Commands that are started without stdin, as some jobs of CI systems and of cron are."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", ["agent", "run Hello", "sessions", "mcp", "chat"])
def test_a_closed_stdin_is_one_that_has_ended(command, tmp_path):
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
