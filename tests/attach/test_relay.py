"""A relay with a server that sends invalid messages. The editor keeps working."""

import json

from dragoman.attach.relay import Relay, RelayLimits, RelayState
from dragoman.wire import memory_pair


class StrangeServer:
    """The server's end of a connection, with the received requests."""

    def __init__(self):
        self.asked = []

    def write(self, line):
        self.asked.append(json.loads(line))

    def drop(self, reason):
        raise AssertionError(reason)

    def answer(self, relay, **result):
        reply = {"jsonrpc": "2.0", "id": self.asked[-1]["id"], "result": result}
        relay.from_bridge(json.dumps(reply).encode())


class Editor:
    """The editor's end, with all lines written to it."""

    def __init__(self):
        self.written = []

    def write(self, data):
        self.written.append(data)


def ask(relay, id_, method, **params):
    relay.from_editor(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode())


async def test_editor_gets_only_messages_and_each_answer_once():
    editor, told, server = Editor(), [], StrangeServer()
    relay = Relay(editor, "somewhere", RelayLimits(), told.append)
    relay.connected(server)
    ask(relay, 1, "initialize", protocolVersion=1)
    for _ in range(2):
        server.answer(relay, protocolVersion=1)
    update = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{}}}'
    ask(relay, 2, "session/list")
    for line in (
        b'nonsense "session/update"',
        update[:-1],
        update + update,
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":2,"result":{"kind":"session/update"}}',
        b'{"jsonrpc":"2.0","id":2,"result":{"kind":"session/update"}}',
        update.replace(b"{", b"{\n"),
    ):
        relay.from_bridge(line)
    got = [json.loads(line) for line in b"".join(editor.written).splitlines()]
    assert [message.get("id", message.get("method")) for message in got] == [1, 2, "session/update"]
    assert len(told) == 6


async def test_invalid_marks_do_not_stop_the_editor():
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


async def test_editor_may_send_messages_up_to_the_bridges_limit():
    editor, _ = memory_pair()
    relay, server = Relay(editor, "somewhere", RelayLimits(), print), StrangeServer()
    relay.connected(server)
    ask(relay, 1, "initialize", protocolVersion=1)
    server.answer(relay, protocolVersion=1)
    ask(relay, 2, "session/prompt", sessionId="s", prompt=[{"type": "text", "text": "x" * 20 * 1024 * 1024}])
    assert server.asked[-1]["method"] == "session/prompt"
