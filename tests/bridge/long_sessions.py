"""A journal with many updates, as an earlier run of the bridge would leave it."""

import hashlib
import json
from pathlib import Path

from dragoman.protocol.update_lines import update_lines
from dragoman.store.block import Draft, encode_header
from dragoman.store.history import make_header
from tests.bridge.earlier_sessions import NEWEST_MS

BLOCK_UPDATES = 200


def write_long_session(home, agent, session, updates, *, cwd="/earlier/long", title="Long"):
    """Write the journal of one session with these updates."""
    directory = Path(home) / "bridge" / agent
    directory.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(session.encode()).hexdigest()[:40]
    (directory / f"{name}.jsonl").write_bytes(make_long_history(session, cwd, title, updates))


def make_long_history(session, cwd, title, updates):
    header, checksum = encode_header(make_header(session, cwd, []), NEWEST_MS)
    blocks, last = [header], 0
    encoded = [json.dumps(update, separators=(",", ":")).encode() for update in updates]
    for at in range(0, len(encoded), BLOCK_UPDATES):
        draft = Draft()
        draft.add_lines(update_lines(session, encoded[at : at + BLOCK_UPDATES]))
        if at + BLOCK_UPDATES >= len(encoded):
            end = {"event": "end", "stopReason": "end_turn", "title": title, "messages": 1}
            draft.add_record("turn", b'{"event":"start"}')
            draft.add_record("turn", json.dumps(end).encode())
        block, checksum = draft.seal(last + 1, NEWEST_MS + at, checksum)
        blocks.append(block)
        last += len(encoded[at : at + BLOCK_UPDATES])
    return b"".join(blocks)


def turn_updates(number, count=50):
    """Return the updates of one turn: a question, a thought, a tool call, and an answer in chunks."""

    def text(kind, words):
        return {"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": words}}

    call = {"toolCallId": f"call-{number}", "title": f"Read file {number}", "kind": "read"}
    output = [{"type": "content", "content": {"type": "text", "text": f"line {number}\n" * 5}}]
    yield text("user_message", f"Question {number}")
    yield text("agent_thought", f"Think about {number}. ")
    yield {"sessionUpdate": "tool_call", **call, "status": "in_progress"}
    yield {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call["toolCallId"],
        "status": "completed",
        "content": output,
    }
    yield {"sessionUpdate": "plan", "entries": [{"content": "Step", "priority": "low", "status": "in_progress"}]}
    for word in range(count - 7):
        yield text("agent_message", f"word{number}-{word}{'. ' if word % 10 else '.' + chr(10) * 2}")
    yield {"sessionUpdate": "usage_update", "used": number, "size": 100_000}
    end = {"dragoman/turn": {"stopReason": "end_turn", "usage": {"totalTokens": number}}}
    yield {"sessionUpdate": "session_info_update", "_meta": end}


def long_updates(count):
    """Return at least `count` updates in turns of 50."""
    return [update for number in range(-(-count // 50)) for update in turn_updates(number)]
