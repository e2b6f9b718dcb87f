"""`dragoman tap --proxy` in a conductor's chain: line by line, and as a real process among others."""

import json
import subprocess
import sys

import pytest

from dragoman.check.tap.chain_proxy import ChainProxy
from dragoman.check.tap.feed import FrameKind
from dragoman.client import connect, read_trajectory
from dragoman.client.policies import allow_all
from dragoman.errors import ErrorCode
from dragoman.testing import steps
from dragoman.wire.framing import Oversized
from tests.commands import scripted
from tests.interop.peers import PEERS

TAP = [sys.executable, "-m", "dragoman", "tap", "--proxy"]
HELLO = {"id": "c1", "method": "proxy/initialize", "params": {"protocolVersion": 1, "_meta": {"a": 1}}}


class Line:
    """A proxy that relays single lines."""

    def __init__(self, *, is_in_chain=True):
        self._proxy = ChainProxy()
        if is_in_chain:
            self.relay_message(HELLO)

    def relay_message(self, message):
        """Return the message for the conductor, the recorded side and the recorded message."""
        line = message if isinstance(message, bytes | Oversized) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        relayed = self._proxy.relay(line)
        sent = json.loads(relayed.line) if relayed.line else None
        return sent, relayed.kind, json.loads(relayed.shown) if relayed.shown else None


def wrapped(method, id_=None, **inner):
    head = {} if id_ is None else {"id": id_}
    return {"jsonrpc": "2.0", **head, "method": "proxy/successor", "params": {"method": method, **inner}}


def test_proxy_initialize_is_forwarded_as_initialize():
    proxy = Line(is_in_chain=False)
    sent, kind, shown = proxy.relay_message(HELLO)
    assert sent == wrapped("initialize", 1, params=HELLO["params"])
    assert (kind, shown) == (FrameKind.CLIENT, {"jsonrpc": "2.0", **HELLO, "method": "initialize"})
    result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "unknown": None}
    answer = {"jsonrpc": "2.0", "id": "c1", "result": result}
    assert proxy.relay_message({"id": 1, "result": result}) == (answer, FrameKind.AGENT, answer)


def test_predecessors_request_is_wrapped_and_its_error_unchanged():
    proxy = Line()
    request = {"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"cwd": "/", "_meta": {"x": 1}}}
    sent, kind, shown = proxy.relay_message(request)
    assert sent == wrapped("session/new", 2, params=request["params"])
    assert (kind, shown) == (FrameKind.CLIENT, request)
    error = {"code": -32000, "message": "login\nfirst", "data": {"why": None}, "extra": [1]}
    sent, kind, _ = proxy.relay_message({"id": 2, "error": error})
    assert (sent["id"], sent["error"], kind) == (7, error, FrameKind.AGENT)


def test_successors_request_is_unwrapped_and_answered():
    proxy = Line()
    question = {"sessionId": "s", "_meta": {"inner": True}}
    sent, kind, shown = proxy.relay_message(
        wrapped("session/request_permission", "c9", params=question, _meta={"hop": 1})
    )
    plain = {"jsonrpc": "2.0", "id": 2, "method": "session/request_permission", "params": question}
    assert (sent, kind, shown) == (plain, FrameKind.AGENT, plain)
    sent, kind, shown = proxy.relay_message({"id": 2, "result": {"outcome": {"outcome": "cancelled"}}})
    assert sent == {"jsonrpc": "2.0", "id": "c9", "result": {"outcome": {"outcome": "cancelled"}}}
    assert (kind, shown["id"]) == (FrameKind.CLIENT, 2)


@pytest.mark.parametrize("params", [{}, {"params": None}])
def test_message_without_params_is_forwarded_without_params(params):
    proxy = Line()
    assert proxy.relay_message({"method": "_ext/note", **params})[0] == wrapped("_ext/note")
    assert proxy.relay_message(wrapped("_ext/note", **params))[0] == {"jsonrpc": "2.0", "method": "_ext/note"}


def test_array_params_are_forwarded_unchanged():
    assert Line().relay_message({"method": "_ext/note", "params": [1, 2]})[0] == wrapped("_ext/note", params=[1, 2])


def test_cancellation_names_the_next_hops_request():
    proxy = Line()
    proxy.relay_message({"id": "down", "method": "session/prompt", "params": {}})
    proxy.relay_message(wrapped("session/request_permission", "up", params={}))
    sent, kind, shown = proxy.relay_message({"method": "$/cancel_request", "params": {"requestId": "down"}})
    assert (sent["method"], sent["params"]) == ("$/cancel_request", {"requestId": 2})
    assert (kind, shown["params"]) == (FrameKind.CLIENT, {"requestId": "down"})
    sent, kind, shown = proxy.relay_message({"method": "$/cancel_request", "params": {"requestId": "up"}})
    assert (sent["params"], kind, shown["params"]) == ({"requestId": 3}, FrameKind.AGENT, {"requestId": 3})
    proxy.relay_message({"id": 2, "result": {}})
    for over in ("down", "never"):
        assert proxy.relay_message({"method": "$/cancel_request", "params": {"requestId": over}})[0] is None


def test_proxy_refuses_to_act_as_an_agent():
    proxy = Line(is_in_chain=False)
    for request in ({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}, wrapped("session/new", 1)):
        sent, _, shown = proxy.relay_message(request)
        assert sent["error"]["code"] == ErrorCode.INVALID_REQUEST
        assert "dragoman tap -- AGENT" in sent["error"]["message"]
        assert shown is None
    assert proxy.relay_message({"method": "session/cancel", "params": {}}) == (None, FrameKind.CLIENT, None)


def test_unforwardable_requests_are_refused_with_a_reason():
    proxy = Line()
    sent, _, _ = proxy.relay_message({"id": 5, "method": "proxy/successor", "params": {"params": {}}})
    assert (sent["id"], sent["error"]["code"]) == (5, ErrorCode.INVALID_PARAMS)
    assert proxy.relay_message({"method": "proxy/successor", "params": 3})[0] is None
    proxy.relay_message({"id": 6, "method": "session/list", "params": {}})
    sent, _, _ = proxy.relay_message({"id": 6, "method": "session/list", "params": {}})
    assert "still running" in sent["error"]["message"]
    assert proxy.relay_message(b'{"jsonrpc":"2.0","id":8}')[0]["error"]["code"] == ErrorCode.INVALID_REQUEST
    assert proxy.relay_message({"id": "nobody", "result": {}})[0] is None


def test_oversized_response_only_fails_its_request():
    proxy = Line()
    proxy.relay_message({"id": "big", "method": "session/list", "params": {}})
    line = json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"x": "y" * 20_000}}).encode()
    sent, kind, _ = proxy.relay_message(Oversized.of(line, 10_000))
    assert (sent["id"], sent["error"]["code"], kind) == ("big", ErrorCode.INTERNAL_ERROR, FrameKind.AGENT)
    assert proxy.relay_message({"id": "next", "method": "session/list", "params": {}})[0]["id"] == 3


# ── as a process in a chain ─────────────────────────────────────────────────────────────────────────


def chain(*components):
    return [sys.executable, str(PEERS / "conductor.py"), json.dumps([list(each) for each in components])]


def recorded(path):
    """Return the messages of a recording without their ids."""
    records = list(read_trajectory(path))
    return [(each.kind, {**each.message, "id": None}) for each in records if each.message]


async def test_two_taps_in_a_chain_record_the_same_conversation(tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    agent = scripted([steps.Say("a "), steps.AskPermission(), steps.Say("b")])
    command = chain([*TAP, "--record", str(first)], [*TAP, "--record", str(second)], agent)
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


async def test_turn_is_cancelled_through_a_chain(tmp_path):
    agent = scripted([steps.Say("a"), steps.WaitForCancel()])
    async with connect(chain(TAP, agent)) as connected:
        session = await connected.new_session(str(tmp_path))
        turn = session.prompt("go")
        async for _ in turn:
            turn.cancel()
        assert (await turn).stop_reason == "cancelled"


def test_proxy_started_without_a_chain_names_the_fix():
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(TAP, input=hello, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0
    assert "dragoman tap -- AGENT" in json.loads(done.stdout)["error"]["message"]


def test_proxy_option_excludes_an_agent_command():
    done = subprocess.run([*TAP, "--", "cat"], capture_output=True, timeout=30, check=False)
    assert done.returncode == 2
    assert b"takes no agent command" in done.stderr
