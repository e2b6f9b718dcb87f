"""`dragoman run` in a terminal: it asks with the whole action, and Ctrl-C cancels."""

import os
import re
import signal
import subprocess
import sys
import termios

import pytest

from dragoman.testing import steps
from tests.commands import DRAGOMAN, raw, scripted
from tests.proc.processes import alive
from tests.waiting import wait_until

CTRL_C = "\x03"
CTRL_D = "\x04"
SEEN = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """`dragoman run` in a separate terminal, its output and its input."""

    def __init__(self, *arguments, cwd=None):
        self._ours, theirs = os.openpty()
        self._modes_before = self._modes()
        # A shell makes the terminal its own, so that Ctrl-C becomes a signal.
        control = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", control, *DRAGOMAN, "run", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            cwd=cwd,
        )
        os.close(theirs)
        self.shown = ""

    def wait_for(self, text):
        while text not in SEEN.sub("", self.shown):
            assert self._read(), self.shown

    def rows(self):
        """Return the shown rows without colours."""
        return [row.rstrip() for row in SEEN.sub("", self.shown).split("\n") if row.strip()]

    def type(self, text):
        os.write(self._ours, text.encode())

    def finish(self):
        while self._read():
            pass
        assert self._modes() == self._modes_before
        os.close(self._ours)
        return self.process.wait(30)

    def _modes(self):
        return termios.tcgetattr(self._ours)[3] & (termios.ICANON | termios.ECHO)

    def _read(self):
        try:
            read = os.read(self._ours, 4096).decode()
        except OSError:  # every process on the other side has ended
            return False
        self.shown += read.replace("\r\n", "\n")
        return bool(read)


def said(text, message_id, **more):
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, "messageId": message_id}
    return {"method": "session/update", "params": {"sessionId": "s", "update": {**chunk, **more}}}


def test_void_text_is_marked_as_void():
    capabilities = {"_meta": {"dragoman/void": True}}
    void = said("", "one", _meta={"dragoman/void": True})
    turn = [said("Half of", "one"), void, said("All of it", "two"), {"result": {"stopReason": "end_turn"}}]
    initialized = {"result": {"protocolVersion": 1, "agentCapabilities": capabilities}}
    terminal = Terminal("go", "--", *raw({"initialize": [[initialized]], "session/prompt": [turn]}))
    assert terminal.finish() == 0
    first, note, last = SEEN.sub("", terminal.shown).splitlines()
    assert (first, last) == ("Half of", "All of it")
    assert note.startswith("[the text above is discarded")


def test_notice_replaces_the_line_with_its_key():
    def notice(seconds, key):
        update = {"sessionUpdate": "notice", "severity": "info", "title": f"again in {seconds} s"}
        return steps.Update({**update, "_meta": {"dragoman/notice": key}})

    turn = [notice(1, "a"), notice(2, "a"), notice(3, "b"), steps.Say("here"), notice(4, "b")]
    terminal = Terminal("go", "--", *scripted(turn))
    assert terminal.finish() == 0
    up = "\x1b[1A\r\x1b[J"
    assert SEEN.sub("", terminal.shown).replace(up, "<up>").splitlines() == [
        "[again in 1 s]",
        "<up>[again in 2 s]",
        "[again in 3 s]",
        "here",
        "[again in 4 s]",
    ]


def raw_question(call, *options):
    params = {"sessionId": "s", "toolCall": {"toolCallId": "1", **call}, "options": list(options)}
    ask = {"id": 9, "method": "session/request_permission", "params": params}
    script = {"session/prompt": [[ask, {"hear": "answer"}, {"result": {"stopReason": "end_turn"}}]]}
    return raw(script)


ONCE = {"optionId": "o", "name": "Allow", "kind": "allow_once"}
ALWAYS = {"optionId": "f", "name": "Allow for good", "kind": "allow_always"}
NEVER = {"optionId": "x", "name": "Never", "kind": "reject_always"}
NO = {"optionId": "n", "name": "Reject", "kind": "reject_once"}
ANSWER = '"outcome": {{"optionId": "{}", "outcome": "selected"}}'


@pytest.mark.parametrize(
    ("key", "option", "code"),
    [("y", "o", 0), ("n", "n", 6), ("a", "f", 0), ("1", "f", 0), ("d", "x", 6), (CTRL_D, "n", 6), ("zY", "o", 0)],
)
def test_key_answers_the_question(key, option, code):
    terminal = Terminal("go", "--", *raw_question({"title": "Publish"}, ALWAYS, ONCE, NEVER, NO))
    terminal.wait_for("[n/4] Reject")
    assert terminal.rows() == [
        "┃ May the agent do this? Publish",
        "┃ [a/1] Allow for good   [y/2] Allow   [d/3] Never   [n/4] Reject",
    ]
    terminal.type(key)
    assert terminal.finish() == code
    assert ANSWER.format(option) in terminal.shown
    assert "not allowed" not in terminal.shown


def test_always_is_refused_if_the_agent_does_not_offer_it():
    terminal = Terminal("go", "--", *raw_question({"title": "Publish"}, ONCE, NO))
    terminal.wait_for("[n/2] Reject")
    terminal.type("an")
    assert terminal.finish() == 6


def test_yes_is_refused_if_the_agent_offers_only_always():
    terminal = Terminal("go", "--", *raw_question({"title": "Publish"}, ALWAYS, NO))
    terminal.wait_for("[n/2] Reject")
    terminal.type("yn")
    assert terminal.finish() == 6


def test_scope_of_our_agents_always_can_be_chosen(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    terminal = Terminal("replace one by two in a.txt", cwd=tmp_path)
    terminal.wait_for("Always allow edits to a.txt in this project\n")
    assert "┃ [a/2] Allow edits to a.txt in this session" in terminal.rows()
    terminal.type("3")
    assert terminal.finish() == 0
    again = Terminal("replace two by one in a.txt", cwd=tmp_path)
    assert again.finish() == 0
    assert "May the agent" not in again.shown


def test_whole_command_is_shown_without_hidden_characters():
    command = "echo one\nrm -rf build\x1b[2K\rls\u202e"
    terminal = Terminal("go", "--", *raw_question({"title": "List", "rawInput": {"command": command}}, ONCE, NO))
    terminal.wait_for("Reject")
    assert terminal.rows()[1:3] == ["┃   $ echo one", "┃   $ rm -rf build\\x1b[2K\\rls\\u202e"]
    terminal.type("n")
    terminal.finish()


def test_whole_diff_is_shown(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    terminal = Terminal("replace one by two in a.txt", cwd=tmp_path)
    terminal.wait_for("Reject")
    # The heading wraps if the path is too long for a row.
    heading = "".join(row.removeprefix("┃").strip() for row in terminal.rows()).replace(" ", "")
    assert f"{tmp_path}/a.txt+1-1".replace(" ", "") in heading
    assert "\x1b[31m-one\x1b[0m\n" in terminal.shown
    assert "\x1b[32m+two\x1b[0m\n" in terminal.shown
    terminal.type("y")
    assert terminal.finish() == 0
    assert (tmp_path / "a.txt").read_text() == "two\n"


def test_action_without_a_rule_asks(tmp_path):
    terminal = Terminal("write `hello` into a.txt", "--policy", "allow:write:*.md", cwd=tmp_path)
    terminal.wait_for("Reject")
    terminal.type("y")
    assert terminal.finish() == 0
    assert (tmp_path / "a.txt").exists()


def test_policy_deny_does_not_ask():
    terminal = Terminal("go", "--policy", "deny", "--", *scripted([steps.AskPermission()]))
    assert terminal.finish() == 6
    assert "May the agent" not in terminal.shown


def test_answer_cannot_control_the_terminal():
    terminal = Terminal("go", "--", *scripted([steps.Say("a\x1b]0;title\x07b\u202e\n")]))
    assert terminal.finish() == 0
    assert "ab\n" in terminal.shown


# ── Ctrl-C ──────────────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_cancels_the_turn_and_waits_for_its_end():
    script = {"session/prompt": [[{"long": 3}, {"hear": "session/cancel"}, {"result": {"stopReason": "cancelled"}}]]}
    terminal = Terminal("go", "--", *raw(script))
    terminal.wait_for("xxx")
    terminal.type(CTRL_C)
    assert terminal.finish() == 5
    assert '"method": "session/cancel"' in terminal.shown


def test_ctrl_c_at_a_question_cancels_it_and_restores_the_terminal():
    terminal = Terminal("go", "--", *scripted([steps.AskPermission()]))
    terminal.wait_for("Reject")
    terminal.type(CTRL_C)
    assert terminal.finish() == 5
    assert "outcome: cancelled" in terminal.shown


def test_second_ctrl_c_kills_an_unresponsive_agent(tmp_path):
    deaf = tmp_path / "deaf.py"
    deaf.write_text(
        "import json, os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    if message['method'] == 'session/prompt':\n"
        "        content = {'type': 'text', 'text': f'busy {os.getpid()}.'}\n"
        "        update = {'sessionUpdate': 'agent_message_chunk', 'content': content}\n"
        "        params = {'sessionId': 's', 'update': update}\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'method': 'session/update', 'params': params}), flush=True)\n"
        "        time.sleep(600)\n"
        "    result = {'protocolVersion': 1, 'sessionId': 's'}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)\n"
    )
    terminal = Terminal("go", "--", sys.executable, str(deaf))
    terminal.wait_for(".")
    pid = int(re.search(r"busy (\d+)\.", terminal.shown)[1])
    terminal.type(CTRL_C)
    terminal.wait_for("[cancelling; Ctrl-C again stops the agent at once]")
    terminal.type(CTRL_C)
    assert terminal.finish() == 128 + signal.SIGINT
    assert "Traceback" not in terminal.shown
    wait_until(lambda: not alive(pid))
