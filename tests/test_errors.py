"""What an error of the other side says to a person, whichever way it says it."""

import pytest

from dragoman.errors import MAX_WORDS, InvalidParams, RemoteError, RpcError
from dragoman.wire import error_object

INTERNAL, PARAMS, METHOD, AUTH, MISSING = -32603, -32602, -32601, -32000, -32002


@pytest.mark.parametrize(
    ("code", "message", "data", "words"),
    [
        (INTERNAL, "Internal error", None, "Internal error"),
        (INTERNAL, "Internal error", "the disk is full", "the disk is full"),
        (INTERNAL, "Internal error", {"details": "the disk is full"}, "the disk is full"),
        (INTERNAL, "Internal error", {"error": {"message": "the disk is full"}}, "the disk is full"),
        (INTERNAL, "Internal error", {"hint": {"a": 1}, "n": [2]}, "hint: a: 1; n: [2]"),
        (INTERNAL, "Internal error: the disk is full", {"problem": "the disk is full"}, "the disk is full"),
        (INTERNAL, "internal error. try again", None, "try again"),
        (INTERNAL, "the disk is full", {"disk": "/dev/sda"}, "the disk is full: disk: /dev/sda"),
        (INTERNAL, "the disk", "the disk is full", "the disk is full"),
        (INTERNAL, "the disk is full now", "the disk is full", "the disk is full now"),
        (INTERNAL, "Internal error: one two", "one\n  two", "one\n  two"),
        (INTERNAL, "Internal error: one tw…", "one\n  two", "one\n  two"),
        (INTERNAL, "", None, "Internal error"),
        (PARAMS, "Invalid params: no mode", {"path": "params.modeId", "problem": "no mode"}, "no mode"),
        (METHOD, "Method not found", {"method": "x/y"}, "Method not found: x/y"),
        (METHOD, '"Method not found": x/y', {"method": "x/y"}, "Method not found: x/y"),
        (METHOD, "Method not found: x/y", None, "Method not found: x/y"),
        (MISSING, "Resource not found: there is no session x", None, "there is no session x"),
        (MISSING, "Resource not found", {"uri": "/a"}, "Resource not found: /a"),
        (AUTH, "Authentication required", None, "Authentication required"),
        (AUTH, "Authentication required to go on", None, "Authentication required to go on"),
        (AUTH, "Authentication required", "Please run `auggie login` first", "Please run `auggie login` first"),
        (7, "Rate limited", None, "Rate limited"),
    ],
)
def test_an_answer_with_an_error_is_told_once_in_its_own_words(code, message, data, words):
    error = RemoteError("session/new", code, message, data)
    assert error.words == words
    assert str(error) == f"the answer to session/new is an error: {words}"
    assert (error.code, error.message, error.data) == (code, message, data)


@pytest.mark.parametrize(
    "error",
    [
        InvalidParams("params.modeId", "there is no such mode", expected="ask", got="zzz"),
        RpcError(INTERNAL, "there is no such mode"),
        RpcError(MISSING, {"sessionId": "s", "problem": "there is no such mode"}),
    ],
)
def test_what_we_send_comes_out_as_the_sentence_alone(error):
    sent = error_object(error)
    assert RemoteError("m", sent.code, sent.message, sent.data).words == "there is no such mode"


def test_an_endless_error_is_cut():
    words = RemoteError("m", INTERNAL, "Internal error", "x" * 1_000_000).words
    assert len(words) == MAX_WORDS
    assert words.endswith("x…")
