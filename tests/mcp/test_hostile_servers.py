"""Hostile servers, and servers broken in ways that look hostile."""

import asyncio
import gc
import json
import logging
import re
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import McpServerError
from dragoman.mcp import streamable_http as http_module
from dragoman.mcp.definition import HttpServer, SseServer
from tests.mcp.servers.hostile import hostile

ANSWERS = "for m in messages():\n    if not greet(m): say(m['id'])"


async def ended(bench, server):
    """Stop a server and return whether any of its tasks are left."""
    await server.stop()
    return [task for task in asyncio.all_tasks() if task.get_name() == f"mcp {server.name}"] == []


# ── restarting and stopping ─────────────────────────────────────────────────────────────────────


async def test_concurrent_restarts_leave_one_server(bench, tmp_path):
    pids = tmp_path / "pids"
    server = await bench.ready(pid_file=str(pids))
    await asyncio.gather(server.restart(), server.restart())
    await server.settled()
    assert server.state == "ready"
    assert len(pids.read_text().split()) == 2
    assert await ended(bench, server)


async def test_server_stopped_during_a_restart_stays_stopped(bench):
    server = await bench.ready()
    await asyncio.gather(server.restart(), server.stop())
    assert server.state == "stopped"
    assert await ended(bench, server)


async def test_stop_waits_for_a_running_stop(bench):
    server = await bench.ready(ignore_sigterm=True, ignore_eof=True)
    restart = asyncio.create_task(server.restart())
    await bench.until(lambda: server.state == "stopped")
    restart.cancel()
    assert await ended(bench, server)


async def test_call_fails_if_the_dead_server_left_a_process(bench):
    server = await bench.ready(
        hostile("""
        import subprocess
        for m in messages():
            if not greet(m):
                subprocess.Popen(["sleep", "600"])
                print("out of luck", file=sys.stderr, flush=True)
                os._exit(3)
        """)
    )
    with pytest.raises(McpServerError, match=r"(?s)exited with code 3.*out of luck"):
        await server.call("echo", {})


# ── lists and answers ───────────────────────────────────────────────────────────────────────────


async def test_catastrophic_pattern_is_not_matched(bench):
    server = await bench.ready(
        hostile("""
        pattern = {"type": "string", "pattern": "^(a+)+$"}
        TOOLS[0]["outputSchema"] = {"type": "object", "properties": {"a": pattern}}
        for m in messages():
            if not greet(m): say(m["id"], structuredContent={"a": "a" * 60 + "!"})
        """)
    )
    assert (await server.call("echo", {})).structured == {"a": "a" * 60 + "!"}


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [(r"cut: \ud83d", "cut: \ufffd"), (r"\udc00 and \ud83d\ude00", "\ufffd and \U0001f600"), (r"\\ud83d", r"\ud83d")],
)
async def test_lone_surrogate_only_replaces_its_character(bench, sent, arrives):
    server = await bench.ready(
        hostile(
            """
            for m in messages():
                if not greet(m):
                    head = '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % m["id"]
                    put((head + sys.argv[1] + '"}]}}\\n').encode())
            """,
            sent,
        )
    )
    assert (await server.call("echo", {})).content[0].text == arrives


async def test_answer_over_the_limit_fails_its_call_immediately(bench):
    server = await bench.ready(
        hostile("""
        for m in messages():
            if not greet(m):
                put(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % m["id"])
                for _ in range(65): put(b"x" * 1048576)
                put(b'"}]}}\\n')
        """)
    )
    with pytest.raises(Exception, match="longer than the limit of 67108864 bytes"):
        await server.call("echo", {})
    assert server.state == "ready"


async def test_unexpected_and_duplicate_responses_are_ignored(bench):
    server = await bench.ready(
        hostile("""
        for m in messages():
            if not greet(m):
                i = m["id"]
                say(i + 100); say(str(i + 100)); say(None); send(id=i, method="ping"); say(i, "first"); say(i, "second")
        """)
    )
    for _ in range(2):
        assert (await server.call("echo", {})).content[0].text == "first"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (r"""put(b'{"jsonrpc":"2.0","id":%d,"result":{"content":"\xff"}}\n' % i)""", "not UTF-8"),
        ("say(str(i))", "a string, but the request has a number"),
        (r"""put(b'[{"jsonrpc":"2.0","id":%d,"result":{}}]\n' % i)""", "batches are not part of the protocol"),
    ],
    ids=["bad UTF-8", "string id", "batch"],
)
async def test_malformed_answer_only_fails_its_call(bench, answer, words):
    server = await bench.ready(
        hostile(
            """
            waiting = None
            for m in messages():
                i = m.get("id")
                if greet(m):
                    continue
                if waiting is None:
                    waiting = i
                    continue
                eval(sys.argv[1])
                say(waiting)
            """,
            answer,
        )
    )
    other = asyncio.create_task(server.call("echo", {}))
    await asyncio.sleep(0)
    with pytest.raises(McpServerError, match=words):
        await server.call("echo", {})
    assert (await other).content[0].text == "done"


async def test_frequent_change_announcements_do_not_cause_frequent_listing(bench):
    server = await bench.ready(
        hostile("""
        n = 0
        for m in messages():
            if m.get("method") == "tools/list":
                n += 1
                send(method="notifications/tools/list_changed")
            if not greet(m): say(m["id"], str(n))
        """)
    )
    for _ in range(200):
        listed = int((await server.call("echo", {})).content[0].text)
    assert listed <= 3


# ── logs ────────────────────────────────────────────────────────────────────────────────────────

SECRET = ("TOKEN", "canary-5d1e")


async def test_server_log_is_one_line_of_bounded_length(bench, caplog):
    caplog.set_level(logging.INFO)
    server = await bench.ready(
        hostile("""
        for m in messages():
            if not greet(m):
                data = "\\x1b[31mfirst\\nWARNING forged line \\u202e" + "x" * 5000000
                send(method="notifications/message", params={"level": "error", "data": data})
                say(m["id"])
        """)
    )
    await server.call("echo", {})
    [line] = [record.getMessage() for record in caplog.records if record.name == "dragoman.mcp"]
    assert line.startswith(r"one: \x1b[31mfirst WARNING forged line \u202ex")
    assert len(line) < 3000


async def test_invalid_request_is_refused_and_its_text_is_not_logged(bench, caplog):
    caplog.set_level(logging.DEBUG)
    server = await bench.ready(
        hostile(
            """
            asked = None
            for m in messages():
                if m.get("method") is None:
                    say(asked, json.dumps(m["error"]["code"]))
                elif not greet(m):
                    asked, secret = m["id"], os.environ["TOKEN"]
                    send(method="\\x1b[31m" + secret, params=[secret])
                    send(method="notifications/progress", params=secret)
                    send(id="q", method="elicitation/create", params={"message": 5, "requestedSchema": secret})
            """,
            env=[SECRET],
        )
    )
    assert (await server.call("echo", {})).content[0].text == "-32602"
    assert SECRET[1] not in caplog.text


async def test_non_object_parameters_are_refused_without_quoting_them(bench, caplog):
    caplog.set_level(logging.DEBUG)
    server = await bench.ready(
        hostile(
            """
            asked = None
            for m in messages():
                if m.get("method") is None:
                    say(asked, json.dumps(m["error"]["code"]))
                elif not greet(m):
                    asked = m["id"]
                    send(id="q", method="roots/" + os.environ["TOKEN"], params=[])
            """,
            env=[SECRET],
        )
    )
    assert (await server.call("echo", {})).content[0].text == "-32602"
    assert SECRET[1] not in caplog.text


async def test_multi_line_secret_is_redacted_in_a_reason(bench):
    code = 'sys.stderr.write("cannot read " + os.environ["KEY"]); sys.stderr.flush(); os._exit(1)'
    server = bench.server(hostile(code, env=[("KEY", "-----BEGIN-----\r\ncanary-line\r\n-----END-----")]))
    await server.settled()
    assert "cannot read" in server.reason
    assert "canary" not in server.reason


# ── servers at a URL ────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def speaking_http(answer):
    """Serve HTTP with `answer(method, path, body, writer)`, which may write any bytes."""

    writers = []

    async def serve(reader, writer):
        writers.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                method, path, _ = head.decode().split(" ", 2)
                size = re.search(rb"(?i)content-length: (\d+)", head)
                body = await reader.readexactly(int(size[1])) if size else b""
                await answer(method, path, body, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


def reply(writer, message, status="200 OK", headers=""):
    body = json.dumps(message).encode() if message is not None else b""
    kind = f"Content-Type: application/json\r\n{headers}"
    writer.write(f"HTTP/1.1 {status}\r\n{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def greeting(message, **capabilities):
    if message["method"] == "initialize":
        info = {"name": "x", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return None


@pytest.mark.parametrize("trickled", ["head", "body"])
async def test_slow_response_to_the_session_delete_is_not_awaited(bench, trickled, monkeypatch):
    monkeypatch.setattr(http_module, "GOODBYE_TIMEOUT_S", 0.2)

    async def answer(method, path, body, writer):
        if method == "POST":
            greeted = greeting(json.loads(body))
            reply(writer, greeted, "200 OK" if greeted else "202 Accepted", "Mcp-Session-Id: abc\r\n")
        elif method == "GET":
            reply(writer, None, "405 Method Not Allowed")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            if trickled == "body":
                writer.write(b"Content-Length: 1000000\r\n\r\n")
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.05)

    async with speaking_http(answer) as address:
        server = await bench.ready(HttpServer("web", f"{address}/mcp"))
        async with asyncio.timeout(30):
            await server.stop()


async def test_changes_arrive_after_many_idle_streams_ended(bench, monkeypatch):
    monkeypatch.setattr(http_module, "RETRY_S", 0.001)
    streams = []

    async def answer(method, path, body, writer):
        if method == "GET":
            streams.append(path)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            if len(streams) == 6:
                writer.write(b'data: {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n\n')
            writer.write_eof()
        elif method == "POST":
            message = json.loads(body)
            greeted = greeting(message, tools={"listChanged": True})
            if message["method"] == "tools/list":
                tools = [{"name": "late", "inputSchema": {"type": "object"}}] if len(streams) >= 6 else []
                greeted = {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}}
            reply(writer, greeted, "200 OK" if greeted else "202 Accepted", "Mcp-Session-Id: abc\r\n")

    async with speaking_http(answer) as address:
        server = await bench.ready(HttpServer("web", f"{address}/mcp"))
        await bench.until(lambda: [tool.name for tool in server.tools] == ["late"])


def events(writer, endpoint):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    writer.write(f"event: endpoint\ndata: {endpoint}\n\n".encode())


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://localhost.example/messages", "another origin"),
        ("//elsewhere.example/messages", "another origin"),
        ("http://[half", "a message address that is not valid"),
        ("http://127.0.0.1:99999999/", "a message address that is not valid"),
    ],
)
async def test_messages_are_only_posted_to_the_servers_origin(bench, endpoint, reason):
    async def answer(method, path, body, writer):
        events(writer, endpoint)

    async with speaking_http(answer) as address:
        server = bench.server(SseServer("older", f"{address}/sse"))
        await server.settled()
        assert server.state == "failed"
        assert reason in server.reason


async def test_endless_post_response_blocks_nothing(bench):
    streams = []

    async def answer(method, path, body, writer):
        if method == "GET":
            streams.append(writer)
            host = writer.get_extra_info("sockname")
            events(writer, f"http://{host[0]}:{host[1]}/messages")
            return
        if greeted := greeting(json.loads(body)):
            streams[0].write(f"data: {json.dumps(greeted)}\n\n".encode())
        writer.write(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()

    async with speaking_http(answer) as address:
        await bench.ready(SseServer("older", f"{address.replace('//', '//name:word@')}/sse"))


async def test_stop_at_any_moment_of_connecting_leaves_no_task(bench, recwarn):
    async def answer(method, path, body, writer):
        if method == "GET":
            events(writer, "/messages")
        else:
            reply(writer, None, "202 Accepted")

    async with speaking_http(answer) as address:
        for ticks in range(40):
            server = bench.server(SseServer("older", f"{address}/sse"))
            for _ in range(ticks):
                await asyncio.sleep(0)
            await server.stop()
    gc.collect()
    assert [str(warning.message) for warning in recwarn if "never awaited" in str(warning.message)] == []
