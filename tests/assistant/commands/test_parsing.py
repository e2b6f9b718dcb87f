"""The arguments of `/mcp add` and `/server:prompt`."""

import pytest

from dragoman.agent.commands.mcp_command import parse_server
from dragoman.agent.commands.mcp_prompts import read_arguments
from dragoman.errors import McpServerError
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer
from dragoman.mcp.info import PromptArgument
from tests.table import each_row


@pytest.mark.parametrize(
    ("words", "server"),
    [
        ("time uvx mcp-server-time", StdioServer("time", "uvx", ("mcp-server-time",))),
        ("x KEY='a b' A=1 cmd K=2", StdioServer("x", "cmd", ("K=2",), (("KEY", "a b"), ("A", "1")))),
        ("'my server' '/a b/c'", StdioServer("my server", "/a b/c")),
        ("web https://example.invalid/mcp", HttpServer("web", "https://example.invalid/mcp")),
        ("web --sse http://localhost:1/sse", SseServer("web", "http://localhost:1/sse")),
    ],
)
def test_server_is_parsed_from_typed_words(words, server):
    assert parse_server(words) == server


@pytest.mark.parametrize("words", ["alone", "x A=1", "x 'open"])
def test_words_without_a_server_are_refused_with_the_expected_form(words):
    with pytest.raises(McpServerError, match="/mcp add NAME"):
        parse_server(words)


CITY, STATE, NOTE = PromptArgument("city", required=True), PromptArgument("state"), PromptArgument("note")


@each_row(
    ("wanted", "words", "given"),
    [
        ([], "", {}),
        ([CITY], "New York", {"city": "New York"}),
        ([CITY, STATE], "Boston MA", {"city": "Boston", "state": "MA"}),
        ([CITY, STATE], "state=MA Boston", {"city": "Boston", "state": "MA"}),
        ([CITY, STATE], "'New York'", {"city": "New York"}),
        ([CITY, STATE, NOTE], "Boston MA by the sea", {"city": "Boston", "state": "MA", "note": "by the sea"}),
        ([CITY], "it's", {"city": "it's"}),
        ([CITY], "a=b", {"city": "a=b"}),
    ],
)
def test_arguments_are_read_by_name_and_by_position(wanted, words, given):
    assert read_arguments(wanted, words) == given


@pytest.mark.parametrize(
    ("wanted", "words", "problem"),
    [
        ([CITY], "", "missing: city"),
        ([], "too much", "is not an argument"),
        ([CITY, STATE], "state=MA", "missing: city"),
    ],
)
def test_unfitting_arguments_are_refused_with_a_message(wanted, words, problem):
    with pytest.raises(McpServerError, match=problem):
        read_arguments(wanted, words)
