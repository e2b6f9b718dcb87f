"""Our client and our bridge over each transport: messages pass unchanged, and `--url` works."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager

import pytest
from msgspec.json import decode, encode

from dragoman.client import connect_url
from dragoman.client.events import TextChunk
from dragoman.client.policies import Decision, allow_all, ask_user
from dragoman.errors import RpcError
from dragoman.protocol.url import open_url
from dragoman.testing import steps
from dragoman.wire import Peer
from tests.interop.bridge import bridge, scripted_bridge
from tests.interop.cut_line import cut_line
from tests.interop.serving import served

ECHO = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        answer = {"result": {"protocolVersion": 1, "x-unknown": None, "agentCapabilities": {"x": [None, 1.5]}}}
    elif message.get("method") == "session/new":
        answer = {"result": {"sessionId": "s", "x-unknown": {"deep": None}}}
    elif message.get("method") == "_x/ask":
        asked = {"jsonrpc": "2.0", "id": "agent-1", "method": "_x/back", "params": message["params"]}
        print(json.dumps(asked), flush=True)
        answer = {"result": {"answered": json.loads(next(sys.stdin))}}
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "method": "_x/seen", "params": message["params"]}), flush=True)
        answer = {"result": message["params"]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""

ODD = {"sessionId": "s", "x-unknown": {"a": None, "é": ["\u2028", 1e300, 0]}, "_meta": None}

both = pytest.mark.parametrize("way", ["websocket", "http"])


class Echoing:
    def __init__(self):
        self.seen = []

    async def request(self, request):
        if request.method != "_x/back":
            raise RpcError(-32601, request.method)
        return {"id": decode(request.id), "params": decode(request.params)}

    def notification(self, method, params):
        self.seen.append((method, decode(params)))


class Raw:
    """Stores received lines unchanged."""

    def __init__(self):
        self.lines = asyncio.Queue()

    def lines_received(self, lines):
        for line in lines:
            self.lines.put_nowait(decode(line))

    def input_ended(self, *, was_file):
        self.lines.put_nowait(None)


@asynccontextmanager
async def raw_end(server, way):
    transport = await open_url(server["acp"], token=server["token"], transport=way)
    receiver = Raw()
    async with asyncio.TaskGroup() as tasks:
        transport.start(receiver, tasks)
        yield transport, receiver.lines
        await transport.close()


@pytest.mark.basic
@both
async def test_unknown_fields_and_methods_pass_both_ways(way):
    async with served(bridge(sys.executable, "-c", ECHO)) as server:
        handler = Echoing()
        transport = await open_url(server["acp"], token=server["token"], transport=way)
        async with Peer(transport, handler) as peer:
            answer = decode(await peer.call("initialize", {"protocolVersion": 1, "x-ours": None}))
            assert (answer["x-unknown"], answer["agentCapabilities"]["x"]) == (None, [None, 1.5])
            opened = decode(await peer.call("session/new", {"cwd": "/", "mcpServers": []}))
            assert opened["x-unknown"] == {"deep": None}
            assert decode(await peer.call("_x/echo", ODD)) == ODD
            answered = decode(await peer.call("_x/ask", ODD))["answered"]
            assert (answered["id"], answered["result"]["params"]) == ("agent-1", ODD)
            assert ("_x/seen", ODD) in handler.seen


@both
async def test_string_ids_are_returned_unchanged(way):
    async with served(bridge(sys.executable, "-c", ECHO)) as server, raw_end(server, way) as (transport, lines):
        for request_id, method, params in [
            ("begin", "initialize", {"protocolVersion": 1}),
            ("a/b é", "session/new", {"cwd": "/", "mcpServers": []}),
            ("1", "_x/echo", ODD),
            (1, "_x/echo", ODD),
        ]:
            message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
            transport.write(encode(message) + b"\n")
            while "method" in (answer := await lines.get()):
                pass
            assert answer["id"] == request_id
            assert "result" in answer


@both
async def test_a_conversation_over_the_bridge(way, tmp_path):
    turn = [steps.Say("a "), steps.AskPermission(), steps.Say("b")]
    async with (
        served(scripted_bridge(turn)) as server,
        connect_url(server["acp"], token=server["token"], transport=way, policy=allow_all()) as agent,
    ):
        session = await agent.new_session(tmp_path)
        texts = [event.text async for event in session.prompt("go") if isinstance(event, TextChunk)]
        assert texts == ["a ", "outcome: selected yes", "b"]
        loaded = await agent.load_session(session.id, tmp_path)
        history = [event.text for event in loaded.history if isinstance(event, TextChunk)]
        assert "".join(history) == "".join(texts)
        assert await loaded.ask("again") == "".join(texts)


async def test_connection_cut_during_a_turn_loses_nothing(tmp_path):
    before = [steps.Say(f"{number} ") for number in range(100)]
    after = [steps.Say(f"{number} ") for number in range(100, 200)]
    async with cut_line() as line:

        async def cut(question):
            line.cut()
            return Decision("allow")

        options = ("--allow-host", f"127.0.0.1:{line.port}")
        async with served(scripted_bridge([*before, steps.AskPermission(), *after], options=options)) as server:
            line.target = int(server["acp"].split(":")[2].split("/")[0])
            url = f"http://127.0.0.1:{line.port}/acp"
            async with connect_url(url, token=server["token"], transport="http", policy=ask_user(cut)) as agent:
                session = await agent.new_session(tmp_path)
                texts = [event.text async for event in session.prompt("go") if isinstance(event, TextChunk)]
                assert line.cuts > 0
                numbers = [str(number) for number in range(200)]
                assert "".join(texts).replace("outcome: selected yes", "").split() == numbers


async def finish(*command, **variables):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", *command),
        env={**os.environ, **variables},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, log = await process.communicate()
    return process.returncode, output.decode(), log.decode()


async def test_run_and_chat_use_a_url(tmp_path):
    async with served(scripted_bridge([steps.Say("hello")])) as server:
        token_file = tmp_path / "token"
        token_file.write_text(f"{server['token']}\n")
        by_file = await finish("run", "hi", "--url", server["acp"], "--token-file", str(token_file))
        assert by_file[:2] == (0, "hello\n"), by_file
        by_variable = await finish("run", "hi", "--url", server["acp"], DRAGOMAN_TOKEN=server["token"])
        assert by_variable[:2] == (0, "hello\n"), by_variable
        wrong = {"DRAGOMAN_TOKEN": "wrong-token", "DRAGOMAN_LOG": "DEBUG"}
        code, _, log = await finish("run", "hi", "--url", server["acp"], **wrong)
        assert code == 1
        assert "HTTP 401" in log
        assert "wrong-token" not in log
        chatted = await finish("chat", "--url", server["acp"], "--token-file", str(token_file))
        assert chatted[0] == 0, chatted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--url", "localhost/acp"), "has no scheme"),
        (("--url", "http://127.0.0.1/acp", "--", "agent"), "use only one of them"),
        (("--url", "http://127.0.0.1/acp", "--token-file", "/nowhere"), "cannot be read"),
        (("--token-file", "/nowhere"), "--token-file needs --url"),
        (("--url", "http://127.0.0.1/acp", "--agent", "x.yaml"), "dragoman's own agent"),
    ],
)
async def test_invalid_url_is_a_usage_error(options, words):
    code, _, log = await finish("run", "hi", *options)
    assert code == 2
    assert words in log
