"""A relay with a server that says strange things: the editor goes on."""

import json

from dragoman.attach.relay import Relay, RelayLimits, RelayState
from dragoman.wire import memory_pair


class StrangeServer:
    """The end of a connection, with the requests that came over it."""

    def __init__(self):
        self.asked = []

    def write(self, line):
        self.asked.append(json.loads(line))

    def drop(self, reason):
        raise AssertionError(reason)

    def answer(self, relay, **result):
        reply = {"jsonrpc": "2.0", "id": self.asked[-1]["id"], "result": result}
        relay.from_bridge(json.dumps(reply).encode())


def ask(relay, id_, method, **params):
    relay.from_editor(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode())


async def test_marks_that_mean_nothing_stop_no_editor():
    editor, _ = memory_pair()
    told = []
    relay, first, second = Relay(editor, "somewhere", RelayLimits(), told.append), StrangeServer(), StrangeServer()
    relay.connected(first)
    ask(relay, 1, "initialize", protocolVersion=1)
    first.answer(relay, protocolVersion=1, _meta={"dragoman": {"cursors": True}})
    ask(relay, 2, "session/new", cwd="/work", mcpServers=[])
    first.answer(relay, sessionId="s", _meta={"dragoman": {"cursor": "e.1"}})
    relay.lost("cut")
    relay.connected(second)
    second.answer(relay, protocolVersion=1)
    assert second.asked[-1]["method"] == "session/resume"
    second.answer(relay, _meta={"dragoman": {"cursor": "e.2", "asked": "several"}})
    relay.from_bridge(b'{"jsonrpc":"2.0","method":"session/update","params":{"dragoman')
    ask(relay, 3, "session/prompt", sessionId="s", prompt=[])
    assert (relay.state, second.asked[-1]["method"]) == (RelayState.OPEN, "session/prompt")
