"""Starting an agent: what it is told, and every way it can fail."""

import json
import logging
import shlex
import sys

import msgspec
import pytest

from dragoman.client import ConnectFailed, NeedsLogin, NotAnAgent, StartTimeout, WrongVersion, connect
from dragoman.errors import CommandNotFound, ProcessDied, StartError
from dragoman.protocol import v1
from dragoman.protocol.methods import FS_READ_TEXT_FILE
from dragoman.testing import steps
from dragoman.wire.peer import MAX_WARNINGS
from tests.client.driving import END, agent_of, chunk, session_with
from tests.commands import raw, scripted

LISTEN = "while read -r line; do :; done"
"""Takes whatever is said to it, says nothing, and ends with its stdin."""

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


async def test_an_agent_says_who_it_is_and_what_it_can_do():
    async with agent_of(scripted([steps.Say("a")])) as agent:
        assert agent.info.name == "dragoman-scripted-agent"
        assert agent.capabilities.load_session is False
        assert agent.auth_methods == ()


async def test_an_agent_without_a_name_is_called_by_its_command():
    async with agent_of(raw()) as agent:
        assert agent.info is None
        assert agent.name == sys.executable


async def test_the_agent_is_told_who_we_are():
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


async def test_the_agent_gets_our_environment_and_what_was_given(monkeypatch, tmp_path):
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


async def test_the_log_of_the_agent_can_be_watched():
    log = []
    async with session_with(raw({}, [{"exit": 3, "stderr": "no model"}]), on_stderr=log.append) as session:
        with pytest.raises(ProcessDied):
            await session.ask("go")
    assert b"".join(log) == b"no model\n"


class Echo:
    """Something that a client does for its agent."""

    def advertise(self, capabilities):
        return msgspec.structs.replace(capabilities, fs=v1.FileSystemCapabilities(read_text_file=True))

    def install(self, routes, sessions, asking):
        async def read_file(params, request):
            return v1.ReadTextFileResponse(content=f"{params.path} in {sessions.find(params.session_id).cwd}")

        routes.on_request(FS_READ_TEXT_FILE, read_file)


async def test_what_a_client_provides_is_advertised_and_answered():
    read = {"id": 1, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/a"}}
    async with session_with(raw({}, [read, {"hear": "answer"}, END]), cwd="/tmp", files=Echo()) as session:
        assert json.loads(await session.ask("go"))["result"] == {"content": "/a in /tmp"}


async def test_a_missing_command_is_named():
    assert "no-such-agent" in str(await failure_of(["no-such-agent"], CommandNotFound))


async def test_a_command_may_be_a_string_that_is_split_as_a_shell_does():
    async with agent_of(shlex.join(scripted([steps.Say("it's me")]))) as agent:
        assert await (await agent.new_session("/")).ask("go") == "it's me"


@pytest.mark.parametrize("command", ["", "  ", [], [""]])
async def test_a_command_without_a_word_is_refused_in_words(command):
    error = await failure_of(command, StartError)
    assert str(error) == "cannot start '': the command is empty; name the program to start"


async def test_a_string_whose_quote_is_open_is_refused_without_its_arguments():
    error = await failure_of("agent --key 'secret", StartError)
    assert str(error).startswith("cannot start agent: the command cannot be split into words (No closing quotation)")
    assert "secret" not in str(error)


async def test_a_command_that_cannot_be_run_says_why(tmp_path):
    assert await failure_of([str(tmp_path)], StartError)


async def test_a_program_that_prints_something_else_and_ends_is_no_agent():
    error = await failure_of(["sh", "-c", "echo Usage: tool; echo bad flag >&2; exit 2"], NotAnAgent)
    assert (error.exit_code, error.printed) == (2, ("Usage: tool",))
    *said, printed_heading, printed, step = str(error).splitlines()
    assert said[-1] == "bad flag"
    assert (printed_heading, printed) == ("it printed:", "  Usage: tool")
    assert step.startswith("see that the command starts an ACP agent")


async def test_a_program_that_only_chats_is_no_agent():
    error = await failure_of(["sh", "-c", f"echo Welcome!; {LISTEN}"], NotAnAgent, start_timeout_s=2)
    assert "Welcome!" in str(error)


async def test_a_program_that_prints_without_end_is_warned_of_a_few_times(caplog):
    caplog.set_level(logging.WARNING)
    await failure_of(["sh", "-c", "yes | head -n 5000"], NotAnAgent)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == MAX_WARNINGS + 1
    assert warnings[-1].startswith("more malformed messages follow")


async def test_a_program_that_says_nothing_is_given_up():
    error = await failure_of(["sh", "-c", f"echo loading >&2; {LISTEN}"], StartTimeout, start_timeout_s=2)
    assert "start_timeout_s" in str(error)
    assert error.stderr_tail == "loading\n"


async def test_a_program_that_ends_at_once_is_no_agent():
    assert (await failure_of(["false"], NotAnAgent)).exit_code == 1


async def test_an_echo_is_no_agent():
    assert isinstance(await failure_of(["cat"], NotAnAgent), ConnectFailed)


async def test_a_refused_initialize_is_told():
    refuse = {"initialize": [[{"error": {"code": -32603, "message": "no licence"}}]]}
    assert "no licence" in str(await failure_of(raw(refuse), NotAnAgent))


@pytest.mark.parametrize(("version", "older"), [(0, "the agent"), (3, "dragoman")])
async def test_another_version_is_refused(version, older):
    error = await failure_of(raw({"initialize": [[{"result": {"protocolVersion": version}}]]}), WrongVersion)
    assert (error.theirs, error.ours) == (version, 1)
    assert str(error).endswith(f"update {older}")


async def test_a_version_that_is_a_string_is_told():
    error = await failure_of(raw({"initialize": [[{"result": {"protocolVersion": "1"}}]]}), NotAnAgent)
    assert "protocolVersion" in str(error)


async def test_a_login_that_is_needed_is_told_with_the_ways_to_do_it():
    async with agent_of(raw(LOGIN)) as agent:
        with pytest.raises(NeedsLogin) as caught:
            await agent.new_session("/")
        await agent.authenticate("key")
        assert (await agent.new_session("/")).id == "s"
    words = str(caught.value)
    assert "API key: put it into the settings (await agent.authenticate('key'))" in words
    assert "Browser (in a terminal, run " in words
    assert words.rstrip(")").endswith("login")


async def test_a_login_that_is_needed_before_anything_is_told():
    refuse = {"initialize": [[{"error": {"code": -32000, "message": "Authentication required"}}]]}
    await failure_of(raw(refuse), NeedsLogin)


async def test_words_on_stdout_before_the_answer_do_no_harm():
    noisy = {"initialize": [["npm WARN deprecated", "", "[]", {"result": {"protocolVersion": 1}}]]}
    async with session_with(raw(noisy, [chunk("a"), "and more", {"result": {"stopReason": "end_turn"}}])) as session:
        assert await session.ask("go") == "a"
