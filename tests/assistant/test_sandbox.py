"""Commands of our agent in the sandbox: what asks, what is shown, and what happens without a sandbox."""

import asyncio
import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.assistant.tools.run_command import CommandSandbox
from dragoman.sandbox.sandbox import MAX_ACTIVE_FILES
from tests.assistant.running import answer_with, session_in, set_mode
from tests.assistant.test_permission import calls, write_agent_file
from tests.assistant.tools.working import TERMINAL, Terminals, text_of, working
from tests.commands import DRAGOMAN
from tests.sandbox.machine import WITHOUT_BWRAP
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("sandboxed")


def script(*commands):
    """Return a script that runs commands. A pair is a command and its reason to leave the sandbox."""
    lines = []
    for command in commands:
        text, reason = command if isinstance(command, tuple) else (command, None)
        arguments = {"command": text, **({"outside_sandbox": reason} if reason else {})}
        lines.append(f"- - tool: {{name: run_command, arguments: {json.dumps(arguments)}}}\n")
    return "".join([*lines, "- - text: done\n"])


async def set_sandbox(client, session_id, value):
    params = {"sessionId": session_id, "configId": "sandbox", "value": value}
    return await client.connection.call_extension("session/set_config_option", params)


@pytest.mark.parametrize(
    ("mode", "asked", "ran"), [("ask", ["in", "outside"], True), ("code", ["outside"], True), ("plan", [], False)]
)
async def test_mode_and_sandbox_decide_what_asks(mode, asked, ran, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    commands = script("echo hi > made.txt; echo hi > ../beside.txt", ("echo hi > ../outside.txt", "it writes outside"))
    async with session_in(work, commands, decide=lambda _: "allow") as (client, session_id):
        await set_sandbox(client, session_id, "workspace")
        await set_mode(client, session_id, mode)
        await client.prompt(session_id, "go")
        places = [
            "in" if request.tool_call.title.endswith(" (in sandbox)") else "outside" for request in client.permissions
        ]
        assert places == asked
        assert len(calls(client)) == 2
    assert [(work / "made.txt").exists(), (tmp_path / "beside.txt").exists()] == [ran, False]
    assert (tmp_path / "outside.txt").exists() == ran


async def test_leaving_the_sandbox_shows_the_reason(tmp_path):
    async with session_in(tmp_path, script(("true", "needs\u202e the net")), decide=lambda _: "reject") as (client, it):
        await set_sandbox(client, it, "workspace")
        await client.prompt(it, "go")
        [request] = client.permissions
        assert request.tool_call.title == "Run true (outside the sandbox)"
        assert text_of(request.tool_call.content) == (
            "```\ntrue\n```Outside the sandbox, because:```\nneeds\\u202e the net\n```"
        )


async def test_approval_inside_does_not_hold_outside_but_the_reverse_does(tmp_path):
    commands = script("true", "true", ("true", "why"), ("true", "why"), "true")
    async with session_in(tmp_path, commands) as (client, session_id):
        await set_sandbox(client, session_id, "workspace")
        asked = answer_with(client, "allow_always")
        await client.prompt(session_id, "go")
        assert [request.tool_call.title for request in asked] == [
            "Run true (in sandbox)",
            "Run true (outside the sandbox)",
        ]
        names = [next(option.name for option in request.options if option.kind == "allow_always") for request in asked]
        assert names == [
            "Allow exactly this command in the sandbox in this session",
            "Allow exactly this command in this session",
        ]
    async with session_in(tmp_path, script(("false", "why"), "false")) as (client, session_id):
        await set_sandbox(client, session_id, "workspace")
        await set_mode(client, session_id, "code")
        asked = answer_with(client, "reject_always")
        await client.prompt(session_id, "go")
        assert len(asked) == 1
        assert ["permanently rejected" in text_of(call["content"]) for call in calls(client)] == [False, True]


async def test_agent_file_begins_sessions_in_the_sandbox(tmp_path):
    cache = tmp_path / "cache"
    (tmp_path / "work").mkdir()
    write_agent_file(
        tmp_path / "work", f"permissions: {{mode: code}}\nsandbox: {{mode: workspace, writable: [{cache}]}}\n"
    )
    async with session_in(tmp_path / "work", script(f"echo x > {cache}/file; echo x > ../no")) as (client, session_id):
        await client.prompt(session_id, "go")
        assert client.permissions == []
        shown = await set_sandbox(client, session_id, "workspace+network")
        [option] = [each for each in shown["configOptions"] if each["id"] == "sandbox"]
        assert [each["value"] for each in option["options"]] == ["off", "workspace", "workspace+network"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "work"]
    assert (cache / "file").exists()


async def test_failure_and_renamed_files_are_explained_to_model_and_user(tmp_path):
    async with session_in(tmp_path, script("mkdir .vscode; touch .vscode/tasks.json; exit 3")) as (client, session_id):
        await set_sandbox(client, session_id, "workspace")
        await set_mode(client, session_id, "code")
        await client.prompt(session_id, "go")
        [call] = calls(client)
        assert "by themselves: .vscode to blocked-.vscode.new." in text_of(call["content"])
    async with working(tmp_path, sandbox=None) as here:
        assert "outside_sandbox" not in str(here.tools["run_command"].definition)


async def test_sandboxed_command_does_not_run_in_the_clients_terminal(tmp_path):
    terminals = Terminals()
    sandbox = CommandSandbox("workspace", (), pytest.fail)
    options = {"capabilities": TERMINAL, "set_up": terminals.set_up, "sandbox": sandbox}
    async with working(tmp_path, **options) as here:
        outcome = await here.call("run_command", command="touch made; exit 3")
        assert outcome.text.endswith(
            "[exit code 3]\n"
            "[it ran in a sandbox, in which it can change only the session's directories and has no network]"
        )
        assert terminals.calls == []
        await here.call("run_command", command="touch other", outside_sandbox="the user wants to see it")
        assert terminals.calls[0] == "create"
    assert [(tmp_path / name).exists() for name in ("made", "other")] == [True, False]


async def test_directory_that_cannot_be_protected_asks_as_before(tmp_path):
    for number in range(MAX_ACTIVE_FILES + 1):
        (tmp_path / f"{number}.pth").touch()
    async with session_in(tmp_path, script("touch made", "touch more"), decide=lambda _: "reject") as (
        client,
        session_id,
    ):
        await set_sandbox(client, session_id, "workspace")
        await set_mode(client, session_id, "code")
        await client.prompt(session_id, "go")
        assert len(client.permissions) == 2
        [notice] = client.notices()
        assert "protected files, and a sandbox can protect" in notice
    assert not (tmp_path / "made").exists()


def test_without_a_sandbox_commands_ask_and_the_user_is_told_once(tmp_path):
    (tmp_path / "script.yaml").write_text(script("touch made", "touch more"))
    words = ["run", "go", "--sandbox", "workspace", "--mode", "code", "--model", f"script:{tmp_path}/script.yaml"]
    done = subprocess.run(
        [*WITHOUT_BWRAP, *DRAGOMAN, *words, "--policy", "deny"],
        cwd=tmp_path,
        env={**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.count("bwrap is not installed. Install bubblewrap") == 1
    assert "Run touch made (outside the sandbox)" in done.stderr
    assert not (tmp_path / "made").exists()


def test_command_line_sets_the_sandbox(tmp_path):
    (tmp_path / "script.yaml").write_text(script("touch made; touch ../outside"))
    words = ["run", "go", "--sandbox", "workspace", "--mode", "code", "--model", f"script:{tmp_path}/script.yaml"]
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        [*DRAGOMAN, *words, "--policy", "deny"],
        cwd=tmp_path / "work",
        env={**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert [(tmp_path / name).exists() for name in ("work/made", "outside")] == [True, False]


async def test_cancel_kills_everything_in_the_sandbox(tmp_path):
    marker = f"marker-{tmp_path.name}-{os.getpid()}"

    def running():
        """Return the `sleep` processes of the command, which have the marker among their variables."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_sleep = (process / "cmdline").read_bytes().startswith(b"sleep\0")
                found += [process] if is_sleep and marker.encode() in (process / "environ").read_bytes() else []
        return found

    command = f"export MARKER={marker}; setsid sh -c 'trap : TERM; sleep 600' & sleep 600"
    async with working(tmp_path, sandbox=CommandSandbox("workspace", (), pytest.fail)) as here:
        call = asyncio.ensure_future(here.call("run_command", command=command))
        await until(lambda: len(running()) == 2)
        call.cancel()
        await asyncio.wait([call])
        assert running() == []
