"""`dragoman tap --proxy` in the chain of a conductor: line by line, and as a real process among others."""

import json
import subprocess
import sys

import pytest

from dragoman.check.tap.chain_proxy import ChainProxy
from dragoman.check.tap.feed import FrameKind
from dragoman.client import allow_all, connect, read_trajectory
from dragoman.errors import ErrorCode
from dragoman.testing import steps
from dragoman.wire.framing import Oversized
from tests.commands import scripted
from tests.interop.peers import PEERS

TAP = [sys.executable, "-m", "dragoman", "tap", "--proxy"]
HELLO = {"id": "c1", "method": "proxy/initialize", "params": {"protocolVersion": 1, "_meta": {"a": 1}}}


class Line:
    """A proxy, and what becomes of lines."""

    def __init__(self, *, is_in_chain=True):
        self._proxy = ChainProxy()
        if is_in_chain:
            self.take(HELLO)

    def take(self, message):
        """Return the message for the conductor, and the one that is recorded with its side."""
        line = message if isinstance(message, bytes | Oversized) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        relayed = self._proxy.take(line)
        sent = json.loads(relayed.line) if relayed.line else None
        return sent, relayed.kind, json.loads(relayed.shown) if relayed.shown else None


def wrapped(method, id_=None, **inner):
    head = {} if id_ is None else {"id": id_}
    return {"jsonrpc": "2.0", **head, "method": "proxy/successor", "params": {"method": method, **inner}}


def test_proxy_initialize_is_passed_on_as_initialize_and_its_answer_is_not_changed():
    proxy = Line(is_in_chain=False)
    sent, kind, shown = proxy.take(HELLO)
    assert sent == wrapped("initialize", 1, params=HELLO["params"])
    assert (kind, shown) == (FrameKind.CLIENT, {"jsonrpc": "2.0", **HELLO, "method": "initialize"})
    result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "unknown": None}
    answer = {"jsonrpc": "2.0", "id": "c1", "result": result}
    assert proxy.take({"id": 1, "result": result}) == (answer, FrameKind.AGENT, answer)


def test_a_request_of_the_predecessor_is_wrapped_and_its_error_comes_back_unchanged():
    proxy = Line()
    request = {"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"cwd": "/", "_meta": {"x": 1}}}
    sent, kind, shown = proxy.take(request)
    assert sent == wrapped("session/new", 2, params=request["params"])
    assert (kind, shown) == (FrameKind.CLIENT, request)
    error = {"code": -32000, "message": "login\nfirst", "data": {"why": None}, "extra": [1]}
    sent, kind, _ = proxy.take({"id": 2, "error": error})
    assert (sent["id"], sent["error"], kind) == (7, error, FrameKind.AGENT)


def test_a_request_of_the_successor_is_unwrapped_and_its_answer_goes_back():
    proxy = Line()
    question = {"sessionId": "s", "_meta": {"inner": True}}
    sent, kind, shown = proxy.take(wrapped("session/request_permission", "c9", params=question, _meta={"hop": 1}))
    plain = {"jsonrpc": "2.0", "id": 2, "method": "session/request_permission", "params": question}
    assert (sent, kind, shown) == (plain, FrameKind.AGENT, plain)
    sent, kind, shown = proxy.take({"id": 2, "result": {"outcome": {"outcome": "cancelled"}}})
    assert sent == {"jsonrpc": "2.0", "id": "c9", "result": {"outcome": {"outcome": "cancelled"}}}
    assert (kind, shown["id"]) == (FrameKind.CLIENT, 2)


@pytest.mark.parametrize("params", [{}, {"params": None}])
def test_a_message_without_params_goes_on_without_any(params):
    proxy = Line()
    assert proxy.take({"method": "_ext/note", **params})[0] == wrapped("_ext/note")
    assert proxy.take(wrapped("_ext/note", **params))[0] == {"jsonrpc": "2.0", "method": "_ext/note"}


def test_an_array_of_params_goes_on_as_it_is():
    assert Line().take({"method": "_ext/note", "params": [1, 2]})[0] == wrapped("_ext/note", params=[1, 2])


def test_a_cancellation_names_the_request_of_the_next_hop_and_is_not_wrapped():
    proxy = Line()
    proxy.take({"id": "down", "method": "session/prompt", "params": {}})
    proxy.take(wrapped("session/request_permission", "up", params={}))
    sent, kind, shown = proxy.take({"method": "$/cancel_request", "params": {"requestId": "down"}})
    assert (sent["method"], sent["params"]) == ("$/cancel_request", {"requestId": 2})
    assert (kind, shown["params"]) == (FrameKind.CLIENT, {"requestId": "down"})
    sent, kind, shown = proxy.take({"method": "$/cancel_request", "params": {"requestId": "up"}})
    assert (sent["params"], kind, shown["params"]) == ({"requestId": 3}, FrameKind.AGENT, {"requestId": 3})
    proxy.take({"id": 2, "result": {}})
    for over in ("down", "never"):
        assert proxy.take({"method": "$/cancel_request", "params": {"requestId": over}})[0] is None


def test_an_agent_is_not_what_it_is():
    proxy = Line(is_in_chain=False)
    for request in ({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}, wrapped("session/new", 1)):
        sent, _, shown = proxy.take(request)
        assert sent["error"]["code"] == ErrorCode.INVALID_REQUEST
        assert "dragoman tap -- AGENT" in sent["error"]["message"]
        assert shown is None
    assert proxy.take({"method": "session/cancel", "params": {}}) == (None, FrameKind.CLIENT, None)


def test_requests_that_cannot_go_on_are_refused_in_words():
    proxy = Line()
    sent, _, _ = proxy.take({"id": 5, "method": "proxy/successor", "params": {"params": {}}})
    assert (sent["id"], sent["error"]["code"]) == (5, ErrorCode.INVALID_PARAMS)
    assert proxy.take({"method": "proxy/successor", "params": 3})[0] is None
    proxy.take({"id": 6, "method": "session/list", "params": {}})
    sent, _, _ = proxy.take({"id": 6, "method": "session/list", "params": {}})
    assert "still under way" in sent["error"]["message"]
    assert proxy.take(b'{"jsonrpc":"2.0","id":8}')[0]["error"]["code"] == ErrorCode.INVALID_REQUEST
    assert proxy.take({"id": "nobody", "result": {}})[0] is None


def test_an_answer_that_is_too_long_fails_its_request_alone():
    proxy = Line()
    proxy.take({"id": "big", "method": "session/list", "params": {}})
    line = json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"x": "y" * 20_000}}).encode()
    sent, kind, _ = proxy.take(Oversized.of(line, 10_000))
    assert (sent["id"], sent["error"]["code"], kind) == ("big", ErrorCode.INTERNAL_ERROR, FrameKind.AGENT)
    assert proxy.take({"id": "next", "method": "session/list", "params": {}})[0]["id"] == 3


# ── as a process in a chain ─────────────────────────────────────────────────────────────────────────


def chain(*components):
    return [sys.executable, str(PEERS / "conductor.py"), json.dumps([list(each) for each in components])]


def recorded(path):
    """Return the messages of a recording without their ids."""
    records = list(read_trajectory(path))
    return [(each.kind, {**each.message, "id": None}) for each in records if each.message]


async def test_two_taps_in_a_chain_change_nothing_and_record_the_same_conversation(tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    agent = scripted([steps.Say("a "), steps.AskPermission(), steps.Say("b")])
    command = chain([*TAP, "--output", str(first)], [*TAP, "--output", str(second)], agent)
    async with connect(command, policy=allow_all()) as connected:
        assert connected.info.name == "dragoman-scripted-agent"
        session = await connected.new_session(str(tmp_path))
        result = await session.run("go", timeout_s=30)
        assert result.text == "a outcome: selected yesb"
    conversation = recorded(first)
    assert conversation == recorded(second)
    assert conversation[0][1]["method"] == "initialize"
    assert "session/request_permission" in [message.get("method") for _, message in conversation]
    judged = subprocess.run(
        [sys.executable, "-m", "dragoman", "check", "trace", str(first)], capture_output=True, check=False, timeout=50
    )
    assert judged.returncode == 0, judged.stdout.decode()


async def test_a_turn_is_cancelled_through_a_chain(tmp_path):
    agent = scripted([steps.Say("a"), steps.WaitForCancel()])
    async with connect(chain(TAP, agent)) as connected:
        session = await connected.new_session(str(tmp_path))
        turn = session.prompt("go")
        async for _ in turn:
            turn.cancel()
        assert (await turn).stop_reason == "cancelled"


def test_started_by_hand_without_a_chain_it_says_what_to_do():
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(TAP, input=hello, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0
    assert "dragoman tap -- AGENT" in json.loads(done.stdout)["error"]["message"]


def test_a_proxy_has_no_agent_of_its_own():
    done = subprocess.run([*TAP, "--", "cat"], capture_output=True, timeout=30, check=False)
    assert done.returncode == 2
    assert b"no agent of its own" in done.stderr
