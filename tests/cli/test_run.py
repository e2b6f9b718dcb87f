import json
import os
import signal
import subprocess
import sys

import pytest

from dragoman.testing import steps
from tests.commands import DRAGOMAN, dragoman, raw, scripted


def dragoman_run(*arguments, **settings):
    return dragoman("run", *arguments, **settings)


def run(*turns, prompt="go", options=(), **settings):
    return dragoman_run(prompt, *options, "--", *scripted(*turns), **settings)


def script_file(path, *replies):
    path.write_text(json.dumps(list(replies)))
    return ["--model", f"script:{path}"]


# ── the answer ──────────────────────────────────────────────────────────────────────────────────────


def test_default_agent_is_our_own():
    done = dragoman_run("hi")
    assert done.returncode == 0
    assert "I am **guide**" in done.stdout
    assert done.stderr == ""


def test_answer_goes_to_stdout_and_ends_with_a_newline():
    done = run([steps.Think("hm"), steps.Say("one "), steps.Say("two")])
    assert (done.stdout, done.stderr, done.returncode) == ("one two\n", "", 0)


def test_answer_streams():
    agent = scripted([steps.Say("first\n"), steps.WaitForCancel()])
    with subprocess.Popen([*DRAGOMAN, "run", "go", "--", *agent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "first\n"
        assert process.poll() is None
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM


def test_dash_reads_the_prompt_from_stdin(tmp_path):
    (tmp_path / "notes.txt").write_text("a line of notes\n")
    done = dragoman_run("-", cwd=tmp_path, input="read notes.txt")
    assert "a line of notes" in done.stdout


def test_session_is_in_the_named_directory(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "notes.txt").write_text("a line of notes\n")
    done = dragoman_run("read notes.txt", "--cwd", "elsewhere", cwd=tmp_path)
    assert "a line of notes" in done.stdout
    again = dragoman_run("read notes.txt", "--cwd", "elsewhere", "--continue", cwd=tmp_path)
    assert again.returncode == 0
    assert dragoman_run("hi", "--continue", cwd=tmp_path).returncode == 2
    assert "--cwd: /missing is not a directory" in dragoman_run("hi", "--cwd", "/missing").stderr


def test_message_after_another_starts_a_new_line():
    updates = [
        steps.Update(
            {"sessionUpdate": "agent_message_chunk", "messageId": name, "content": {"type": "text", "text": name}}
        )
        for name in ("a", "a", "b")
    ]
    assert run(updates).stdout == "aa\nb\n"


def notice(title, **more):
    return steps.Update({"sessionUpdate": "notice", "severity": "info", "title": title, **more})


def test_notice_is_shown_next_to_the_answer():
    done = run([steps.Think("[let me see]"), notice("busy; trying again in 2 s"), steps.Say("here")])
    assert (done.stdout, done.stderr) == ("here\n", "[busy; trying again in 2 s]\n")


def test_notices_with_one_key_are_one_line():
    retries = [notice(f"busy; trying again in {seconds} s", _meta={"dragoman/notice": "r"}) for seconds in (1, 2, 4)]
    done = run([*retries, steps.Say("here")])
    assert (done.stdout, done.stderr) == ("here\n", "[busy; trying again in 1 s]\n")
    done = run([*retries, steps.Say("here")], options=["--format", "json"])
    assert [each["title"] for each in json.loads(done.stdout)["notices"]] == ["busy; trying again in 4 s"]


def test_notice_detail_does_nothing_to_the_terminal():
    done = run([notice("one\x1b[2J", description="two\x1b]0;three\x07\nfour"), steps.Say("here")])
    assert done.stderr == "[one\\x1b[2J]\ntwo\nfour\n"


def test_tool_call_is_printed_once_with_its_last_title():
    call = {"toolCallId": "1", "sessionUpdate": "tool_call_update"}
    done = run(
        [
            steps.Update({**call, "sessionUpdate": "tool_call", "title": "read_file"}),
            steps.Update({**call, "title": "Read notes.txt", "status": "in_progress"}),
            steps.Update({**call, "status": "completed"}),
        ]
    )
    assert done.stderr == "[Read notes.txt]\n"


def test_aside_starts_a_new_line_if_both_outputs_are_the_same():
    command = [*DRAGOMAN, "run", "go", "--", *scripted([steps.Say("so far"), steps.Exit(7, "out of memory")])]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30, check=False)
    assert done.stdout.startswith("so far\ndragoman run: ")


@pytest.mark.parametrize(("form", "unbuffered"), [("text", ""), ("text", "1"), ("json", ""), ("ndjson", "")])
def test_closed_reader_ends_the_run_silently(tmp_path, form, unbuffered):
    model = script_file(tmp_path / "long.yaml", [{"text": "line after line\n", "repeat": 50_000}])
    with subprocess.Popen(
        [*DRAGOMAN, "run", "go", "--format", form, *model],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    ) as process:
        assert len(os.read(process.stdout.fileno(), 1)) == 1
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 128 + signal.SIGPIPE


def test_lone_surrogate_does_not_stop_the_output():
    line = (
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
        '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\\ud83db"}}}}'
    )
    done = dragoman_run("go", "--", *raw({"session/prompt": [[line, {"result": {"stopReason": "end_turn"}}]]}))
    assert done.returncode == 0
    assert done.stdout.startswith("a")
    assert done.stdout.endswith("b\n")


# ── exit codes ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reason", "code"), [("end_turn", 0), ("max_tokens", 3), ("max_turn_requests", 3), ("refusal", 4), ("cancelled", 5)]
)
def test_exit_code_reflects_the_stop_reason(reason, code):
    assert run([steps.Stop(reason)]).returncode == code


def test_dead_agent_is_reported_with_exit_code_and_last_output():
    done = run([steps.Say("so far"), steps.Exit(7, "out of memory")])
    assert done.returncode == 1
    assert done.stdout == "so far\n"
    assert "exited with code 7" in done.stderr
    assert "out of memory" in done.stderr


def test_run_ends_even_if_a_dead_agent_leaves_a_process():
    done = dragoman_run("hi", "--", *raw({}, [{"leave": True}, {"exit": 3, "stderr": "out of memory"}]))
    assert done.returncode == 1
    assert "exited with code 3" in done.stderr
    assert "out of memory" in done.stderr


def test_unknown_stop_reason_is_reported():
    done = run([steps.Stop("bored")])
    assert done.returncode == 1
    assert "stopReason" in done.stderr
    assert "bored" in done.stderr


def test_timeout_cancels_the_turn_and_exits_with_124():
    done = run([steps.Say("so far"), steps.WaitForCancel()], options=["--timeout", "5"])
    assert done.returncode == 124
    assert done.stdout == "so far\n"
    assert done.stderr == "dragoman run: timed out: the turn did not finish within 5 s\n"


def test_silent_agent_times_out():
    done = dragoman_run("hi", "--timeout", "0.5", "--", "sh", "-c", "while read -r line; do :; done")
    assert done.returncode == 124
    assert "within 0.5 s" in done.stderr


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"details": "the disk is full"}, "the disk is full"),
        ({"path": "$.prompt", "problem": "the prompt is empty"}, "the prompt is empty"),
        ({"hint": {"a": 1}, "n": 2}, "hint: a: 1; n: 2"),
        (["x"], '["x"]'),
        ("Internal error", "Internal error"),
        (None, "Internal error"),
    ],
)
def test_error_is_reported_once_in_words(data, words):
    done = run([steps.Fail(-32603, data)])
    assert done.returncode == 1
    assert done.stderr == f"dragoman run: the agent answered with an error: {words}\n"


def test_internal_error_includes_the_end_of_stderr():
    error = {"error": {"code": -32603, "message": "Internal error"}}
    agent = ["sh", "-c", 'echo "KeyError: prompt" >&2; exec "$@"', "sh", *raw({"session/prompt": [[error]]})]
    done = dragoman_run("go", "--", *agent)
    assert done.returncode == 1
    assert done.stderr.endswith(": Internal error\nits stderr ends:\nKeyError: prompt\n")


def test_clear_error_omits_stderr():
    error = {"error": {"code": -32602, "message": "Invalid params", "data": "no such session"}}
    agent = ["sh", "-c", 'echo "started" >&2; exec "$@"', "sh", *raw({"session/prompt": [[error]]})]
    done = dragoman_run("go", "--", *agent)
    assert done.stderr == "dragoman run: the agent answered with an error: no such session\n"


def test_login_is_requested_in_shell_words():
    method = {"id": "key", "name": "A key", "description": "of your account", "type": "terminal", "args": ["--login"]}
    script = {
        "initialize": [[{"result": {"protocolVersion": 1, "authMethods": [method]}}]],
        "session/new": [[{"error": {"code": -32000, "message": "Authentication required", "data": "log in first"}}]],
    }
    done = dragoman_run("go", "--", *raw(script))
    assert done.returncode == 1
    assert "needs a login: log in first\nit offers these methods:\n- A key: of your account; run " in done.stderr
    assert done.stderr.rstrip().endswith(" --login")
    assert "await" not in done.stderr


def test_error_already_in_the_answer_is_not_repeated():
    done = run([steps.Say("The disk is full.\n"), steps.Fail(-32602, "The disk is full.")])
    assert done.stdout == "The disk is full.\n"
    assert done.stderr == "dragoman run: the agent reported a failure\n"


def test_missing_key_of_our_own_agent_is_requested_once(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    done = dragoman_run("hi", "--model", "anthropic:some-model")
    assert done.returncode == 1
    assert (done.stdout + done.stderr).count("ANTHROPIC_API_KEY") == 1
    assert "Anthropic needs a key for anthropic:some-model" in done.stderr
    assert done.stdout == ""


def test_program_that_exits_at_once_is_shown_with_its_output():
    done = dragoman_run("hi", "--", "sh", "-c", "echo usage; echo bad flag >&2; exit 3")
    assert done.stderr == (
        "dragoman run: bad flag\n"
        "sh exited with code 3 before it answered; fix that and start it again. If it is not an ACP agent with these "
        "arguments, it may need a flag, such as --acp or acp\n"
        "it printed:\nusage\n"
    )


NODE_CRASH = """node:internal/modules/cjs/loader:1148
  throw err;
  ^

Error: Cannot find module '/opt/agent.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1145:15) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.11.0"""

BAD_FLAG = """error: unexpected argument '--acp' found

Usage: agent [OPTIONS]

For more information, try '--help'."""

BAD_FILE = "Reading the settings\nError: cannot load config.toml\n\nCaused by:\n    invalid key at line 3"

PANIC = "thread 'main' panicked at src/main.rs:3:5:\nno field `x`\nnote: run with `RUST_BACKTRACE=1`\n  ^~~"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ([sys.executable, "-c", "import no_such_module"], "ModuleNotFoundError: No module named 'no_such_module'"),
        (["sh", "-c", 'echo "$0" >&2; exit 1', NODE_CRASH], "Error: Cannot find module '/opt/agent.js'"),
        (["sh", "-c", 'echo "$0" >&2; exit 2', BAD_FLAG], "error: unexpected argument '--acp' found"),
        (["sh", "-c", 'echo "$0" >&2; exit 1', BAD_FILE], "Error: cannot load config.toml"),
        (["sh", "-c", 'echo "$0" >&2; exit 101', PANIC], "thread 'main' panicked at src/main.rs:3:5: no field `x`"),
        (["sh", "-c", "printf '~~~\\n/bin/x: cannot open\\n' >&2; exit 2"], "/bin/x: cannot open"),
        (["sh", "-c", "printf 'starting\\nno disk\\n\\n' >&2; kill -9 $$"], "no disk"),
    ],
    ids=["python", "node", "flag", "file", "panic", "path", "signal"],
)
def test_reason_of_a_failed_start_is_the_headline(command, reason):
    done = dragoman_run("hi", "--", *command)
    headline, step, *_ = done.stderr.splitlines()
    assert headline == f"dragoman run: {reason}"
    assert "before it answered; fix that and start it again" in step
    assert "its stderr ends:" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-agent"], "no such command"),
        (["sh", "-c", "echo not an agent; exit 3"], "exited with code 3"),
        (["true"], "true is not an ACP agent"),
        (["cat"], "cat is not an ACP agent"),
    ],
)
def test_program_that_is_not_an_agent_is_reported(command, words):
    done = dragoman_run("hi", "--", *command)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_our_own_agents_error_is_shown_unchanged():
    done = dragoman_run("hi", "--model", "nonsense")
    assert done.returncode == 2
    assert done.stderr.startswith("dragoman run: there is no model 'nonsense'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "PROMPT"),
        (["hi", "--"], "no command after --"),
        (["hi", "there"], "there"),
        ([" "], "the prompt is empty"),
        (["-"], "stdin was empty; expected a prompt"),
        (["hi", "--file", "/no/such/file"], "/no/such/file"),
        (["hi", "--timeout", "0"], "number of seconds"),
        (["hi", "--option", "effort"], "--option: expected NAME=VALUE"),
        (["hi", "--option", "=high"], "--option: expected NAME=VALUE"),
        (["hi", "--agent", "a.yaml", "--", "cat"], "--agent"),
        (["hi", "--session", "a", "--continue"], "--continue"),
    ],
)
def test_invalid_command_line_is_a_usage_error(arguments, words):
    done = dragoman_run(*arguments, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "usage: dragoman run" in done.stderr
    assert words in done.stderr
