"""The version of a connection is settled at `initialize` by the version of the other side."""

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from dragoman.client.connect import connect_transport
from dragoman.client.problem import ConnectError
from dragoman.errors import RemoteError, RpcError
from dragoman.protocol.negotiation import AnsweringTransport, VersionPhase
from dragoman.wire import Peer, memory_pair
from tests.agent.connecting import make_agent
from tests.errors import refused

INFO = {"name": "editor", "version": "1"}
V1_ANSWER = {"protocolVersion": 1, "agentInfo": INFO, "agentCapabilities": {"loadSession": True}}
V2_ANSWER = {"protocolVersion": 2, "info": INFO, "capabilities": {"session": {}}}


class Nobody:
    """Receives the messages of an agent and stores them."""

    def __init__(self):
        self.updates = []

    async def request(self, request):
        raise AssertionError(request.method)

    def notification(self, method, params):
        self.updates.append(json.loads(bytes(params)))


@asynccontextmanager
async def agent_of_the_kit(tmp_path):
    """Yield an agent built on the kit, and a peer that sends it any message."""
    near, far = memory_pair()
    serving = asyncio.create_task(make_agent(tmp_path, say_hello).serve(far))
    async with Peer(near, Nobody()) as peer:
        yield peer
    await serving


async def say_hello(turn):
    await turn.say("hello")


async def ask(peer, method, **params):
    return json.loads(bytes(await peer.call(method, params)))


class TestAgent:
    """Responses of an agent built on the kit."""

    async def test_error_uses_the_terms_of_version_2(self, tmp_path):
        async with agent_of_the_kit(tmp_path) as peer:
            error = await refused(ask(peer, "initialize", protocolVersion=2))
            assert (error.code, error.data["path"]) == (-32602, "params.info")
            await ask(peer, "initialize", protocolVersion=2, info=INFO)
            error = await refused(ask(peer, "session/new", cwd=str(tmp_path), mcpServers=[{"name": "x"}]))
            assert (error.code, error.data["path"]) == (-32602, "params.mcpServers[0].type")

    async def test_a_refused_initialize_settles_nothing(self, tmp_path):
        async with agent_of_the_kit(tmp_path) as peer:
            await refused(ask(peer, "initialize", protocolVersion=2))
            assert (await ask(peer, "initialize", protocolVersion=1))["protocolVersion"] == 1

    async def test_initialize_again_keeps_the_version(self, tmp_path):
        async with agent_of_the_kit(tmp_path) as peer:
            for asked in (2, 3):
                answer = await ask(peer, "initialize", protocolVersion=asked, info=INFO)
                assert answer["protocolVersion"] == 2
            error = await refused(ask(peer, "initialize", protocolVersion=1, info=INFO))
            assert (error.code, "already speaks ACP 2" in error.message) == (-32600, True)

    @pytest.mark.parametrize(
        ("method", "instead"),
        [("session/load", "replayFrom"), ("session/set_mode", "set_config_option"), ("authenticate", "auth/login")],
    )
    async def test_methods_missing_in_version_2_name_their_replacement(self, tmp_path, method, instead):
        async with agent_of_the_kit(tmp_path) as peer:
            await ask(peer, "initialize", protocolVersion=2, info=INFO)
            error = await refused(ask(peer, method, sessionId="s"))
            assert error.code == -32601
            assert instead in error.message

    async def test_unknown_methods_and_invalid_notifications_are_harmless(self, tmp_path):
        async with agent_of_the_kit(tmp_path) as peer:
            await ask(peer, "initialize", protocolVersion=2, info=INFO)
            assert (await refused(ask(peer, "unknown"))).code == -32601
            await peer.notify("session/cancel", {"sessionId": 7})
            assert (await ask(peer, "session/list"))["sessions"] == []

    @pytest.mark.parametrize(
        ("line", "code"),
        [
            (b"no JSON", -32700),
            (b'[{"jsonrpc":"2.0"}]', -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"session/list","params":{}}', -32600),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"session/list","params":{}}', -32600),
        ],
    )
    async def test_invalid_version_2_line_is_refused(self, tmp_path, line, code):
        near, far = memory_pair()
        serving = asyncio.create_task(make_agent(tmp_path).serve(far))
        answers = asyncio.Queue()
        async with asyncio.TaskGroup() as tasks:
            near.start(Lines(answers), tasks)
            hello = {"jsonrpc": "2.0", "id": "a", "method": "initialize"}
            near.write(json.dumps({**hello, "params": {"protocolVersion": 2, "info": INFO}}).encode() + b"\n")
            assert (await answers.get())["result"]["protocolVersion"] == 2
            near.write(line + b"\n")
            assert (await answers.get())["error"]["code"] == code
            await near.close()
        await serving


class Lines:
    """A receiver that puts each decoded line into a queue."""

    def __init__(self, queue):
        self._queue = queue

    def lines_received(self, lines):
        for line in lines:
            self._queue.put_nowait(json.loads(line))

    def input_ended(self, *, was_file):
        pass


@asynccontextmanager
async def client_of(*answers):
    """Connect our client to an agent that gives these answers to `initialize`. Yield it with the received requests."""
    near, far = memory_pair()
    asked = []
    left = list(answers)

    class Agent(Nobody):
        async def request(self, request):
            asked.append((bytes(request.id), json.loads(bytes(request.params))))
            given = left.pop(0)
            if isinstance(given, Exception):
                raise given
            return given

    async with Peer(far, Agent()), connect_transport(near) as remote:
        yield remote, asked


class TestClient:
    """How our client handles the responses of agents."""

    async def test_initialize_fits_both_versions(self):
        async with client_of(V1_ANSWER) as (remote, asked):
            [(_, params)] = asked
            assert (params["protocolVersion"], remote.protocol_version) == (2, 1)
            assert params["clientInfo"] == params["info"]
            assert params["clientCapabilities"]["session"]["notices"] == {}
            assert params["capabilities"] == {}
            assert remote.capabilities.load_session

    async def test_version_2_is_accepted(self):
        async with client_of(V2_ANSWER) as (remote, _):
            assert remote.protocol_version == 2
            assert remote.info.name == "editor"
            assert remote.capabilities.load_session

    async def test_refused_version_2_is_followed_by_version_1(self):
        async with client_of(RpcError(-32022, "unsupported"), V1_ANSWER) as (remote, asked):
            assert [(request_id, params["protocolVersion"]) for request_id, params in asked] == [(b"1", 2), (b"0", 1)]
            assert "info" not in asked[1][1]
            assert remote.protocol_version == 1

    async def test_second_refusal_is_raised(self):
        with pytest.raises(ConnectError, match="no licence"):
            async with client_of(RpcError(-32022, "unsupported"), RpcError(-32603, "no licence")):
                pass

    async def test_first_refusal_is_raised_for_a_version_2_agent(self):
        with pytest.raises(ConnectError, match="bad settings"):
            async with client_of(RpcError(-32603, "bad settings"), RpcError(-32022, "unsupported")):
                pass

    async def test_agent_that_echoes_the_version_number_is_version_1(self):
        async with client_of({**V1_ANSWER, "protocolVersion": 2}) as (remote, _):
            assert remote.protocol_version == 1
            assert remote.info.name == "editor"

    async def test_version_2_can_be_turned_off(self, monkeypatch):
        monkeypatch.setenv("DRAGOMAN_ACP_V2", "0")
        async with client_of(V1_ANSWER) as (_, asked):
            assert asked[0][1]["protocolVersion"] == 1
            assert "info" not in asked[0][1]

    async def test_file_methods_are_only_offered_in_version_1(self):
        near, far = memory_pair()
        asked = []

        class Agent(Nobody):
            async def request(self, request):
                asked.append(json.loads(bytes(request.params)))
                return V1_ANSWER

        async with Peer(far, Agent()), connect_transport(near, files="read"):
            assert asked[0]["protocolVersion"] == 1

    async def test_invalid_version_2_result_fails_the_call(self, tmp_path):
        async with client_of(V2_ANSWER, {"session": "none"}) as (remote, _):
            with pytest.raises(RemoteError, match="sessionId"):
                await remote.new_session(tmp_path)


async def test_version_1_connection_passes_lines_unchanged():
    near, far = memory_pair()
    settled = AnsweringTransport(far)
    seen = []

    class Receiver:
        def lines_received(self, lines):
            seen.append(lines)

        def input_ended(self, *, was_file):
            pass

    async with asyncio.TaskGroup() as tasks:
        settled.start(Receiver(), tasks)
        near.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n{"any": "line"}\n')
        await asyncio.sleep(0)
        assert settled.phase is VersionPhase.SAME
        assert seen[-1][-1] == b'{"any": "line"}'
        await settled.close()


def test_version_1_process_does_not_import_version_2(tmp_path):
    program = """
import asyncio, pathlib, sys
from tests.agent.connecting import make_agent, session_with
from tests.protocol.test_negotiation import say_hello
async def main(home):
    async with session_with(make_agent(home, say_hello), home) as session:
        assert (await session.run("hi")).text == "hello"
asyncio.run(main(pathlib.Path(sys.argv[1])))
print([name for name in sys.modules if "protocol.generated.v2" in name or "protocol.translate" in name])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
