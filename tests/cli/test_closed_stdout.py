"""Writing to stdout: a closed reader, a full disk and short writes."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from dragoman.check.rules import RULES
from dragoman.cli import COMMANDS
from dragoman.testing import steps
from tests.commands import DRAGOMAN, scripted

SCRIPTED = scripted([steps.Say("hello")])

WRITING = [
    ["agents"],
    ["check", "agent", "--no-prompt", "--format", "json", "--", *SCRIPTED],
    ["completion", "bash"],
    ["editor", "zed"],
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


@pytest.mark.extended
@pytest.mark.parametrize("arguments", WRITING, ids=lambda arguments: " ".join(arguments)[:40])
def test_closed_stdout_ends_the_command_silently(arguments, tmp_path):
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


def test_full_stdout_is_reported(monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*DRAGOMAN, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=50, check=False
        )
    assert done.returncode == 1
    assert done.stderr == (
        "dragoman: stdout cannot be written: No space left on device; "
        "check that the disk or pipe behind stdout has space\n"
    )


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("cause", ["signal", "non-blocking"])
def test_short_writes_lose_no_output(monkeypatch, unbuffered, cause):
    """A signal while the pipe is full shortens a write. So does a pipe made non-blocking by another process."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    handler = "import os, signal; signal.signal(signal.SIGUSR1, lambda *_: os.write(2, b'.'))"
    command = [sys.executable, "-c", f"{handler}; from dragoman.cli import main; main()", "check", "rule", *RULES]
    reader, writer = os.pipe()
    os.set_blocking(writer, cause == "signal")
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE) as process, open(reader, "rb") as output:
        os.close(writer)
        wait_until_full(reader)
        if cause == "signal":
            process.send_signal(signal.SIGUSR1)
            assert process.stderr.read(1) == b"."
        text = output.read().decode()
        assert process.stderr.read() == b""
    assert process.returncode == 0
    assert [rule for rule in RULES if rule not in text] == []
    assert len(text) > 100_000


def wait_until_full(pipe):
    """Wait until a pipe holds 64 KiB, its maximum on Linux and macOS."""
    while struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0] < 65_536:
        time.sleep(0.01)
