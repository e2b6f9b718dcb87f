"""Peers of different ACP versions through our bridge, as real processes over each transport."""

import asyncio
import re
import sys
from contextlib import asynccontextmanager

import pytest

from dragoman.client import connect_url
from dragoman.client.events import TextChunk
from dragoman.client.policies import allow_all
from dragoman.errors import RpcError
from dragoman.protocol.url import open_url
from dragoman.testing import steps
from dragoman.wire import Peer
from tests.commands import scripted
from tests.interop.bridge import bridge
from tests.interop.serving import served

both = pytest.mark.parametrize("way", ["websocket", "http"])
OURS = [sys.executable, "-m", "dragoman", "agent", "--model", "guide"]
TURN = [steps.Say("a "), steps.AskPermission(), steps.Say("b")]
WORDS = ["a ", "outcome: selected yes", "b"]


class Silent:
    async def request(self, request):
        raise RpcError(-32601, request.method)

    def notification(self, method, params):
        pass


@asynccontextmanager
async def agent_of_version_2(server):
    """Make the bridge request version 2 from its agent, as the first viewer does, and stay connected."""
    transport = await open_url(server["acp"], token=server["token"], transport="websocket")
    async with Peer(transport, Silent()) as peer:
        info = {"name": "first", "version": "1"}
        await peer.call("initialize", {"protocolVersion": 2, "info": info, "capabilities": {}})
        yield


@both
async def test_version_2_client_with_a_version_1_agent(way, tmp_path):
    agent = ["env", "DRAGOMAN_ACP_V2=0", *scripted(TURN)]
    async with (
        served(bridge(*agent)) as server,
        connect_url(server["acp"], token=server["token"], transport=way, policy=allow_all(), protocol_version=2) as two,
        connect_url(server["acp"], token=server["token"], transport=way, protocol_version=1) as one,
    ):
        assert (two.protocol_version, one.protocol_version) == (2, 1)
        session = await two.new_session(tmp_path)
        assert [event.text async for event in session.prompt("go") if isinstance(event, TextChunk)] == WORDS
        for viewer in (one, two):
            loaded = await viewer.load_session(session.id, tmp_path)
            assert "".join(event.text for event in loaded.history if isinstance(event, TextChunk)) == "".join(WORDS)


@both
async def test_version_1_client_uses_a_version_2_agent(way, tmp_path):
    async with (
        served(bridge(*OURS)) as server,
        agent_of_version_2(server),
        connect_url(server["acp"], token=server["token"], transport=way, protocol_version=1) as one,
    ):
        assert one.protocol_version == 1
        session = await one.new_session(tmp_path)
        said = await session.ask("/help")
        assert "/help" in said
        loaded = await one.load_session(session.id, tmp_path)
        assert said in "".join(event.text for event in loaded.history if isinstance(event, TextChunk))


async def check(server, protocol, tmp_path):
    """Check the agent at a URL. Return the exit code and the output."""
    token = tmp_path / "token"
    token.write_text(server["token"])
    options = ("--protocol", protocol, "--url", server["acp"], "--token-file", str(token))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", "check", "agent", *options), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_version_1_checker_passes_with_a_version_2_agent(tmp_path):
    async with served(bridge(*OURS)) as server, agent_of_version_2(server):
        code, words = await check(server, "1", tmp_path)
        assert code == 0, words


async def test_version_2_checker_passes_with_a_version_1_agent(tmp_path):
    async with served(bridge("env", "DRAGOMAN_ACP_V2=0", *OURS)) as server:
        code, words = await check(server, "2", tmp_path)
        assert re.search(r"\d{2,} passed", words), words
        assert code == 0, words
