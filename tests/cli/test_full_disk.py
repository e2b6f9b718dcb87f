"""Writing to the home on a full disk: a clear error, nothing left behind, and success once there is space."""

import json
import logging
import os
import subprocess
import sys

import pytest

from dragoman.agent.sessions.approvals import ApprovalFile, Approvals
from dragoman.agent.turns.prepared_call import Action
from dragoman.assistant.keys import KeysFileError, KeyStore
from dragoman.assistant.profile import TrustStore, TrustStoreError
from dragoman.bridge.guard.credentials import TokenFileError, keep_token
from tests.bridge.guard.serving import serving

FULL = pytest.mark.parametrize("files", [False, True], ids=["no byte", "no file"])
COMMANDS = {
    "login": ["login", "anthropic"],
    "init": ["init", "--home"],
    "mcp add": ["mcp", "add", "time", "--", "true"],
    "run": ["run", "hello"],
    "chat": ["chat"],
    "serve": ["serve", "--format", "json", "--port", "0"],
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
    """Return all non-empty files, because locks are empty, and the agent file, which must not be."""
    return {path for path in home.rglob("*") if path.is_file() and (path.stat().st_size or path.suffix == ".yaml")}


def descriptors():
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.extended
@FULL
@pytest.mark.parametrize("name", COMMANDS)
def test_full_disk_is_reported_and_leaves_nothing_behind(tiny_disk, home, tmp_path, files, name):
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
def test_lists_work_on_a_full_disk(tiny_disk, home, tmp_path, files):
    made = dragoman("run", "hello", "--format", "json", cwd=tmp_path)
    tiny_disk.fill(files=files)
    [session] = json.loads(dragoman("sessions", "list", "--format", "json", cwd=tmp_path).stdout)
    assert session["session_id"] == json.loads(made.stdout)["session_id"]


@FULL
async def test_key_decision_and_token_are_stored_completely_or_not_at_all(tiny_disk, home, tmp_path, files, caplog):
    keys, trust, path = KeyStore(home), TrustStore(home), tmp_path / "dragoman.yaml"
    file, action = ApprovalFile(home, str(tmp_path)), Action("command", "make", str(tmp_path))
    approvals = Approvals(file)
    caplog.set_level(logging.WARNING)

    async def keep_all():
        keys.save("anthropic", "new")
        trust.remember(path, "digest", allowed=True)
        await approvals.keep_for_project(action, "allow")
        return keep_token(home / "bridge")

    keys.save("anthropic", "old")
    await file.find(action)  # the thread for files has started
    tiny_disk.fill(files=files)
    before = descriptors()
    for _ in range(3):
        with pytest.raises(KeysFileError, match="No space left on device; free some space on that disk"):
            keys.save("anthropic", "new")
        with pytest.raises(TrustStoreError, match="No space left on device; it applies to this session only"):
            trust.remember(path, "digest", allowed=True)
        await approvals.keep_for_project(action, "allow")
        with pytest.raises((TokenFileError, OSError), match="No space left on device"):
            keep_token(home / "bridge")
    assert descriptors() == before
    assert content(home) == {keys.path}
    assert keys.find("anthropic") == "old"
    assert trust.verdict(path, "digest") is None
    assert await approvals.find(action) == "allow", "the decision holds in its session"
    assert await file.find(action) is None
    assert "applies to this session only" in caplog.text
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
def test_long_history_that_cannot_be_cut_is_kept(tiny_disk, home, files):
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
