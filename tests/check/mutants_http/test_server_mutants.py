"""For each rule on servers, a server that breaks it alone: that is found, and nothing else."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest
import uvicorn

from dragoman.bridge.front.server.server import Server
from dragoman.check import RULES
from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent
from dragoman.check.rules import REMOTE_AREAS
from tests.check.mutants_http.server import MutantServer

REMOTE = sorted(rule.id.removeprefix("ACP-") for rule in RULES.values() if rule.area in REMOTE_AREAS)
SCENES = frozenset({"exchange", "refusals", "go_on", "frames"})
REFUSALS = {*(f"HTTP-{number:03}" for number in range(6, 15)), "HTTP-020"}


def scene_of(rule):
    if rule.startswith("WS"):
        return "frames"
    return "refusals" if rule in REFUSALS else "go_on" if rule == "HTTP-026" else "exchange"


@asynccontextmanager
async def serving(breach=""):
    """Serve over HTTP/2 and HTTP/1.1, or over HTTP/1.1 alone."""
    app = MutantServer(breach)
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listening.getsockname()[1]}/acp"
    async with asyncio.timeout(50):
        if breach != "HTTP-025":
            async with Server(app, listening):
                yield address
            return
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="websockets-sansio", lifespan="off"))
        running = asyncio.ensure_future(server.serve(sockets=[listening]))
        yield address
        server.should_exit = True
        await app.stop()
        await running


async def check(address, *, scheme="http", **options):
    """Check a server in both versions, and return the verdicts on rules of servers that are no pass."""
    given = {"turns": (ScriptTurn("hello"),), "scenes": SCENES, "timeout_s": 1.0, "turn_timeout_s": 5.0, **options}
    report = await check_agent(AgentOptions(url=f"{scheme}://{address}", **given))
    return {each.key: each for each in report.results if each.id.split("-")[1] in REMOTE_AREAS}


def found(results):
    return {key: each.verdict for key, each in results.items() if each.verdict not in ("pass", "not_exercised")}


@pytest.mark.parametrize("rule", REMOTE)
async def test_a_server_that_breaks_one_rule_is_found_to_break_that_one(rule):
    known = RULES[f"ACP-{rule}"]
    version = known.versions[0]
    async with serving(rule) as address:
        results = await check(address, protocols=(version,), scenes=frozenset({scene_of(rule)}))
    key = known.id if version == 1 else f"{known.id}@{version}"
    assert found(results) == {key: "warn" if known.level == "disputed" else "fail"}, {
        name: each.detail for name, each in results.items() if name in found(results)
    }
    assert results[key].evidence


async def test_a_server_that_keeps_every_rule_raises_no_alarm():
    async with serving() as address:
        results = await check(address)
    assert {key for key, each in results.items() if each.verdict != "pass"} == {"ACP-HTTP-014", "ACP-HTTP-014@2"}
    assert len(results) == 2 * len(REMOTE) - 1  # Last-Event-ID is of version 2


async def test_at_the_url_of_a_websocket_only_websockets_are_judged():
    async with serving() as address:
        results = await check(address, scheme="ws", protocols=(1,))
    assert {key: each.verdict for key, each in results.items()} == {
        f"ACP-WS-00{number}": "pass" for number in range(1, 5)
    }


async def test_the_evidence_has_no_token():
    async with serving("HTTP-007") as address:
        results = await check(address, protocols=(1,), token="a-token-of-ours", scenes=frozenset({"refusals"}))
    assert results["ACP-HTTP-007"].verdict == "fail"
    assert "a-token-of-ours" not in repr(results)
