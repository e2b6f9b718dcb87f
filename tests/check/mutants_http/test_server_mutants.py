"""For each rule for servers, a server breaks only this rule, and the checker finds only that."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest
import uvicorn

from dragoman.bridge.front.server.server import Server
from dragoman.check import RULES
from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent
from dragoman.check.driver.scenes import connection, http, websocket
from dragoman.check.rules import REMOTE_AREAS
from tests.check.mutants_http.server import MutantServer

REMOTE = sorted(rule.id.removeprefix("ACP-") for rule in RULES.values() if rule.area in REMOTE_AREAS)
SCENES = frozenset({"exchange", "refusals", "resume_stream", "frames"})
REFUSALS = {*(f"HTTP-{number:03}" for number in range(6, 15)), "HTTP-020"}


ANSWER_S = 3.0
"""Time for an answer. With 20 other busy processes, one second is too short."""


def scene_of(rule):
    if rule.startswith("WS"):
        return "frames"
    return "refusals" if rule in REFUSALS else "resume_stream" if rule == "HTTP-026" else "exchange"


@asynccontextmanager
async def serving(breach=""):
    """Serve over HTTP/2 and HTTP/1.1, or only over HTTP/1.1."""
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
    """Check a server in both versions. Return the verdicts on server rules that did not pass."""
    given = {"turns": (ScriptTurn("hello"),), "scenes": SCENES, "timeout_s": ANSWER_S, "turn_timeout_s": 5.0, **options}
    report = await check_agent(AgentOptions(url=f"{scheme}://{address}", **given))
    return {each.key: each for each in report.results if each.id.split("-")[1] in REMOTE_AREAS}


def found(results):
    return {key: each.verdict for key, each in results.items() if each.verdict not in ("pass", "not_exercised")}


@pytest.mark.parametrize("rule", REMOTE)
async def test_server_breach_is_found(rule):
    known = RULES[f"ACP-{rule}"]
    version = known.versions[0]
    async with serving(rule) as address:
        results = await check(address, protocols=(version,), scenes=frozenset({scene_of(rule)}))
    key = known.id if version == 1 else f"{known.id}@{version}"
    assert found(results) == {key: "warn" if known.level == "disputed" else "fail"}, {
        name: each.detail for name, each in results.items() if name in found(results)
    }
    assert results[key].evidence


@pytest.mark.parametrize("name", ["HTTP-001 never answered", "HTTP-004 never answered"])
async def test_unanswered_posts_end_the_http_scenes(name):
    async with serving(name) as address:
        results = await check(address, start_timeout_s=1.0, protocols=(1,))
    assert found(results) == {f"ACP-{name.partition(' ')[0]}": "fail"}
    assert results["ACP-WS-003"].verdict == "pass"


@pytest.mark.parametrize(
    "name",
    [
        "HTTP-004 in place",
        "HTTP-015 other",
        pytest.param("HTTP-015 never answered", marks=pytest.mark.basic),
        pytest.param("HTTP-016 silent stream", marks=pytest.mark.basic),
    ],
)
async def test_dead_streams_end_the_check(name):
    played = []
    async with serving(name) as address:
        results = await check(address, scenes=None, turn_timeout_s=40.0, on_scene=played.append)
    assert found(results) == {f"ACP-{name.partition(' ')[0]}": "fail"}
    assert played == [shown(connection.initialize), shown(http.exchange)]


@pytest.mark.basic
@pytest.mark.parametrize(
    "name", ["HTTP-015", "HTTP-015 held open", "HTTP-015 never answered for a session", "HTTP-017 silent session"]
)
async def test_dead_session_streams_end_the_session_scenes(name):
    played = []
    async with serving(name) as address:
        results = await check(address, scenes=None, turn_timeout_s=40.0, on_scene=played.append)
    assert found(results) == {f"ACP-{name.partition(' ')[0]}": "fail"}
    without = (connection.strange_lines, connection.unknown_version, connection.bad_initialize)
    ends = (connection.initialize, http.exchange, http.refusals, http.resume_stream, websocket.frames)
    assert sorted(played) == sorted(map(shown, without + ends))


def shown(scene):
    return scene.__doc__.partition("\n")[0].rstrip(".")


async def test_clean_server_has_no_findings():
    async with serving() as address:
        results = await check(address)
    assert {key for key, each in results.items() if each.verdict != "pass"} == {"ACP-HTTP-014", "ACP-HTTP-014@2"}
    assert len(results) == 2 * len(REMOTE) - 1  # only version 2 has Last-Event-ID


@pytest.mark.basic
async def test_websocket_url_only_judges_websockets():
    async with serving() as address:
        results = await check(address, scheme="ws", protocols=(1,))
    assert {key: each.verdict for key, each in results.items()} == {
        f"ACP-WS-00{number}": "pass" for number in range(1, 5)
    }


@pytest.mark.basic
async def test_evidence_contains_no_token():
    async with serving("HTTP-007") as address:
        results = await check(address, protocols=(1,), token="a-token-of-ours", scenes=frozenset({"refusals"}))
    assert results["ACP-HTTP-007"].verdict == "fail"
    assert "a-token-of-ours" not in repr(results)
