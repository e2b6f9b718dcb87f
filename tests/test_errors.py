"""The text that the user sees of the other side's error, in all forms in which peers send it."""

import pytest

from dragoman.errors import MAX_ERROR_CHARS, InvalidParamsError, RemoteError, RpcError
from dragoman.wire import error_object
from tests.table import each_row

INTERNAL, PARAMS, METHOD, AUTH, MISSING = -32603, -32602, -32601, -32000, -32002


@each_row(
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
def test_error_text_has_each_part_once(code, message, data, words):
    error = RemoteError("session/new", code, message, data)
    assert error.text == words
    assert str(error) == f"the answer to session/new is an error: {words}"
    assert (error.code, error.message, error.data) == (code, message, data)


@pytest.mark.parametrize(
    "error",
    [
        InvalidParamsError("params.modeId", "there is no such mode", expected="ask", got="zzz"),
        RpcError(INTERNAL, "there is no such mode"),
        RpcError(MISSING, {"sessionId": "s", "problem": "there is no such mode"}),
    ],
)
def test_our_own_error_is_shown_as_its_sentence(error):
    sent = error_object(error)
    assert RemoteError("m", sent.code, sent.message, sent.data).text == "there is no such mode"


def test_very_long_error_is_cut():
    words = RemoteError("m", INTERNAL, "Internal error", "x" * 1_000_000).text
    assert len(words) == MAX_ERROR_CHARS
    assert words.endswith("x…")
