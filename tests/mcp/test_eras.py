"""Servers of both eras: how the era is found, and how the modern one differs."""

import asyncio
import json
from contextlib import contextmanager

import pytest

from dragoman.errors import McpServerError
from dragoman.mcp import negotiation
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer
from dragoman.mcp.era import LEGACY_VERSIONS
from dragoman.mcp.request_headers import InvalidAnnotationError, encode_value, find_annotations, parameter_headers
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
async def test_server_of_both_eras_uses_the_modern_one(bench, transport):
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

        async def on_progress(progress, total, message):
            steps.append(message)

        await server.call("count", {}, progress=on_progress)
        assert steps == ["step 1", "step 2", "step 3"]
        await server.call("grow", {})
        await bench.until(lambda: "more" in [tool.name for tool in server.tools])


async def test_legacy_server_is_initialized_after_one_probe(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(record=str(record))
    assert server.version == "2025-11-25"
    asked = methods_in(record)
    assert asked[:4] == ["server/discover", "ping", "initialize", "notifications/initialized"]


async def test_server_that_ignores_the_probe_is_initialized_without_waiting(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(ignore_unknown_methods=True, record=str(record))
    assert server.version == "2025-11-25"
    # No timeout of the probe has passed, because the whole test has less time than that.
    assert methods_in(record)[:3] == ["server/discover", "ping", "initialize"]


async def test_era_of_a_server_is_remembered(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(record=str(record))
    record.unlink()
    await server.restart()
    await server.settled()
    assert methods_in(record)[0] == "initialize"


async def test_server_that_exits_at_the_probe_restarts_in_the_legacy_era(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(modern_server(dies=True, record=str(record)))
    assert server.version == "2025-11-25"
    assert methods_in(record).count("server/discover") == 1
    assert server.revision[0] == 1


@pytest.mark.parametrize("refuse", [False, True])
async def test_missing_common_version_error_names_both_sides_versions(bench, refuse):
    server = bench.server(modern_server(versions=["2031-01-01"], refuse=refuse))
    await server.settled()
    assert server.state == "failed"
    assert "2031-01-01" in server.reason
    assert "2025-11-25, 2026-07-28" in server.reason


CONTRADICTED_VERSIONS = {
    "a modern version in the answer to initialize": (
        "send(id=m['id'], result={'protocolVersion': '2026-07-28'}) if is_initialize else greet(m)",
        "initialize with version 2026-07-28, expected one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25",
    ),
    "a modern version listed and refused": (
        "send(id=m['id'], error={'code': -32022, 'message': 'no', 'data': {'supported': ['2026-07-28']}})",
        "the server refuses version 2026-07-28 of MCP, but lists it as supported",
    ),
    "a legacy version listed and refused": (
        "send(id=m['id'], error={'code': -32602, 'message': 'no', 'data': {'supported': ['2025-11-25']}})",
        "the server refuses version 2025-11-25 of MCP, but lists it as supported",
    ),
}


async def test_contradictory_version_refusal_is_reported(bench):
    wrong = {}
    for case, (answer, words) in CONTRADICTED_VERSIONS.items():
        server = bench.server(
            hostile(f"for m in messages():\n    is_initialize = m['method'] == 'initialize'\n    {answer}")
        )
        await server.settled()
        if server.state != "failed" or words not in server.reason:
            wrong[case] = f"{server.state}: {server.reason}"
    assert wrong == {}


async def test_older_version_listed_in_a_refusal_is_used(bench):
    server = await bench.ready(
        hostile("""
        for m in messages():
            if m["method"] == "initialize" and m["params"]["protocolVersion"] != "2025-03-26":
                send(id=m["id"], error={"code": -32602, "message": "no", "data": {"supported": ["1.0", "2025-03-26"]}})
            else:
                greet(m)
        """)
    )
    assert server.version == "2025-03-26"


async def test_server_listing_only_legacy_versions_is_initialized(bench, tmp_path):
    record = tmp_path / "record"
    server = bench.server(modern_server(versions=["2025-06-18"], record=str(record)))
    await server.settled()
    assert "initialize" in methods_in(record)


async def test_modern_server_gets_its_input_by_repeating_the_call(bench, tmp_path):
    host = Answers(roots=[str(tmp_path)], elicited={"action": "accept", "content": {"name": "Ada"}}, sampled=SAMPLED)
    server = await bench.ready(modern_server(), host)
    [said] = (await server.call("ask", {})).content
    told = json.loads(said.text)
    assert told["state"] == "opaque"
    assert told["answers"]["who"] == {"action": "accept", "content": {"name": "Ada", "age": 7}}
    assert told["answers"]["what"] == SAMPLED
    assert told["answers"]["where"] == {"roots": [{"uri": tmp_path.as_uri()}]}


async def test_call_without_input_requests_is_repeated_with_its_state(bench):
    server = await bench.ready(modern_server())
    [said] = (await server.call("wait", {})).content
    assert said.text == "at last"


async def test_call_that_became_a_task_is_polled_to_its_end(bench):
    host = Answers(elicited={"action": "accept", "content": {"name": "Ada"}})
    server = await bench.ready(modern_server(), host)
    [said] = (await server.call("work", {})).content
    assert json.loads(said.text)["who"]["content"]["name"] == "Ada"
    assert len(host.asked) == 1
    with pytest.raises(McpServerError, match="the crane broke"):
        await server.call("fail", {})


async def test_cancelled_call_cancels_its_task(bench, tmp_path):
    record = tmp_path / "record"
    server = await bench.ready(modern_server(record=str(record)))
    call = asyncio.create_task(server.call("endless", {}))
    await until(lambda: "tasks/get" in methods_in(record))
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert "tasks/cancel" in methods_in(record)


@needs_node
async def test_task_only_tool_of_a_legacy_server_runs(bench):
    server = await bench.ready(StdioServer("everything", EVERYTHING[0], tuple(EVERYTHING[1:])))
    [tool] = [each for each in server.tools if each.needs_task]
    result = await server.call(tool.name, {"topic": "tea", "ambiguous": False}, timeout_s=25)
    assert not result.failed
    assert "tea" in result.content[0].text


async def test_sse_server_is_found_at_a_streamable_http_url(bench):
    with scripted_http() as address:
        server = await bench.ready(HttpServer("web", f"{address}/sse"))
        assert server.version == "2025-11-25"
        assert (await server.call("echo", {"text": "hi"})).content


async def test_unavailable_server_reconnects_automatically(bench):
    with scripted_http() as address:
        port = address
    server = bench.server(SseServer("web", f"{port}/sse"))
    await server.settled()
    assert server.state == "failed"
    with scripted_http(port=int(port.rpartition(":")[2])):
        await bench.until(lambda: server.state == "ready")


# ── headers ─────────────────────────────────────────────────────────────────────────────────────


async def test_expired_lists_are_read_again(bench, monkeypatch):
    monkeypatch.setattr("dragoman.mcp.server_lists.MIN_TTL_S", 0.01)
    server = await bench.ready(modern_server(ttl_ms=10))
    await bench.until(lambda: "later_2" in [tool.name for tool in server.tools])


def test_values_invalid_in_headers_are_encoded():
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
def test_invalid_header_annotation_is_refused(parameters):
    with pytest.raises(InvalidAnnotationError):
        find_annotations({"type": "object", "properties": parameters})


async def test_silent_server_that_read_the_probe_gets_the_short_timeout(bench, monkeypatch):
    monkeypatch.setattr(negotiation, "PROBE_TIMEOUT_S", 1_000_000.0)
    monkeypatch.setattr(negotiation, "IGNORED_PROBE_TIMEOUT_S", 0.2)
    server = await bench.ready(
        hostile("""
        for m in messages():
            if m.get("method") not in ("server/discover", "ping") and not greet(m): say(m["id"])
        """)
    )
    assert server.version == LEGACY_VERSIONS[-1]
    assert (await server.call("echo", {})).content[0].text == "done"


MODERN_ONLY = """
for m in messages():
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


async def test_server_that_has_not_read_the_probe_gets_the_long_timeout(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(negotiation, "IGNORED_PROBE_TIMEOUT_S", 0.0)
    begins_late = "import time; time.sleep(0.5)\ndef hold(answer): answer()\n"
    server = await bench.ready(hostile(begins_late + MODERN_ONLY, str(tmp_path / "greeted")))
    assert server.version == "2026-07-28"
    assert not (tmp_path / "greeted").exists()


async def test_late_probe_answer_counts_if_initialize_is_refused(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(negotiation, "IGNORED_PROBE_TIMEOUT_S", 0.0)
    answers_late = "held = []\ndef hold(answer): held.append(answer)\n"
    refuse_after = MODERN_ONLY.replace('"w").close()', '"w").close(); held[0]()')
    server = await bench.ready(hostile(answers_late + refuse_after, str(tmp_path / "greeted")))
    assert server.version == "2026-07-28"
    assert (tmp_path / "greeted").exists()
