"""Starting an agent, and all ways it can fail."""

import json
import logging
import shlex
import sys

import msgspec
import pytest

from dragoman.client import connect
from dragoman.client.errors import (
    ConnectError,
    LoginRequiredError,
    NotAnAgentError,
    StartTimeoutError,
    WrongVersionError,
)
from dragoman.errors import CommandNotFoundError, ProcessDiedError, StartError
from dragoman.protocol import v1
from dragoman.protocol.methods import FS_READ_TEXT_FILE
from dragoman.testing import steps
from dragoman.wire.peer import MAX_WARNINGS
from tests.client.driving import END, agent_of, chunk, session_with
from tests.commands import raw, scripted

LISTEN = "while read -r line; do :; done"
"""A program that reads stdin, writes nothing and exits at the end of stdin."""

LOGIN = {
    "initialize": [
        [
            {
                "result": {
                    "protocolVersion": 1,
                    "authMethods": [
                        {"id": "key", "name": "API key", "description": "put it into the settings"},
                        {"id": "tty", "name": "Browser", "type": "terminal", "args": ["login"]},
                    ],
                }
            }
        ]
    ],
    "session/new": [
        [{"error": {"code": -32000, "message": "Authentication required"}}],
        [{"result": {"sessionId": "s"}}],
    ],
}


async def failure_of(command, kind, **options):
    with pytest.raises(kind) as caught:
        async with connect(command, **options):
            pass
    return caught.value


async def test_agent_info_and_capabilities_are_available():
    async with agent_of(scripted([steps.Say("a")])) as agent:
        assert agent.info.name == "dragoman-scripted-agent"
        assert agent.capabilities.load_session is False
        assert agent.auth_methods == ()


async def test_unnamed_agent_is_called_by_its_command():
    async with agent_of(raw()) as agent:
        assert agent.info is None
        assert agent.name == sys.executable


async def test_client_sends_its_name_and_capabilities():
    told = """
import json, sys
request = json.loads(sys.stdin.readline())
assert request["params"]["clientInfo"]["name"] == "my-ci", request
assert request["params"]["info"]["name"] == "my-ci", request
assert request["params"]["protocolVersion"] == 2
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"protocolVersion": 1}}), flush=True)
sys.stdin.read()
"""
    async with agent_of([sys.executable, "-c", told], name="my-ci") as agent:
        assert agent.capabilities.load_session is False


async def test_agent_inherits_the_environment_and_env(monkeypatch, tmp_path):
    monkeypatch.setenv("OURS", "1")
    told = """
import json, os, sys
request = json.loads(sys.stdin.readline())
info = {"name": os.environ["OURS"] + os.environ["GIVEN"], "version": os.getcwd()}
result = {"protocolVersion": 1, "agentInfo": info}
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
sys.stdin.read()
"""
    async with agent_of([sys.executable, "-c", told], env={"GIVEN": "2"}, cwd=tmp_path) as agent:
        assert (agent.info.name, agent.info.version) == ("12", str(tmp_path))


async def test_on_stderr_receives_the_agents_log():
    log = []
    async with session_with(raw({}, [{"exit": 3, "stderr": "no model"}]), on_stderr=log.append) as session:
        with pytest.raises(ProcessDiedError):
            await session.ask("go")
    assert b"".join(log) == b"no model\n"


class Echo:
    """A custom service of a client."""

    def advertise(self, capabilities):
        return msgspec.structs.replace(capabilities, fs=v1.FileSystemCapabilities(read_text_file=True))

    def install(self, routes, sessions, asking):
        async def read_file(params):
            return v1.ReadTextFileResponse(content=f"{params.path} in {sessions.find(params.session_id).cwd}")

        routes.on_request(FS_READ_TEXT_FILE, read_file)


async def test_custom_service_is_advertised_and_answered():
    read = {"id": 1, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/a"}}
    async with session_with(raw({}, [read, {"hear": "answer"}, END]), cwd="/tmp", files=Echo()) as session:
        assert json.loads(await session.ask("go"))["result"] == {"content": "/a in /tmp"}


async def test_a_missing_command_is_named():
    assert "no-such-agent" in str(await failure_of(["no-such-agent"], CommandNotFoundError))


async def test_command_string_is_split_like_a_shell():
    async with agent_of(shlex.join(scripted([steps.Say("it's me")]))) as agent:
        assert await (await agent.new_session("/")).ask("go") == "it's me"


@pytest.mark.parametrize("command", ["", "  ", [], [""]])
async def test_empty_command_is_refused(command):
    error = await failure_of(command, StartError)
    assert str(error) == "cannot start '': the command is empty. Name the program to start"


async def test_unclosed_quote_is_refused_without_showing_arguments():
    error = await failure_of("agent --key 'secret", StartError)
    assert str(error).startswith("cannot start agent: the command cannot be split into words (No closing quotation)")
    assert "secret" not in str(error)


async def test_unusable_command_says_why(tmp_path):
    assert await failure_of([str(tmp_path)], StartError)


async def test_program_that_prints_text_and_exits_is_not_an_agent():
    error = await failure_of(["sh", "-c", "echo Usage: tool; echo bad flag >&2; exit 2"], NotAnAgentError)
    assert (error.exit_code, error.printed) == (2, ("Usage: tool",))
    *said, printed_heading, printed, step = str(error).splitlines()
    assert said[-1] == "bad flag"
    assert (printed_heading, printed) == ("it printed:", "  Usage: tool")
    assert step.startswith("check that the command starts an ACP agent")


async def test_program_that_only_prints_text_is_not_an_agent():
    error = await failure_of(["sh", "-c", f"echo Welcome!; {LISTEN}"], NotAnAgentError, start_timeout_s=2)
    assert "Welcome!" in str(error)


async def test_endless_output_is_logged_only_a_few_times(caplog):
    caplog.set_level(logging.WARNING)
    await failure_of(["sh", "-c", "yes | head -n 5000"], NotAnAgentError)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == MAX_WARNINGS + 1
    assert warnings[-1].startswith("further malformed messages")


async def test_silent_program_times_out():
    error = await failure_of(["sh", "-c", f"echo loading >&2; {LISTEN}"], StartTimeoutError, start_timeout_s=2)
    assert "start_timeout_s" in str(error)
    assert error.stderr_tail == "loading\n"


async def test_program_that_exits_at_once_is_not_an_agent():
    assert (await failure_of(["false"], NotAnAgentError)).exit_code == 1


async def test_echo_program_is_not_an_agent():
    assert isinstance(await failure_of(["cat"], NotAnAgentError), ConnectError)


async def test_refused_initialize_is_reported():
    refuse = {"initialize": [[{"error": {"code": -32603, "message": "no licence"}}]]}
    assert "no licence" in str(await failure_of(raw(refuse), NotAnAgentError))


@pytest.mark.parametrize(("version", "older"), [(0, "the agent"), (3, "dragoman")])
async def test_another_version_is_refused(version, older):
    error = await failure_of(raw({"initialize": [[{"result": {"protocolVersion": version}}]]}), WrongVersionError)
    assert (error.theirs, error.ours) == (version, 1)
    assert str(error).endswith(f"update {older}")


async def test_version_as_a_string_is_reported():
    error = await failure_of(raw({"initialize": [[{"result": {"protocolVersion": "1"}}]]}), NotAnAgentError)
    assert "protocolVersion" in str(error)


async def test_required_login_lists_the_methods():
    async with agent_of(raw(LOGIN)) as agent:
        with pytest.raises(LoginRequiredError) as caught:
            await agent.new_session("/")
        await agent.authenticate("key")
        assert (await agent.new_session("/")).id == "s"
    words = str(caught.value)
    assert "API key: put it into the settings (await agent.authenticate('key'))" in words
    assert "Browser (in a terminal, run " in words
    assert words.rstrip(")").endswith("login")


async def test_login_required_by_initialize_is_reported():
    refuse = {"initialize": [[{"error": {"code": -32000, "message": "Authentication required"}}]]}
    await failure_of(raw(refuse), LoginRequiredError)


async def test_text_on_stdout_before_the_answer_is_ignored():
    noisy = {"initialize": [["npm WARN deprecated", "", "[]", {"result": {"protocolVersion": 1}}]]}
    async with session_with(raw(noisy, [chunk("a"), "and more", {"result": {"stopReason": "end_turn"}}])) as session:
        assert await session.ask("go") == "a"
