"""What writes in the home, on a full disk: words, nothing left behind, and all is well once there is room."""

import json
import logging
import os
import subprocess
import sys

import pytest

from dragoman.agent.approvals import ApprovalFile, Approvals
from dragoman.agent.prepared_call import Action
from dragoman.assistant.keys import KeyStore, KeysUnusable
from dragoman.assistant.profile import TrustFailed, TrustStore
from dragoman.bridge.guard.credentials import TokenUnusable, keep_token
from tests.bridge.guard.serving import serving

FULL = pytest.mark.parametrize("files", [False, True], ids=["no byte", "no file"])
COMMANDS = {
    "login": ["login", "anthropic"],
    "init": ["init", "--home"],
    "mcp add": ["mcp", "add", "time", "--", "true"],
    "run": ["run", "hello"],
    "chat": ["chat"],
    "serve": ["serve", "--json", "--port", "0"],
}


@pytest.fixture
def home(tiny_disk, monkeypatch):
    tiny_disk.path.mkdir()
    monkeypatch.setenv("DRAGOMAN_HOME", str(tiny_disk.path))
    return tiny_disk.path


def dragoman(*arguments, cwd):
    line = [sys.executable, "-m", "dragoman", *arguments]
    given = {"input": "a-key-that-is-none\n", "capture_output": True, "text": True}
    return subprocess.run(line, cwd=cwd, timeout=30, check=False, **given)


def content(home):
    """All files that are not empty, as a lock is; and the agent file, which may not be."""
    return {path for path in home.rglob("*") if path.is_file() and (path.stat().st_size or path.suffix == ".yaml")}


def descriptors():
    return set(os.listdir("/proc/self/fd"))


@FULL
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_finds_no_room_says_so_and_leaves_nothing_behind(tiny_disk, home, tmp_path, files, name):
    tiny_disk.fill(files=files)
    done = dragoman(*COMMANDS[name], cwd=tmp_path)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "this user" not in done.stderr
    assert content(home) == set()
    tiny_disk.free()
    if name == "serve":
        with serving(home) as served:
            assert served.token
    else:
        assert dragoman(*COMMANDS[name], cwd=tmp_path).returncode == 0


@FULL
def test_lists_need_no_room(tiny_disk, home, tmp_path, files):
    made = dragoman("run", "hello", "--format", "json", cwd=tmp_path)
    tiny_disk.fill(files=files)
    [session] = json.loads(dragoman("sessions", "list", "--json", cwd=tmp_path).stdout)
    assert session["sessionId"] == json.loads(made.stdout)["session_id"]


@FULL
async def test_a_key_a_decision_and_a_token_are_kept_whole_or_not_at_all(tiny_disk, home, tmp_path, files, caplog):
    keys, trust, path = KeyStore(home), TrustStore(home), tmp_path / "dragoman.yaml"
    file, action = ApprovalFile(home, str(tmp_path)), Action("command", "make", str(tmp_path))
    approvals = Approvals(file)
    caplog.set_level(logging.WARNING)

    async def keep_all():
        keys.keep("anthropic", "new")
        trust.remember(path, "digest", allowed=True)
        await approvals.keep_for_good(action, "allow")
        return keep_token(home / "bridge")

    keys.keep("anthropic", "old")
    await file.find(action)  # the thread for files is there
    tiny_disk.fill(files=files)
    before = descriptors()
    for _ in range(3):
        with pytest.raises(KeysUnusable, match="No space left on device; free some space on that disk"):
            keys.keep("anthropic", "new")
        with pytest.raises(TrustFailed, match="No space left on device; it holds for this session only"):
            trust.remember(path, "digest", allowed=True)
        await approvals.keep_for_good(action, "allow")
        with pytest.raises((TokenUnusable, OSError), match="No space left on device"):
            keep_token(home / "bridge")
    assert descriptors() == before
    assert content(home) == {keys.path}
    assert keys.find("anthropic") == "old"
    assert trust.verdict(path, "digest") is None
    assert await approvals.find(action) == "allow", "in the session that it was decided in"
    assert await file.find(action) is None
    assert "holds in this session" in caplog.text
    tiny_disk.free()
    token = await keep_all()
    assert keys.find("anthropic") == "new"
    assert trust.verdict(path, "digest")
    assert await file.find(action) == "allow"
    assert keep_token(home / "bridge").matches(token.reveal())


LONG_HISTORY = """
import sys
from pathlib import Path
from dragoman.cli.chat.entry import PromptInput
PromptInput(Path(sys.argv[1]), lambda line, word: (), colour=False)
"""


@FULL
def test_a_long_history_that_cannot_be_cut_is_kept(tiny_disk, home, files):
    history = home / "chat-history"
    history.write_text('"a line"\n' * 5000)
    history.chmod(0o600)
    tiny_disk.fill(files=files)
    for lines in (5000, 2000):
        done = subprocess.run([sys.executable, "-c", LONG_HISTORY, str(history)], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert history.read_text().count("\n") == lines
        if lines == 5000:
            tiny_disk.free()
