"""Commands that the client runs for an agent."""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import msgspec
import pytest
from msgspec import Raw

from dragoman.client.events import PermissionRequested
from dragoman.client.permission.action import RunAction, WriteAction, find_action
from dragoman.client.permission.policy import (
    PermissionQuestion,
    allow_all,
    allow_reads,
    ask_user,
    choose_outcome,
    deny_all,
    rules,
)
from dragoman.client.services import terminals
from dragoman.client.services.files import FileService, install_files
from dragoman.client.services.terminals import TerminalService, install_terminals
from dragoman.client.sessions.tool_call import merge
from dragoman.errors import ErrorCode, RpcError
from dragoman.files import Boundary
from dragoman.protocol import v1
from dragoman.protocol.connection import Routes
from dragoman.protocol.methods import (
    INITIALIZE,
    SESSION_NEW,
    SESSION_PROMPT,
    SESSION_REQUEST_PERMISSION,
    SESSION_UPDATE,
)
from dragoman.wire import IncomingRequest
from tests.client.driving import END, open_connection, read, session_with, text
from tests.client.policies import Asker, only, request_of, soon
from tests.commands import raw
from tests.errors import refused_with
from tests.proc.processes import TREE, TREE_SIZE, announced, open_descriptors, wait_until_gone
from tests.waiting import until


class Client:
    """Calls the handlers directly, as the routes do."""

    def __init__(self, service, asker):
        self.service = service
        self.asker = asker

    async def create(self, command, *args, session_id="s", **more):
        params = v1.CreateTerminalRequest(session_id=session_id, command=command, args=list(args), **more)
        return (await self.service.create(params, request_of(params))).terminal_id

    async def shell(self, text, **more):
        return await self.create("/bin/sh", "-c", text, **more)

    async def output(self, terminal_id, session_id="s"):
        params = v1.TerminalOutputRequest(session_id=session_id, terminal_id=terminal_id)
        return await self.service.output(params)

    async def wait(self, terminal_id, session_id="s"):
        params = v1.WaitForTerminalExitRequest(session_id=session_id, terminal_id=terminal_id)
        return await self.service.wait_for_exit(params)

    async def kill(self, terminal_id, session_id="s"):
        params = v1.KillTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        return await self.service.kill(params)

    async def release(self, terminal_id, session_id="s"):
        params = v1.ReleaseTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        return await self.service.release(params)

    async def run(self, text, **more):
        """Run a shell text to its end and return its output, and whether it was cut."""
        terminal_id = await self.shell(text, **more)
        await self.wait(terminal_id)
        written = await self.output(terminal_id)
        await self.release(terminal_id)
        return written.output, written.truncated


@asynccontextmanager
async def serving(*roots, policy=None, boundary_of=None):
    asker = Asker(policy or allow_all())
    boundary = Boundary([str(root) for root in roots])
    service = TerminalService(boundary_of or only("s", boundary), asker)
    async with soon():
        try:
            yield Client(service, asker)
        finally:
            await service.close()


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return root


@pytest.fixture
async def client(root):
    async with serving(root) as client:
        yield client


async def test_command_runs_with_merged_output(client):
    terminal_id = await client.create("/bin/sh", "-c", 'echo "$1"; echo err >&2; exit 3', "sh", "a  b")
    ended = await client.wait(terminal_id)
    assert (ended.exit_code, ended.signal) == (3, None)
    written = await client.output(terminal_id)
    assert written.output == "a  b\nerr\n"
    assert not written.truncated
    assert written.exit_status == v1.TerminalExitStatus(exit_code=3)


async def test_arguments_are_not_interpreted_by_a_shell(client):
    terminal_id = await client.create("echo", "$(id); *", "> x")
    await client.wait(terminal_id)
    assert (await client.output(terminal_id)).output == "$(id); * > x\n"


async def test_output_is_available_while_the_command_runs(client, root):
    os.mkfifo(root / "gate")
    terminal_id = await client.shell("echo begun; touch begun; read line < gate; echo ended")
    await until((root / "begun").exists)
    while not (written := await client.output(terminal_id)).output:
        await asyncio.sleep(0)
    assert written.output == "begun\n"
    assert written.exit_status is None
    await client.kill(terminal_id)


async def test_a_command_has_no_input(client):
    assert await client.run("cat; echo done") == ("done\n", False)


async def test_whole_shell_line_is_accepted(client):
    terminal_id = await client.create("echo a && echo b")
    await client.wait(terminal_id)
    assert (await client.output(terminal_id)).output == "a\nb\n"
    assert client.asker.questions[0].action.command == "echo a && echo b"


async def test_missing_command_is_refused_with_a_reason(client):
    assert "no command 'no-such-thing'" in await refused_with(ErrorCode.INVALID_PARAMS, client.create("no-such-thing"))
    await refused_with(ErrorCode.INVALID_PARAMS, client.create("no-such-thing", "x"))
    await refused_with(ErrorCode.INVALID_PARAMS, client.create(""))
    assert not client.asker.questions


async def test_invalid_arguments_are_refused_not_dropped(client):
    raw = Raw(msgspec.json.encode({"sessionId": "s", "command": "rm", "args": ["-i", 5, "x"]}))
    params = v1.CreateTerminalRequest(session_id="s", command="rm", args=["-i", "x"])
    await refused_with(
        ErrorCode.INVALID_PARAMS, client.service.create(params, IncomingRequest("terminal/create", raw, b"1"))
    )
    assert not client.asker.questions


# ── directory and environment ───────────────────────────────────────────────────────────────────


async def test_command_runs_in_the_cwd_or_the_named_directory(client, root):
    assert await client.run("pwd") == (f"{root}\n", False)
    assert await client.run("pwd", cwd=str(root / "sub")) == (f"{root}/sub\n", False)


@pytest.mark.parametrize("cwd", ["/", "/proc/self/cwd", "{root}/../outside", "{root}/out", "{root}/proc"])
async def test_directory_outside_is_refused(client, root, cwd, monkeypatch):
    (root / "out").symlink_to(root.parent / "outside")
    (root / "proc").symlink_to("/proc/self/cwd")
    monkeypatch.chdir(root)
    assert "outside" in await refused_with(ErrorCode.INVALID_PARAMS, client.shell("touch x", cwd=cwd.format(root=root)))
    assert not client.asker.questions


async def test_invalid_directory_is_refused(client, root):
    (root / "file").write_text("")
    await refused_with(ErrorCode.RESOURCE_NOT_FOUND, client.shell("pwd", cwd=str(root / "gone")))
    await refused_with(ErrorCode.RESOURCE_NOT_FOUND, client.shell("pwd", cwd=str(root / "file")))
    assert "not absolute" in await refused_with(ErrorCode.INVALID_PARAMS, client.shell("pwd", cwd="sub"))


async def test_variables_extend_the_environment_without_secrets(client, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("ORDINARY", "seen")
    env = [v1.EnvVariable(name="GIVEN", value="a b"), v1.EnvVariable(name="ORDINARY2", value="")]
    assert await client.run('echo "$SOME_API_KEY|$ORDINARY|$GIVEN"', env=env) == ("|seen|a b\n", False)


# ── limits of the output ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("12345", 5, ("12345", False)),
        ("123456", 5, ("23456", True)),
        ("ääää", 8, ("ääää", False)),
        ("ääää", 7, ("äää", True)),
        ("ääää", 6, ("äää", True)),
        ("a€€", 6, ("€€", True)),
        ("a€€", 5, ("€", True)),
        ("😀😀", 7, ("😀", True)),
        ("😀", 3, ("", True)),
        ("x", 0, ("", True)),
        ("", 0, ("", False)),
    ],
)
async def test_long_output_is_cut_at_a_character_boundary(client, text, limit, expected):
    assert await client.run(f"printf %s '{text}'", output_byte_limit=limit) == expected


async def test_invalid_utf_8_stays_within_the_limit(client):
    output, truncated = await client.run(r"printf '\377\377\377\377'", output_byte_limit=7)
    assert (output, truncated) == ("\N{REPLACEMENT CHARACTER}" * 2, True)


async def test_partial_character_is_not_returned(client, root):
    os.mkfifo(root / "gate")
    terminal_id = await client.shell(r"printf 'a\303'; touch begun; read line < gate; printf '\244'")
    await until((root / "begun").exists)
    while not (written := await client.output(terminal_id)).output:
        await asyncio.sleep(0)
    assert written.output == "a"
    (root / "gate").write_text("\n")
    await client.wait(terminal_id)
    assert (await client.output(terminal_id)).output == "aä"


async def test_flood_is_cut_to_the_default_limit(client, monkeypatch):
    monkeypatch.setattr(terminals, "DEFAULT_OUTPUT_BYTES", 1000)
    written = "12345678\n" * 500_000
    assert await client.run("yes 12345678 | head -n 500000") == (written[-1000:], True)


async def test_requested_limit_is_capped(client, monkeypatch):
    monkeypatch.setattr(terminals, "MAX_OUTPUT_BYTES", 10)
    assert await client.run("printf 123456789012", output_byte_limit=1 << 60) == ("3456789012", True)


# ── ending ──────────────────────────────────────────────────────────────────────────────────────


async def test_killed_command_keeps_output_and_signal(client, root):
    terminal_id = await client.shell("echo begun; touch begun; exec sleep 1000")
    waiting = asyncio.create_task(client.wait(terminal_id))
    await until((root / "begun").exists)
    await client.kill(terminal_id)
    ended = await waiting
    assert (ended.exit_code, ended.signal) == (None, "SIGTERM")
    written = await client.output(terminal_id)
    assert written.output == "begun\n"
    assert written.exit_status.signal == "SIGTERM"
    await client.kill(terminal_id)
    assert (await client.wait(terminal_id)).signal == "SIGTERM"


async def test_command_that_ignores_sigterm_is_killed(client, root):
    terminal_id = await client.shell("trap '' TERM; touch begun; while :; do sleep 1000; done")
    await until((root / "begun").exists)
    await client.kill(terminal_id)
    assert (await client.wait(terminal_id)).signal == "SIGKILL"


async def test_released_terminal_is_unknown(client):
    terminal_id = await client.shell("exec sleep 1000")
    waiting = asyncio.create_task(client.wait(terminal_id))
    await asyncio.sleep(0)
    await client.release(terminal_id)
    assert (await waiting).signal == "SIGTERM"
    for call in (client.output, client.wait, client.kill, client.release):
        assert "released" in await refused_with(ErrorCode.RESOURCE_NOT_FOUND, call(terminal_id))


@pytest.mark.parametrize("ending", ["release", "kill", "end_session", "close"])
async def test_no_process_of_a_command_survives(client, root, ending):
    terminal_id = await client.create(*TREE, str(root / "pids"))
    pids = await announced(root / "pids", TREE_SIZE)
    match ending:
        case "release" | "kill":
            await getattr(client, ending)(terminal_id)
        case "end_session":
            await client.service.end_session("s")
        case _:
            await client.service.close()
    wait_until_gone(pids)


async def test_background_processes_end_with_the_terminal(client, root):
    terminal_id = await client.shell("sleep 1000 & echo $! > pid")
    assert (await client.wait(terminal_id)).exit_code == 0
    pid = int((root / "pid").read_text())
    assert os.kill(pid, 0) is None
    await client.release(terminal_id)
    wait_until_gone([pid])


async def test_ended_session_only_stops_its_terminals(root):
    boundary = Boundary([str(root)])
    async with serving(root, boundary_of=lambda session_id: boundary) as client:
        one = await client.shell("exec sleep 1000", session_id="one")
        two = await client.shell("exec sleep 1000", session_id="two")
        await refused_with(ErrorCode.RESOURCE_NOT_FOUND, client.kill(two, session_id="one"))
        await client.service.end_session("one")
        await refused_with(ErrorCode.RESOURCE_NOT_FOUND, client.output(one, session_id="one"))
        assert (await client.output(two, session_id="two")).exit_status is None


async def test_terminal_is_released_if_its_session_closes_meanwhile(root):
    boundaries = {"s": Boundary([str(root)])}

    def boundary_of(session_id):
        if session_id not in boundaries:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"problem": "no such session is open"})
        return boundaries[session_id]

    def close_meanwhile(question):
        boundaries.clear()
        return True

    async with serving(root, policy=ask_user(close_meanwhile), boundary_of=boundary_of) as client:
        await refused_with(ErrorCode.RESOURCE_NOT_FOUND, client.create(sys.executable, "-c", "input()"))


async def test_no_command_starts_after_closing(client):
    await client.service.close()
    await refused_with(ErrorCode.INVALID_REQUEST, client.shell("echo"))


async def test_terminals_that_are_not_released_are_limited(client, monkeypatch):
    monkeypatch.setattr(terminals, "MAX_TERMINALS", 2)
    first = await client.shell("true")
    await client.shell("true")
    assert "release some" in await refused_with(ErrorCode.INVALID_REQUEST, client.shell("true"))
    await client.release(first)
    await client.shell("true")


async def test_no_descriptor_is_left_open(root):
    async with serving(root) as client:
        await client.run("echo")
        before = open_descriptors()
        for _ in range(5):
            await client.run("echo")
        await until(lambda: open_descriptors() <= before)  # a descriptor of the first run may still have been open then


# ── the policy ──────────────────────────────────────────────────────────────────────────────────


async def test_policy_is_asked_about_the_command(client, root):
    await client.run("rm -rf x", cwd=str(root / "sub"), env=[v1.EnvVariable(name="A", value="hidden")])
    (question,) = client.asker.questions
    assert question.action == RunAction("rm -rf x", str(root / "sub"), ("A",))
    assert "hidden" not in repr(question)


@pytest.mark.parametrize("policy", [deny_all(), allow_reads(), rules(["deny:run:touch *", "allow:any"])])
async def test_denied_command_does_not_run(root, policy):
    async with serving(root, policy=policy) as client:
        problem = await refused_with(ErrorCode.INVALID_REQUEST, client.shell("true; touch x"))
        assert "not allowed" in problem
    assert not (root / "x").exists()


async def test_command_with_a_changed_path_variable_is_not_allowed(root):
    (root / "git").write_text("#!/bin/sh\ntouch x\n")
    (root / "git").chmod(0o755)
    async with serving(root, policy=rules(["allow:run:git *"])) as client:
        env = [v1.EnvVariable(name="PATH", value=f"{root}:/usr/bin:/bin")]
        await refused_with(ErrorCode.INVALID_REQUEST, client.create("git", "status", env=env))
    assert not (root / "x").exists()


# ── with our own agent ──────────────────────────────────────────────────────────────────────────

CAT = "cat notes.md && echo ended"
SCRIPT = f"""
- - tool: {{name: write_file, arguments: {{path: notes.md, content: "written\\n"}}}}
- - tool: {{name: run_command, arguments: {{command: "{CAT}"}}}}
- - tool: {{name: run_command, arguments: {{command: touch denied}}}}
- - text: done
"""


async def test_our_agent_works_with_client_services_under_rules(root, tmp_path):
    (tmp_path / "script.yaml").write_text(SCRIPT)
    asked = []
    given = ["allow:write:*.md", "ask:run:cat *", "ask:run:echo *"]
    policy = rules(given, ask=lambda question: asked.append(question.action) or True)
    boundary = Boundary([str(root)])
    asker = Asker(policy)
    routes, calls, answers = Routes("client"), {}, []

    def receive(notification):
        update = notification.update
        if isinstance(update, v1.ToolCall | v1.ToolCallProgress):
            calls[update.tool_call_id] = merge(calls.get(update.tool_call_id), update)

    async def permit(params):
        call = merge(calls.get(params.tool_call.tool_call_id), params.tool_call)
        action = find_action(call, [str(root)])
        decision = await policy.decide(
            PermissionQuestion(params.session_id, call, tuple(params.options), str(root), action)
        )
        answers.append((action, decision.verdict))
        return v1.RequestPermissionResponse(outcome=choose_outcome(decision, params.options))

    service = TerminalService(lambda session_id: boundary, asker)
    install_files(routes, FileService(lambda session_id: boundary, asker), write=True)
    install_terminals(routes, service)
    routes.on_notification(SESSION_UPDATE, receive)
    routes.on_request(SESSION_REQUEST_PERMISSION, permit)
    command = [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{tmp_path / 'script.yaml'}"]
    fs = v1.FileSystemCapabilities(read_text_file=True, write_text_file=True)
    can = v1.ClientCapabilities(fs=fs, terminal=True)
    async with soon(), open_connection(command, routes) as connection:
        await connection.call(INITIALIZE, v1.InitializeRequest(protocol_version=1, client_capabilities=can))
        new = await connection.call(SESSION_NEW, v1.NewSessionRequest(cwd=str(root), mcp_servers=[]))
        prompt = v1.PromptRequest(session_id=new.session_id, prompt=[v1.TextContent(text="go")])
        ended = await connection.call(SESSION_PROMPT, prompt)
    await service.close()
    assert ended.stop_reason == "end_turn"
    assert (root / "notes.md").read_text() == "written\n"
    assert [call.status for call in calls.values()] == ["completed", "completed", "failed"]
    assert "written" in str(list(calls.values())[1].content)
    assert answers == [
        (WriteAction(str(root / "notes.md"), str(root)), "allow"),
        (RunAction(CAT), "allow"),
        (RunAction("touch denied"), "deny"),
    ]
    assert [type(question.action) for question in asker.questions] == [WriteAction, RunAction]
    assert asked == [RunAction(CAT)]  # once, although the agent asked first and then ran it through the client
    assert not (root / "denied").exists()


# ── over the wire ───────────────────────────────────────────────────────────────────────────────


def leaking(command):
    """An agent that starts a terminal and never releases it."""
    params = {"sessionId": "s", "command": command[0], "args": command[1:]}
    create = {"id": 5, "method": "terminal/create", "params": params}
    return raw({}, [create, {"hear": "answer"}, END], capabilities={"sessionCapabilities": {"close": {}}})


@pytest.mark.parametrize("ending", ["session", "connection"])
async def test_unreleased_terminal_ends_with_session_or_connection(root, ending):
    command = leaking([*TREE, str(root / "pids")])
    async with session_with(command, root, policy=allow_all(), terminals=True) as session:
        assert "terminalId" in text(await read(session.prompt("go")))
        pids = await announced(root / "pids", TREE_SIZE)
        if ending == "session":
            await session.close()
            wait_until_gone(pids)
    wait_until_gone(pids)


async def test_denied_command_is_an_error_with_its_reason(root):
    async with session_with(leaking(["/bin/sh", "-c", "touch x"]), root, terminals=True) as session:
        events = await read(session.prompt("go"))
    error = json.loads(text(events))["error"]
    assert error["code"] == ErrorCode.INVALID_REQUEST
    assert "the policy denies everything" in error["data"]["problem"]
    assert [event.question.action for event in events if isinstance(event, PermissionRequested)] == [
        RunAction("touch x", str(root))
    ]
    assert not (root / "x").exists()


async def test_unadvertised_terminals_are_method_not_found(root):
    async with session_with(leaking(["true"]), root, policy=allow_all()) as session:
        events = await read(session.prompt("go"))
    assert json.loads(text(events))["error"]["code"] == ErrorCode.METHOD_NOT_FOUND
