"""A reader of stdout that goes away ends every command without a word, with the code of a shell for that."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from dragoman.cli import COMMANDS
from dragoman.testing import steps
from tests.commands import DRAGOMAN, scripted

SCRIPTED = scripted([steps.Say("hello")])

WRITING = [
    ["agents"],
    ["check", "agent", "--no-prompt", "--format", "json", "--", *SCRIPTED],
    ["completion", "bash"],
    ["init", "--editor", "zed"],
    ["init", "--home"],
    ["mcp"],
    ["run", "hi", "--", *SCRIPTED],
    ["run", "hi", "--format", "json", "--", *SCRIPTED],
    ["chat", "--", *SCRIPTED],
    ["serve", "--port", "0", "--", *SCRIPTED],
    ["sessions", "--format", "json"],
    ["logout", "anthropic"],
    ["--help"],
    ["--version"],
    *([name, "--help"] for name in COMMANDS),
]


@pytest.mark.parametrize("arguments", WRITING, ids=lambda arguments: " ".join(arguments)[:40])
def test_a_reader_that_is_gone_ends_the_command_without_a_word(arguments, tmp_path):
    home = Path(os.environ["DRAGOMAN_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "agents.json").write_text('{"agents": {"one": {"command": "true"}}}')
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*DRAGOMAN, *arguments],
            input=b"hi\n",
            stdout=writer,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            timeout=50,
            check=False,
        )
    finally:
        os.close(writer)
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert done.returncode == 128 + signal.SIGPIPE, done.stderr


def test_a_stdout_that_takes_nothing_more_is_named(monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*DRAGOMAN, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=50, check=False
        )
    assert done.returncode == 1
    assert done.stderr == (
        "dragoman: stdout cannot be written: No space left on device; see that there is room where stdout leads\n"
    )
