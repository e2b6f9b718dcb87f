"""Servers of both eras: how the era is found, and what the modern one does differently."""

import asyncio
import json
from contextlib import contextmanager

import pytest

from dragoman.errors import ServerFailure
from dragoman.mcp import negotiation
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer
from dragoman.mcp.era import LEGACY_VERSIONS
from dragoman.mcp.request_headers import BadAnnotation, encode_value, find_annotations, parameter_headers
from tests.mcp.connecting import Answers
from tests.mcp.servers.commands import EVERYTHING, SDK_SERVER, modern, needs_node, scripted_http, sdk_http
from tests.mcp.servers.hostile import hostile
from tests.waiting import until

SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Hm."}, "model": "m", "stopReason": "endTurn"}


def modern_server(**options):
    command, *args = modern(**options)
    return StdioServer("modern", command, tuple(args))


def methods_in(path):
    return [json.loads(line).get("method") for line in path.read_text().splitlines()]


@contextmanager
def sdk_definition(transport):
    if transport == "stdio":
        yield StdioServer("sdk", SDK_SERVER[0], (*SDK_SERVER[1:], "stdio"))
    else:
        with sdk_http() as address:
            yield HttpServer("sdk", address)


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_of_both_eras_is_used_in_the_modern_one(bench, transport):
    with sdk_definition(transport) as definition:
        server = await bench.ready(definition)
        assert server.version == "2026-07-28"
        assert server.instructions == "Say please."
        [note] = await server.resources()
        [part] = await server.read(note.uri)
        assert part.resource.text == "a note"
        [template] = await server.templates()
        assert template.uri_template == "year://{year}"
        assert await server.complete({"type": "ref/resource", "uri": "year://{year}"}, "year", "2025") == ["2025"]
        server.watch(note.uri)
        while not server.changes(note.uri):  # the server is asked to tell of it meanwhile
            await server.call("change", {})
        steps = []

        async def tell(progress, total, message):
            steps.append(message)

        await server.call("count", {}, progress=tell)
        assert steps == ["step 1", "step 2", "step 3"]
        await server.call("grow", {})
        await bench.until(lambda: "more" in [tool.name for tool in server.tools])


async def test_a_legacy_server_is_greeted_after_one_question(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(record=str(record))
    assert server.version == "2025-11-25"
    asked = methods_in(record)
    assert asked[:4] == ["server/discover", "ping", "initialize", "notifications/initialized"]


async def test_a_server_that_ignores_what_it_does_not_know_is_greeted_without_a_wait(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(ignore_unknown_methods=True, record=str(record))
    assert server.version == "2025-11-25"
    # No timeout of the probe has passed: the whole test has less time than that.
    assert methods_in(record)[:3] == ["server/discover", "ping", "initialize"]


async def test_the_era_of_a_server_is_remembered(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(record=str(record))
    record.unlink()
    await server.restart()
    await server.settled()
    assert methods_in(record)[0] == "initialize"


async def test_a_server_that_dies_of_the_question_is_started_again_for_the_older_one(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(modern_server(dies=True, record=str(record)))
    assert server.version == "2025-11-25"
    assert methods_in(record).count("server/discover") == 1
    assert server.revision[0] == 1


@pytest.mark.parametrize("refuse", [False, True])
async def test_a_server_without_a_common_version_fails_with_the_versions_of_both_sides(bench, refuse):
    server = bench.server(modern_server(versions=["2031-01-01"], refuse=refuse))
    await server.settled()
    assert server.state == "failed"
    assert "2031-01-01" in server.reason
    assert "2025-11-25, 2026-07-28" in server.reason


async def test_a_server_that_lists_legacy_versions_alone_is_greeted_in_the_legacy_way(bench, tmp_path):
    record = tmp_path / "record"
    server = bench.server(modern_server(versions=["2025-06-18"], record=str(record)))
    await server.settled()
    assert "initialize" in methods_in(record)


async def test_the_questions_of_a_modern_server_are_answered_by_sending_the_call_again(bench, tmp_path):
    host = Answers(roots=[str(tmp_path)], elicited={"action": "accept", "content": {"name": "Ada"}}, sampled=SAMPLED)
    server = await bench.ready(modern_server(), host)
    [said] = (await server.call("ask", {})).content
    told = json.loads(said.text)
    assert told["state"] == "opaque"
    assert told["answers"]["who"] == {"action": "accept", "content": {"name": "Ada", "age": 7}}
    assert told["answers"]["what"] == SAMPLED
    assert told["answers"]["where"] == {"roots": [{"uri": tmp_path.as_uri()}]}


async def test_a_call_that_is_asked_nothing_is_sent_again_with_its_state(bench):
    server = await bench.ready(modern_server())
    [said] = (await server.call("wait", {})).content
    assert said.text == "at last"


async def test_a_call_that_became_a_task_is_followed_to_its_end(bench):
    host = Answers(elicited={"action": "accept", "content": {"name": "Ada"}})
    server = await bench.ready(modern_server(), host)
    [said] = (await server.call("work", {})).content
    assert json.loads(said.text)["who"]["content"]["name"] == "Ada"
    assert len(host.asked) == 1
    with pytest.raises(ServerFailure, match="the crane broke"):
        await server.call("fail", {})


async def test_cancelling_a_call_cancels_its_task(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(modern_server(record=str(record)))
    call = asyncio.create_task(server.call("endless", {}))
    await until(lambda: "tasks/get" in methods_in(record))
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert "tasks/cancel" in methods_in(record)


@needs_node
async def test_a_tool_that_a_legacy_server_runs_as_a_task_only_runs(bench):
    server = await bench.ready(StdioServer("everything", EVERYTHING[0], tuple(EVERYTHING[1:])))
    [tool] = [each for each in server.tools if each.needs_task]
    result = await server.call(tool.name, {"topic": "tea", "ambiguous": False}, timeout_s=25)
    assert not result.failed
    assert "tea" in result.content[0].text


async def test_a_server_of_the_older_transport_is_found_at_an_address_of_the_newer(bench):
    with scripted_http() as address:
        server = await bench.ready(HttpServer("web", f"{address}/sse"))
        assert server.version == "2025-11-25"
        assert (await server.call("echo", {"text": "hi"})).content


async def test_a_server_that_was_down_comes_back_by_itself(bench):
    with scripted_http() as address:
        port = address
    server = bench.server(SseServer("web", f"{port}/sse"))
    await server.settled()
    assert server.state == "failed"
    with scripted_http(port=int(port.rpartition(":")[2])):
        await bench.until(lambda: server.state == "ready")


# ── headers ─────────────────────────────────────────────────────────────────────────────────────


async def test_lists_are_read_anew_when_they_are_older_than_the_server_says(bench, monkeypatch):
    monkeypatch.setattr("dragoman.mcp.server_lists.MIN_TTL_S", 0.01)
    server = await bench.ready(modern_server(ttl_ms=10))
    await bench.until(lambda: "later_2" in [tool.name for tool in server.tools])


def test_values_that_no_header_can_carry_are_encoded():
    assert encode_value("us-west1") == "us-west1"
    assert encode_value("Hello, 世界") == "=?base64?SGVsbG8sIOS4lueVjA==?="
    assert encode_value(" padded ") == "=?base64?IHBhZGRlZCA=?="
    assert encode_value("=?base64?literal?=") == "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="


def test_annotated_parameters_are_sent_as_headers():
    inner = {"type": "object", "properties": {"deep": {"type": "integer", "x-mcp-header": "Deep"}}}
    schema = {"properties": {"on": {"type": "boolean", "x-mcp-header": "On"}, "inner": inner, "plain": {}}}
    found = find_annotations(schema)
    assert parameter_headers(found, {"on": True, "inner": {"deep": 42}, "plain": "x"}) == {
        "Mcp-Param-On": "true",
        "Mcp-Param-Deep": "42",
    }
    assert parameter_headers(found, {"on": None}) == {}


@pytest.mark.parametrize(
    "parameters",
    [
        {"a": {"type": "string", "x-mcp-header": ""}},
        {"a": {"type": "string", "x-mcp-header": "two words"}},
        {"a": {"type": "number", "x-mcp-header": "A"}},
        {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}},
        {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}},
        {"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}},
    ],
)
def test_a_wrong_annotation_is_refused(parameters):
    with pytest.raises(BadAnnotation):
        find_annotations({"type": "object", "properties": parameters})


async def test_a_server_that_reads_and_answers_nothing_but_initialize_is_not_waited_for_as_one_that_starts(
    bench, monkeypatch
):
    monkeypatch.setattr(negotiation, "SILENCE_S", 1_000_000.0)
    monkeypatch.setattr(negotiation, "QUIET_S", 0.2)
    server = await bench.ready(
        hostile("""
        for m in heard():
            if m.get("method") not in ("server/discover", "ping") and not greet(m): say(m["id"])
        """)
    )
    assert server.version == LEGACY_VERSIONS[-1]
    assert (await server.call("echo", {})).content[0].text == "done"


MODERN_ONLY = """
for m in heard():
    method, id = m.get("method"), m.get("id")
    done = {"resultType": "complete"}
    if method == "initialize":
        open(sys.argv[1], "w").close()
        send(id=id, error={"code": -32601, "message": "no handshake"})
    elif method == "server/discover":
        known = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        hold(lambda id=id: send(id=id, result={**done, **known}))
    elif method == "tools/list":
        send(id=id, result={**done, "tools": TOOLS})
"""


async def test_a_server_that_has_not_read_yet_is_waited_for(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(negotiation, "QUIET_S", 0.0)
    begins_late = "import time; time.sleep(0.5)\ndef hold(answer): answer()\n"
    server = await bench.ready(hostile(begins_late + MODERN_ONLY, str(tmp_path / "greeted")))
    assert server.version == "2026-07-28"
    assert not (tmp_path / "greeted").exists()


async def test_a_modern_server_that_answers_late_is_taken_when_it_refuses_the_handshake(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(negotiation, "QUIET_S", 0.0)
    answers_late = "held = []\ndef hold(answer): held.append(answer)\n"
    refuse_after = MODERN_ONLY.replace('"w").close()', '"w").close(); held[0]()')
    server = await bench.ready(hostile(answers_late + refuse_after, str(tmp_path / "greeted")))
    assert server.version == "2026-07-28"
    assert (tmp_path / "greeted").exists()
