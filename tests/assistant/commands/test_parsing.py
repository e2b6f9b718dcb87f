"""What stands behind `/mcp add` and `/server:prompt`."""

import pytest

from dragoman.agent.commands.mcp_command import parse_server
from dragoman.agent.commands.mcp_prompts import read_arguments
from dragoman.errors import ServerFailure
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer
from dragoman.mcp.info import PromptArgument


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
def test_a_server_is_read_from_the_words_of_a_person(words, server):
    assert parse_server(words) == server


@pytest.mark.parametrize("words", ["alone", "x A=1", "x 'open"])
def test_words_that_name_no_server_are_refused_with_what_was_expected(words):
    with pytest.raises(ServerFailure, match="/mcp add NAME"):
        parse_server(words)


CITY, STATE, NOTE = PromptArgument("city", required=True), PromptArgument("state"), PromptArgument("note")


@pytest.mark.parametrize(
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
def test_arguments_are_read_by_name_and_by_place(wanted, words, given):
    assert read_arguments(wanted, words) == given


@pytest.mark.parametrize(
    ("wanted", "words", "problem"),
    [
        ([CITY], "", "city must be given"),
        ([], "too much", "too much"),
        ([CITY, STATE], "state=MA", "city must be given"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(wanted, words, problem):
    with pytest.raises(ServerFailure, match=problem):
        read_arguments(wanted, words)
