"""Servers that mean harm, or are broken in ways that look like it."""

import asyncio
import gc
import json
import logging
import re
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import ServerFailure
from dragoman.mcp import streamable_http as http_module
from dragoman.mcp.definition import HttpServer, SseServer
from tests.mcp.servers.hostile import hostile

ANSWERS = "for m in heard():\n    if not greet(m): say(m['id'])"


async def ended(bench, server):
    """Stop a server, and tell whether anything of it is left among the tasks."""
    await server.stop()
    return [task for task in asyncio.all_tasks() if task.get_name() == f"mcp {server.name}"] == []


# ── coming and going ────────────────────────────────────────────────────────────────────────────


async def test_two_restarts_at_once_leave_one_server(bench, tmp_path):
    pids = tmp_path / "pids"
    server = await bench.ready(pid_file=str(pids))
    await asyncio.gather(server.restart(), server.restart())
    await server.settled()
    assert server.state == "ready"
    assert len(pids.read_text().split()) == 2
    assert await ended(bench, server)


async def test_a_server_that_is_stopped_while_it_restarts_stays_stopped(bench):
    server = await bench.ready()
    await asyncio.gather(server.restart(), server.stop())
    assert server.state == "stopped"
    assert await ended(bench, server)


async def test_a_stop_waits_for_an_end_that_has_begun_already(bench):
    server = await bench.ready(ignore_sigterm=True, ignore_eof=True)
    restart = asyncio.create_task(server.restart())
    await bench.until(lambda: server.state == "stopped")
    restart.cancel()
    assert await ended(bench, server)


# ── what it lists and answers ───────────────────────────────────────────────────────────────────


async def test_a_pattern_that_would_take_years_to_match_is_not_tried(bench):
    server = await bench.ready(
        hostile("""
        pattern = {"type": "string", "pattern": "^(a+)+$"}
        TOOLS[0]["outputSchema"] = {"type": "object", "properties": {"a": pattern}}
        for m in heard():
            if not greet(m): say(m["id"], structuredContent={"a": "a" * 60 + "!"})
        """)
    )
    assert (await server.call("echo", {})).structured == {"a": "a" * 60 + "!"}


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [(r"cut: \ud83d", "cut: \ufffd"), (r"\udc00 and \ud83d\ude00", "\ufffd and \U0001f600"), (r"\\ud83d", r"\ud83d")],
)
async def test_half_a_letter_in_an_answer_costs_no_more_than_that_letter(bench, sent, arrives):
    server = await bench.ready(
        hostile(
            """
            for m in heard():
                if not greet(m):
                    head = '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % m["id"]
                    put((head + sys.argv[1] + '"}]}}\\n').encode())
            """,
            sent,
        )
    )
    assert (await server.call("echo", {})).content[0].text == arrives


async def test_an_answer_over_the_limit_fails_its_call_at_once(bench):
    server = await bench.ready(
        hostile("""
        for m in heard():
            if not greet(m):
                put(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % m["id"])
                for _ in range(65): put(b"x" * 1048576)
                put(b'"}]}}\\n')
        """)
    )
    with pytest.raises(Exception, match="longer than 67108864 bytes"):
        await server.call("echo", {})
    assert server.state == "ready"


async def test_answers_to_nothing_and_second_answers_are_ignored(bench):
    server = await bench.ready(
        hostile("""
        for m in heard():
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
        ("say(str(i))", "a string, where the request has a number"),
        (r"""put(b'[{"jsonrpc":"2.0","id":%d,"result":{}}]\n' % i)""", "batches are not part of the protocol"),
    ],
    ids=["bad UTF-8", "string id", "batch"],
)
async def test_an_answer_of_the_wrong_form_fails_its_call_alone_and_at_once(bench, answer, words):
    server = await bench.ready(
        hostile(
            """
            waiting = None
            for m in heard():
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
    with pytest.raises(ServerFailure, match=words):
        await server.call("echo", {})
    assert (await other).content[0].text == "done"


async def test_a_server_that_always_says_that_it_has_changed_is_not_listed_all_the_time(bench):
    server = await bench.ready(
        hostile("""
        n = 0
        for m in heard():
            if m.get("method") == "tools/list":
                n += 1
                send(method="notifications/tools/list_changed")
            if not greet(m): say(m["id"], str(n))
        """)
    )
    for _ in range(200):
        listed = int((await server.call("echo", {})).content[0].text)
    assert listed <= 3


# ── what reaches the log ────────────────────────────────────────────────────────────────────────

SECRET = ("TOKEN", "canary-5d1e")


async def test_what_a_server_logs_is_one_line_of_bounded_length(bench, caplog):
    caplog.set_level(logging.INFO)
    server = await bench.ready(
        hostile("""
        for m in heard():
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


async def test_a_request_that_breaks_the_protocol_is_refused_and_its_words_reach_no_log(bench, caplog):
    caplog.set_level(logging.DEBUG)
    server = await bench.ready(
        hostile(
            """
            asked = None
            for m in heard():
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


async def test_parameters_that_are_no_object_are_refused_without_a_word_of_them(bench, caplog):
    caplog.set_level(logging.DEBUG)
    server = await bench.ready(
        hostile(
            """
            asked = None
            for m in heard():
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


async def test_a_secret_of_several_lines_is_hidden_in_a_reason(bench):
    code = 'sys.stderr.write("cannot read " + os.environ["KEY"]); sys.stderr.flush(); os._exit(1)'
    server = bench.server(hostile(code, env=[("KEY", "-----BEGIN-----\r\ncanary-line\r\n-----END-----")]))
    await server.settled()
    assert "cannot read" in server.reason
    assert "canary" not in server.reason


# ── at an address ───────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def speaking_http(answer):
    """Serve HTTP by `answer(method, path, body, writer)`, which writes whatever it likes."""

    async def serve(reader, writer):
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


def reply(writer, message, status="200 OK", headers=""):
    body = json.dumps(message).encode() if message is not None else b""
    kind = f"Content-Type: application/json\r\n{headers}"
    writer.write(f"HTTP/1.1 {status}\r\n{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def greeting(message):
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return None


@pytest.mark.parametrize("trickled", ["head", "body"])
async def test_a_goodbye_that_is_answered_byte_by_byte_is_not_waited_for(bench, trickled, monkeypatch):
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


def events(writer, endpoint):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    writer.write(f"event: endpoint\ndata: {endpoint}\n\n".encode())


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://localhost.example/messages", "another origin"),
        ("//elsewhere.example/messages", "another origin"),
        ("http://[half", "no address"),
        ("http://127.0.0.1:99999999/", "no address"),
    ],
)
async def test_messages_are_posted_to_the_servers_own_origin_only(bench, endpoint, reason):
    async def answer(method, path, body, writer):
        events(writer, endpoint)

    async with speaking_http(answer) as address:
        server = bench.server(SseServer("older", f"{address}/sse"))
        await server.settled()
        assert server.state == "failed"
        assert reason in server.reason


async def test_an_answer_to_a_post_that_never_ends_holds_nothing_up(bench):
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


async def test_a_stop_at_any_moment_of_connecting_leaves_nothing_unawaited(bench, recwarn):
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
