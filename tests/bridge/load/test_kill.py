"""A bridge killed during streaming: everything that a viewer saw is in the journal and is replayed in order."""

import json
import os
import random
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from dragoman.store.block_log import BlockReader, read_head
from dragoman.store.disk import Disk
from tests.bridge.guard.serving import serving
from tests.bridge.load.socket_viewer import CWD, Closed, SocketViewer

AGENT = Path(__file__).parent / "agents" / "tagging_agent.py"
ROUNDS, MANY_ROUNDS = 3, 200
COUNTS = (1, 10, 300, 2_000)

soak = pytest.mark.skipif(not os.environ.get("DRAGOMAN_SOAK"), reason="long: set DRAGOMAN_SOAK=1, or run make soak")
rounds = pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(MANY_ROUNDS, marks=[pytest.mark.soak, soak, pytest.mark.timeout(3600)])]
)


class Seen:
    """The chunks of a session that one viewer received over all its connections."""

    def __init__(self):
        self.session = None
        self.count = 0
        self.cursor = None
        self.was_reset = False

    def add(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "_dragoman/session" and params.get("reset"):
            self.count, self.was_reset = 0, True
        if method != "session/update" or params["sessionId"] != self.session:
            return
        self.cursor = params["_meta"]["dragoman"]["cursor"]
        if params["update"]["sessionUpdate"] == "agent_message_chunk":
            tag = json.loads(params["update"]["content"]["text"])
            assert (tag["session"], tag["n"]) == (self.session, self.count)
            self.count += 1


def connect(served):
    viewer = SocketViewer(served.acp.replace("http://", "ws://"), served.token)
    viewer.answer_to(viewer.initialize(marked=True))
    return viewer


def open_session(viewer):
    return viewer.answer_to(viewer.call("session/new", cwd=CWD, mcpServers=[]))["sessionId"]


def endless(first=0):
    return {"chunks": 1_000_000, "first": first, "pad": random.choice((0, 100, 5_000))}


def read_and_kill(served, viewer, seen, count):
    """Read some chunks, kill the bridge at once, and read the rest that it had sent."""
    target = seen.count + count
    while seen.count < target:
        for message in viewer.read():
            seen.add(message)
    served.process.kill()
    served.process.wait()
    with suppress(Closed):
        while True:
            for message in viewer.read():
                seen.add(message)


def read_history(home, session):
    """Return the chunk numbers in a session's journal, and whether it is torn. Check the order of its records."""
    for path in (home / "bridge").glob("*/*.jsonl"):
        with path.open("rb") as file:
            head = read_head(file.fileno(), path)
        if head.header.id != session:
            continue
        reader = BlockReader(Disk(), path, head.start, None)
        try:
            lines = []
            while blocks := reader.read():
                lines += [line for block in blocks for line in block.numbered_lines()]
        finally:
            reader.close()
        assert reader.damage is None or reader.damage.torn, reader.damage
        assert [seq for seq, _ in lines] == list(range(1, len(lines) + 1))
        messages = [json.loads(line) for _, line in lines if line.startswith(b'{"jsonrpc":')]
        updates = [message["params"]["update"] for message in messages]
        chunks = [one for one in updates if one["sessionUpdate"] == "agent_message_chunk"]
        return [json.loads(chunk["content"]["text"])["n"] for chunk in chunks], bool(reader.damage or reader.unsealed)
    raise AssertionError(f"session {session} has no journal")


def load(viewer, seen):
    """Load the session from this viewer's cursor, read everything and return the answer."""
    number = viewer.load(seen.session, after=seen.cursor)
    for message in viewer.wait_for(number):
        seen.add(message)
        if message.get("id") == number and "method" not in message:
            answer = message
    return answer


def check_journal(home, seen):
    """Check that the journal has all seen chunks. Return its number of chunks, and whether it is torn."""
    journalled, is_torn = read_history(home, seen.session)
    assert journalled == list(range(len(journalled)))
    assert len(journalled) >= seen.count
    return len(journalled), is_torn


@pytest.mark.extended
@rounds
def test_viewer_continues_after_the_bridge_is_killed(tmp_path, rounds):
    seen, journalled, is_torn = None, 0, False
    for _ in range(rounds + 1):
        with serving(tmp_path, agent=[sys.executable, str(AGENT)]) as served, closing(connect(served)) as viewer:
            if seen is not None:
                assert "result" in load(viewer, seen)
                assert seen.was_reset == is_torn  # a torn journal may have lost more than its end
                assert seen.count == journalled
                refused = viewer.wait_for(viewer.prompt(seen.session, endless()))[-1]
                assert "is read-only" in refused["error"]["data"], refused
            seen = Seen()
            seen.session = open_session(viewer)
            viewer.prompt(seen.session, endless())
            read_and_kill(served, viewer, seen, random.choice(COUNTS))
        journalled, is_torn = check_journal(tmp_path, seen)


@pytest.mark.extended
@rounds
def test_loadable_session_continues_after_the_bridge_is_killed(tmp_path, rounds):
    store = tmp_path / "store"
    store.mkdir()
    agent = [sys.executable, str(AGENT), str(store)]
    seen, journalled, was_torn = Seen(), 0, False
    for number in range(rounds + 1):
        with serving(tmp_path, agent=agent) as served, closing(connect(served)) as viewer:
            if number == 0:
                seen.session = open_session(viewer)
            else:
                seen.was_reset = False
                assert "result" in load(viewer, seen)
                assert seen.was_reset == was_torn
                assert seen.count == journalled
            viewer.prompt(seen.session, endless(first=seen.count))
            read_and_kill(served, viewer, seen, random.choice(COUNTS))
        journalled, was_torn = check_journal(tmp_path, seen)
        with serving(tmp_path, agent=agent) as served, closing(connect(served)) as viewer:
            viewer.load(seen.session)
            viewer.read()
            served.process.kill()  # while the agent replays its chunks
        assert check_journal(tmp_path, seen)[0] == journalled
