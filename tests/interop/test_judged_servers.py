"""The official SDKs' servers only break the known rules for servers."""

import asyncio

import pytest

from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent
from dragoman.check.rules import REMOTE_AREAS
from tests.interop.peers import node_peer, python_peer
from tests.interop.serving import standing

SCENES = frozenset({"exchange", "refusals", "frames"})
NO_CONNECTION_ID = {"ACP-HTTP-003": "warn"}
TYPESCRIPT = {
    **NO_CONNECTION_ID,
    "ACP-HTTP-007": "fail",  # a batch is refused with 400
    "ACP-HTTP-025": "warn",  # Node's server speaks HTTP/1.1
}
PYTHON = {
    **NO_CONNECTION_ID,
    "ACP-HTTP-024": "fail",  # session/load with Acp-Session-Id on a new connection is refused with 404
}


@pytest.mark.parametrize(
    ("command", "known"),
    [
        pytest.param(*peer.values, known, id=peer.id, marks=peer.marks)
        for peer, known in ((node_peer("typescript_server.mjs"), TYPESCRIPT), (python_peer("python_server.py"), PYTHON))
    ],
)
async def test_sdk_servers_only_break_the_known_rules(command, known, tmp_path):
    with standing(command, tmp_path) as server:
        options = AgentOptions(url=server["url"], turns=(ScriptTurn("hello"),), scenes=SCENES, protocols=(1,))
        async with asyncio.timeout(50):
            report = await check_agent(options)
    judged = {each.id: each.verdict for each in report.results if each.id.split("-")[1] in REMOTE_AREAS}
    assert {rule: verdict for rule, verdict in judged.items() if verdict in ("fail", "warn", "error")} == known
    assert {rule for rule, verdict in judged.items() if verdict == "not_exercised"} == {"ACP-HTTP-014"}
