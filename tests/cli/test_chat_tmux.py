"""`dragoman chat` in tmux: the screen after real key strokes."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import pytest

from dragoman.cli.chat.view import MARK
from dragoman.testing import steps
from tests.commands import scripted

DEADLINE_S = 30

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Window:
    """A separate tmux server with one window."""

    def __init__(self, socket, command, columns):
        self._socket = str(socket)
        self._tmux("new-session", "-d", "-x", str(columns), "-y", "30", f"{shlex.join(command)}; echo left $?; cat")

    def press(self, *keys):
        self._tmux("send-keys", *keys)

    def resize(self, columns):
        self._tmux("resize-window", "-x", str(columns))

    def wait_for(self, words):
        """Wait until the words are on the screen, and return the screen."""
        deadline = time.monotonic() + DEADLINE_S
        while words not in (screen := self.screen()):
            assert time.monotonic() < deadline, screen
        return screen

    def screen(self):
        return self._tmux("capture-pane", "-p").rstrip()

    def title(self):
        return self._tmux("display-message", "-p", "#{pane_title}")

    def close(self):
        self._tmux("kill-server")

    def _tmux(self, *words):
        command = ["tmux", "-f", os.devnull, "-S", self._socket, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout


@pytest.fixture
def chat(tmp_path):
    opened = []

    def start(*turns, columns=60):
        agent = scripted(*turns)
        command = [sys.executable, "-m", "dragoman", "chat", "--cwd", str(tmp_path), "--", *agent]
        opened.append(Window(tmp_path / "tmux", command, columns))
        opened[-1].wait_for("Ctrl-D exits\n\n")
        return opened[-1]

    yield start
    for window in opened:
        window.close()


DIFF = {"type": "diff", "path": "/x/notes.txt", "oldText": "one\nold\n", "newText": "one\nnew\n"}
CALL = steps.Update(
    {
        "sessionUpdate": "tool_call",
        "toolCallId": "e",
        "title": "Edit notes.txt",
        "status": "completed",
        "content": [DIFF],
    }
)
PLAN = steps.Update(
    {"sessionUpdate": "plan", "entries": [{"content": "Look", "priority": "low", "status": "completed"}]}
)


def test_complete_turn_is_drawn_correctly(chat):
    window = chat([steps.Think("hm"), PLAN, steps.Say("# Title\n\n- **one**\n"), CALL, steps.AskPermission(title="Go")])
    window.press("hello", "Enter")
    window.wait_for("[n/2] Reject")
    window.press("y")
    screen = window.wait_for(f" s\n\n{MARK.strip()}")
    turn = screen[screen.index("hello") :].split("\n\n")
    assert turn[:4] == [
        "hello",
        "✻ Thought: hm  :thoughts",
        "Title",
        "• one",
    ]
    assert "✓ Edit notes.txt\n  /x/notes.txt +1 -1\n  │ @@ -1,2 +1,2 @@\n  │  one\n  │ -old\n  │ +new" in turn
    assert "┃ May the agent do this? Go\n┃ [y/1] Allow   [n/2] Reject\n┃ → Allow" in turn
    assert "✓ Go" in turn
    assert "Plan 1/1\n  ☑ Look" in turn


def test_live_rows_leave_nothing_behind(chat):
    window = chat([steps.Say("working on it"), steps.WaitForCancel()], [steps.Say("fine")])
    window.press("hello", "Enter")
    window.wait_for("Ctrl-C cancels")
    window.press("C-c")
    screen = window.wait_for("\n\ncancelled\n")
    assert "Ctrl-C cancels" not in screen
    assert screen.count("working on it") == 1
    window.press("more", "Enter")
    window.wait_for("fine")


def retry(seconds):
    meta = {"dragoman/notice": "retries"}
    update = {
        "sessionUpdate": "notice",
        "severity": "info",
        "title": f"busy; trying again in {seconds} s",
        "_meta": meta,
    }
    return steps.Update(update)


def test_notices_with_one_key_are_one_updating_line(chat):
    window = chat([retry(1), retry(2), steps.AskPermission(title="Go"), retry(4), retry(8), steps.Say("here")])
    window.press("hello", "Enter")
    screen = window.wait_for("[n/2] Reject")
    assert re.findall(r"trying again in \d s", screen) == ["trying again in 2 s"]
    window.press("y")
    screen = window.wait_for(f" s\n\n{MARK.strip()}")
    assert re.findall(r"trying again in \d s", screen) == ["trying again in 2 s", "trying again in 8 s"]


def test_narrowed_window_is_redrawn(chat):
    window = chat([steps.Say("word " * 40), steps.WaitForCancel()])
    window.press("hello", "Enter")
    window.wait_for("Ctrl-C cancels")
    window.resize(31)
    screen = window.wait_for("word word word word word word\nword word word word word word\n")
    assert screen.count("Ctrl-C cancels") == 1
    window.press("C-c")
    window.wait_for("\n\ncancelled\n")


def test_agent_does_not_set_the_title(chat):
    window = chat([steps.Say("\x1b]0;evil\x07\x1b]2;evil\x07said")])
    window.press("hello", "Enter")
    window.wait_for("said")
    assert "evil" not in window.title()


def test_completion_and_multi_line_input_work_with_real_keys(chat):
    window = chat([steps.Say("fine")])
    window.press(":thou", "Tab")
    window.wait_for(":thoughts")
    window.press("Enter")
    window.wait_for("The last turn had no thoughts.")
    window.press("one", "M-Enter", "two", "Enter")
    screen = window.wait_for("fine")
    assert "one\ntwo\n\nfine" in screen
    window.press("C-d")
    window.wait_for("left 0")
