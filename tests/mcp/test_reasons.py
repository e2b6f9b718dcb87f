"""A server at a URL with invalid responses fails with a readable reason, without affecting others."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dragoman.errors import McpServerError
from dragoman.mcp.definition import HttpServer, SseServer
from tests.mcp.connecting import Answers
from tests.mcp.servers.commands import scripted_http

PAGE = b"<!doctype html><title>Sign in</title>"


@contextmanager
def always(status, media_type, body, seen=None):
    """Answer every request the same way and record its headers."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            if seen is not None:
                seen.append(list(self.headers.items()))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            if media_type:
                self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize(
    ("make", "status", "media_type", "body", "words"),
    [
        (
            HttpServer,
            403,
            "application/json",
            b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Invalid host"}}',
            "Invalid host (HTTP 403)",
        ),
        (HttpServer, 200, "application/json", b"", "with an empty body; expected JSON or an event stream"),
        (HttpServer, 200, "", b"", "with an empty body; expected JSON or an event stream"),
        (HttpServer, 200, "text/html", PAGE, "this is a web page, not an MCP server: check the path"),
        (SseServer, 200, "text/html", PAGE, "this is a web page, not an MCP server: check the path"),
        (
            HttpServer,
            429,
            "application/json",
            b'{"message": "come back later"}',
            "HTTP 429; its message: come back later",
        ),
        (HttpServer, 400, "application/json", b'{"detail": "no such tenant"}', "its message: no such tenant"),
    ],
)
async def test_invalid_response_becomes_a_readable_reason(bench, make, status, media_type, body, words):
    with always(status, media_type, body) as address:
        server = bench.server(make("web", address))
        await server.settled()
        assert server.state == "failed"
        assert words in server.reason
        with pytest.raises(McpServerError, match="web"):
            await server.call("echo", {})


async def test_failed_call_names_its_server(bench):
    server = await bench.ready()
    with pytest.raises(McpServerError, match=r"^one: no such tool: nowhere"):
        await server.call("nowhere", {})


async def test_repeated_header_names_are_all_sent(bench):
    seen = []
    with always(500, "", b"", seen) as address:
        server = bench.server(HttpServer("web", address, (("X-Scope", "a"), ("X-Scope", "b"))))
        await server.settled()
    assert [value for name, value in seen[0] if name.lower() == "x-scope"] == ["a", "b"]


async def test_a_tool_without_a_name_is_left_out_with_a_warning(bench, caplog):
    schema = {"type": "object"}
    server = await bench.ready(tools=[{"name": "good", "inputSchema": schema}, {"name": "", "inputSchema": schema}])
    assert [tool.name for tool in server.tools] == ["good"]
    assert "lists one of its tools in a wrong shape" in caplog.text


@pytest.mark.parametrize(("options", "place"), [({"tool_count": 100}, "list"), ({"result_bytes": 50_000}, "call")])
async def test_bodies_and_events_over_http_are_bounded(bench, monkeypatch, options, place):
    monkeypatch.setattr("dragoman.mcp.streamable_http.MAX_LINE_BYTES", 5_000)
    with scripted_http(options) as address:
        server = bench.server(HttpServer("web", f"{address}/mcp"))
        await server.settled()
        if place == "list":
            assert "its answer is longer than the limit of 5000 bytes" in server.reason
        else:
            with pytest.raises(McpServerError, match="longer than the limit of 5000 bytes"):
                await server.call("echo", {})


async def test_omitted_form_field_has_its_default(bench):
    fields = {"size": {"type": "string", "default": "XL"}, "colour": {"type": "string"}}
    question = {"message": "?", "requestedSchema": {"type": "object", "properties": fields}}
    answers = Answers(elicited={"action": "accept", "content": {"colour": "red"}})
    server = await bench.ready(host=answers, elicit=question)
    assert '{"size": "XL", "colour": "red"}' in (await server.call("echo", {})).content[0].text
