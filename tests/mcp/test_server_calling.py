"""Calling the tools of a server, including servers that misbehave."""

import asyncio
import json

import pytest

from dragoman.errors import McpServerError
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer
from dragoman.protocol import v1
from tests.mcp.connecting import Answers
from tests.mcp.servers.commands import scripted, scripted_http
from tests.mcp.servers.hostile import hostile
from tests.waiting import until


async def test_a_result_of_twenty_megabytes_arrives_whole(bench):
    server = await bench.ready(result_bytes=20_000_000)
    (said,) = (await server.call("echo", {})).content
    assert len(said.text) == 20_000_000


async def test_every_content_type_arrives_as_its_acp_type(bench):
    server = await bench.ready(returns=["text", "image", "audio", "resource", "blob", "resource_link"])
    kinds = [type(block) for block in (await server.call("echo", {})).content]
    assert kinds == [
        v1.TextContent,
        v1.ImageContent,
        v1.AudioContent,
        v1.EmbeddedResource,
        v1.EmbeddedResource,
        v1.ResourceLink,
    ]


async def test_secrets_repeated_in_results_are_redacted(bench):
    command, *args = scripted(echo_env=["TICKETS_TOKEN"])
    server = await bench.ready(StdioServer("one", command, tuple(args), (("TICKETS_TOKEN", "hunter2-canary"),)))
    [said] = (await server.call("echo", {})).content
    assert "[hidden]" in said.text
    assert "hunter2" not in said.text


async def test_structured_content_and_errors_are_kept_apart(bench):
    server = await bench.ready(content_tools=True)
    results = {tool.name: await server.call(tool.name, {}) for tool in server.tools if tool.name != "echo"}
    assert [name for name, result in results.items() if result.failed] == ["error"]
    assert [result.structured for result in results.values() if result.structured] == [{"degrees": 21}]


async def test_unknown_tool_error_has_the_servers_message(bench):
    server = await bench.ready()
    with pytest.raises(McpServerError, match="nowhere"):
        await server.call("nowhere", {})


async def test_progress_arrives_in_order_before_the_result(bench):
    server = await bench.ready(progress=3)
    told = []

    async def on_progress(progress, total, message):
        told.append((progress, total))

    await server.call("echo", {}, progress=on_progress)
    assert told == [(1.0, 3.0), (2.0, 3.0), (3.0, 3.0)]


async def test_cancelled_wait_cancels_the_call_at_the_server(bench, tmp_path):
    noted = tmp_path / "cancelled"
    server = await bench.ready(hang_at="call", cancel_file=str(noted))
    call = asyncio.create_task(server.call("echo", {}))
    await asyncio.sleep(0)
    await until(lambda: not call.done())
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: noted.exists() and noted.read_text())
    assert server.state == "ready"


async def test_call_that_times_out_is_cancelled(bench, tmp_path):
    noted = tmp_path / "cancelled"
    server = await bench.ready(hang_at="call", cancel_file=str(noted))
    with pytest.raises(McpServerError, match=r"did not answer within 0\.2 s"):
        await server.call("echo", {}, timeout_s=0.2)
    await until(lambda: noted.exists() and noted.read_text())


async def test_crash_fails_the_call_and_the_server_restarts(bench, tmp_path):
    server = await bench.ready(
        crash_at="call", crash_once=str(tmp_path / "once"), crash_code=7, crash_stderr="the disk is full"
    )
    with pytest.raises(McpServerError, match=r"(?s)code 7.*the disk is full"):
        await server.call("echo", {})
    await bench.until(lambda: bench.states[-2:] == ["connecting", "ready"])
    assert "back" in (await server.call("echo", {"text": "back"})).content[0].text


async def test_server_that_crashes_in_every_call_restarts_once(bench):
    server = await bench.ready(crash_at="call", crash_stderr="always")
    for _ in range(2):
        with pytest.raises(McpServerError, match="always"):
            await server.call("echo", {})
    await bench.until(lambda: server.state == "failed")
    assert bench.states == ["connecting", "ready", "connecting", "ready", "failed"]
    with pytest.raises(McpServerError, match="is not available"):
        await server.call("echo", {})


async def test_half_a_response_before_exit_is_a_crash(bench):
    server = await bench.ready(crash_at="answer")
    with pytest.raises(McpServerError, match="failed: "):
        await server.call("echo", {})


async def test_failed_server_can_be_restarted_manually(bench, tmp_path):
    server = bench.server(crash_at="start", crash_once=str(tmp_path / "once"))
    await server.settled()
    assert server.state == "failed"
    await server.restart()
    await server.settled()
    assert server.state == "ready"


async def test_changed_tools_are_listed_again(bench):
    server = await bench.ready(list_changed_after_call=True)
    await server.call("echo", {})
    await bench.until(lambda: len(server.tools) == 2)
    assert [tool.name for tool in server.tools] == ["echo", "added_1"]


@pytest.mark.parametrize("string_ids", [False, True])
async def test_requests_from_the_server_during_a_call_are_answered(bench, tmp_path, string_ids):
    host = Answers([str(tmp_path)], {"action": "accept", "content": {"name": "Ada"}}, _sampled("yes"))
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    question = {"messages": [{"role": "user", "content": {"type": "text", "text": "Is it?"}}], "maxTokens": 5}
    server = await bench.ready(host=host, roots=True, elicit=form, sample=question, string_ids=string_ids)
    said = [json.loads(block.text) for block in (await server.call("echo", {})).content]
    answers = {name: answer["result"] for each in said for name, answer in each.items() if "result" in answer}
    assert answers["roots"]["roots"][0]["uri"] == tmp_path.as_uri()
    assert answers["elicit"]["content"] == {"name": "Ada"}
    assert answers["sample"]["content"]["text"] == "yes"
    assert [server for server, _ in host.asked] == ["one", "one"]


async def test_host_of_the_call_takes_precedence_over_the_servers_host(bench):
    of_server, of_call = Answers(), Answers(elicited={"action": "accept", "content": {}})
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    server = await bench.ready(host=of_server, elicit=form)
    result = await server.call("echo", {}, host=of_call)
    assert "accept" in result.content[0].text
    assert not of_server.asked


async def test_a_prompt_is_filled_in(bench):
    prompts = [{"name": "greet", "arguments": [{"name": "who", "required": True}], "text": "Say hello to {who}"}]
    server = await bench.ready(prompts=prompts)
    (message,) = await server.prompt("greet", {"who": "Ada"})
    assert (message.role, message.content.text) == ("user", "Say hello to Ada")


@pytest.mark.parametrize("status", [401, 403, 404, 500])
@pytest.mark.parametrize("make", [HttpServer, SseServer])
async def test_error_status_is_explained(bench, status, make):
    path = "mcp" if make is HttpServer else "sse"
    with scripted_http(status=status) as address:
        server = bench.server(make("web", f"{address}/{path}"))
        await server.settled()
    assert server.state == "failed"
    assert f"HTTP {status}" in server.reason


@pytest.mark.parametrize("make", [HttpServer, SseServer])
async def test_headers_are_sent_with_everything(bench, make):
    path = "mcp" if make is HttpServer else "sse"
    with scripted_http(authorization="Bearer canary") as address:
        server = await bench.ready(make("web", f"{address}/{path}", (("Authorization", "Bearer canary"),)))
        assert (await server.call("echo", {"text": "in"})).content
        other = bench.server(make("web", f"{address}/{path}", (("Authorization", "Bearer wrong"),)))
        await other.settled()
        assert "credentials" in other.reason
        assert "wrong" not in other.reason


async def test_call_is_repeated_in_a_new_session_if_the_old_one_is_gone(bench):
    with scripted_http(forget_after=1) as address:
        server = await bench.ready(HttpServer("web", f"{address}/mcp"))
        await server.call("echo", {})
        assert (await server.call("echo", {"text": "again"})).content
        assert bench.states == ["connecting", "ready", "connecting", "ready"]


async def test_events_of_many_megabytes_arrive(bench):
    with scripted_http({"result_bytes": 5_000_000}) as address:
        server = await bench.ready(SseServer("web", f"{address}/sse"))
        (said,) = (await server.call("echo", {})).content
        assert len(said.text) == 5_000_000


def _sampled(text):
    return {"role": "assistant", "content": {"type": "text", "text": text}, "model": "test", "stopReason": "endTurn"}


class Pending(Answers):
    """Waits for an answer that never comes, and records whether the question was withdrawn."""

    def __init__(self):
        super().__init__()
        self.begun, self.withdrawn = asyncio.Event(), asyncio.Event()

    async def elicit(self, server, params):
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.withdrawn.set()


async def test_question_during_two_calls_ends_with_the_last_one(bench):
    of_server, of_calls = Pending(), [Pending(), Pending()]
    asks = """
    calls = []
    for m in messages():
        if m.get("method") == "tools/call":
            calls.append(m["id"])
            if len(calls) == 2:
                schema = {"type": "object", "properties": {}}
                send(id="q", method="elicitation/create", params={"message": "?", "requestedSchema": schema})
        else:
            greet(m)
    """
    server = await bench.ready(hostile(asks), host=of_server)
    first, second = [asyncio.create_task(server.call("echo", {}, host=host)) for host in of_calls]
    await of_server.begun.wait()
    first.cancel()
    await asyncio.wait([first])
    assert not of_server.withdrawn.is_set()
    second.cancel()
    await of_server.withdrawn.wait()
    assert not any(host.begun.is_set() for host in of_calls)


async def test_input_requested_by_a_result_is_answered_by_the_calls_host(bench):
    of_server, of_calls = Answers(), [Answers(), Answers()]
    asks = """
    waiting = []
    for m in messages():
        method, id, params = m.get("method"), m.get("id"), m.get("params", {})
        done = {"resultType": "complete"}
        if method == "server/discover":
            send(id=id, result={**done, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        elif method == "tools/list":
            send(id=id, result={**done, "tools": TOOLS})
        elif method == "tools/call" and "inputResponses" in params:
            say(id, params["inputResponses"]["q"]["action"], **done)
        elif method == "tools/call":
            waiting.append(id)
            for call in waiting if len(waiting) == 2 else []:
                question = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
                wanted = {"q": {"method": "elicitation/create", "params": question}}
                send(id=call, result={"resultType": "input_required", "inputRequests": wanted})
        elif id is not None:
            send(id=id, error={"code": -32601, "message": "no"})
    """
    server = await bench.ready(hostile(asks), host=of_server)
    results = await asyncio.gather(*(server.call("echo", {}, host=host) for host in of_calls))
    assert [result.content[0].text for result in results] == ["decline", "decline"]
    assert [len(host.asked) for host in (of_server, *of_calls)] == [0, 1, 1]
