"""The trace of the Rust conductor: requests, responses and notifications between the components of a chain.

Each pair of neighbours is one conversation. The component nearer to the client is its client. MCP messages are skipped,
because they are not ACP.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.check.conversation import RecordedConversation, Side
from dragoman.check.trace.source import NumberedObject, Source

KINDS = frozenset({"request", "response", "notification"})

_METHODS = {"_proxy/initialize": "initialize"}
"""A proxy gets the same request under another name."""

_NUMBERED = re.compile(r"(\d+)")


def is_conductor(first: dict[str, Any]) -> bool:
    """Return whether the first object of a file is an event of such a trace."""
    return first.get("type") in KINDS and {"ts", "from", "to"} <= first.keys()


def read_conductor(source: Source) -> Iterator[RecordedConversation]:
    """Yield a conversation for each pair of neighbours. Raises TraceError."""
    conversations: dict[tuple[str, str], RecordedConversation] = {}
    foreign: set[str] = set()
    for number, event in source.objects():
        if not is_conductor(event):
            raise source.unreadable("expected an event with type, ts, from and to", number)
        key = msgspec.json.encode(event.get("id")).decode()
        if event.get("protocol") == "mcp":
            if event["type"] == "request":
                foreign.add(key)
            continue
        if event["type"] == "response" and key in foreign:
            foreign.discard(key)
            continue
        _add(source, NumberedObject(number, event), conversations)
    yield from conversations.values()


def _add(source: Source, event: NumberedObject, conversations: dict[tuple[str, str], RecordedConversation]) -> None:
    value = event.value
    start, end = str(value["from"]), str(value["to"])
    sender: Side = "client" if _place(start) < _place(end) else "agent"
    pair = (start, end) if sender == "client" else (end, start)
    conversation = conversations.setdefault(pair, RecordedConversation(f"{pair[0]} and {pair[1]}"))
    if not isinstance(value["ts"], (int, float)):
        raise source.unreadable("expected ts to be a number of seconds", event.number)
    conversation.add(sender, msgspec.json.encode(_message(value)), float(value["ts"]))


def _place(component: str) -> tuple[int, int]:
    """Return the position of a component in the chain: the client first, the agent last."""
    name = component.lower()
    if name.startswith(("client", "agent")):
        return (0 if name.startswith("client") else 2), 0
    number = _NUMBERED.search(name)
    return 1, int(number[1]) if number else 0


def _message(event: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if event["type"] != "notification":
        message["id"] = event.get("id")
    if event["type"] == "response":
        message["error" if event.get("is_error") else "result"] = event.get("payload")
        return message
    method = event.get("method")
    message["method"] = _METHODS.get(method, method) if isinstance(method, str) else method
    if event.get("params") is not None:
        message["params"] = event["params"]
    return message
