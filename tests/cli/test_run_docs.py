"""The commands in docs/run.md do what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.commands import build_parser

PAGE = (Path(__file__).parent.parent.parent / "docs" / "run.md").read_text()
COMMANDS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("commands", COMMANDS, ids=lambda commands: commands.split("\n")[0][:40])
def test_the_commands_of_the_page_run(commands, tmp_path):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", commands],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "Traceback" not in done.stderr


def test_every_exit_code_of_the_help_is_on_the_page():
    codes = re.findall(r"\b(\d+)\s[a-z]", build_parser("run").format_help().partition("Exit codes:")[2])
    assert codes == ["0", "1", "2", "3", "4", "5", "6", "124", "130"]
    for code in codes:
        assert f"\n| {code} | " in PAGE
