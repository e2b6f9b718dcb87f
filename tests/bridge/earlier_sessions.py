"""Writes a home with the journals of many sessions, as an earlier run of the bridge would leave them."""

import hashlib
import json
from pathlib import Path

from dragoman.protocol.update_lines import update_lines
from dragoman.store.block import Draft, encode_header
from dragoman.store.history import make_header

NEWEST_MS = 1_760_000_000_000
APART_MS = 60_000
SAID = b'{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"What is this?"}}'


def write_sessions(home, agent, count, *, projects=1, labels=None):
    """Write `count` sessions, each a minute older than the one before. Return their ids, latest first."""
    directory = Path(home) / "bridge" / agent
    directory.mkdir(parents=True)
    ids = [f"earlier-{number}" for number in range(count)]
    for number, session in enumerate(ids):
        name = hashlib.sha256(session.encode()).hexdigest()[:40]
        made = make_history(session, f"/earlier/project-{number % projects}", f"Part {number}", number)
        (directory / f"{name}.jsonl").write_bytes(made)
    if labels is not None:
        (directory / "labels.json").write_text(json.dumps({ids[number]: label for number, label in labels.items()}))
    return ids


def make_history(session, cwd, title, number):
    time_ms = NEWEST_MS - APART_MS * number
    header, checksum = encode_header(make_header(session, cwd, []), time_ms)
    draft = Draft()
    draft.add_record("turn", b'{"event":"start"}')
    draft.add_lines(update_lines(session, [SAID]))
    end = {"event": "end", "stopReason": "end_turn", "title": title, "messages": 1}
    draft.add_record("turn", json.dumps(end).encode())
    return header + draft.seal(1, time_ms, checksum)[0]
