"""A bridge killed in the middle of streaming: whatever a viewer saw is in the journal, and comes again in order."""

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
    """What one viewer saw of a session, over all its connections."""

    def __init__(self):
        self.session = None
        self.count = 0
        self.cursor = None
        self.was_reset = False

    def take(self, message):
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
    """Read some chunks, kill the bridge at once, and read what it had sent by then."""
    target = seen.count + count
    while seen.count < target:
        for message in viewer.take():
            seen.take(message)
    served.process.kill()
    served.process.wait()
    with suppress(Closed):
        while True:
            for message in viewer.take():
                seen.take(message)


def read_journal(home, session):
    """Give the numbers of the chunks in a session's journal, whose records must be in order, and whether it is torn."""
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
    """Come back where this viewer left, and take all that there is; give the answer."""
    number = viewer.load(seen.session, after=seen.cursor)
    for message in viewer.wait_for(number):
        seen.take(message)
        if message.get("id") == number and "method" not in message:
            answer = message
    return answer


def check_journal(home, seen):
    """See that the journal has all that was seen, and give how much it has, and whether it is torn."""
    journalled, is_torn = read_journal(home, seen.session)
    assert journalled == list(range(len(journalled)))
    assert len(journalled) >= seen.count
    return len(journalled), is_torn


@rounds
def test_a_journal_goes_on_where_a_viewer_was_when_the_bridge_was_killed(tmp_path, rounds):
    seen, journalled, is_torn = None, 0, False
    for _ in range(rounds + 1):
        with serving(tmp_path, agent=[sys.executable, str(AGENT)]) as served, closing(connect(served)) as viewer:
            if seen is not None:
                assert "result" in load(viewer, seen)
                assert seen.was_reset == is_torn  # nobody knows whether a torn journal has lost more than its end
                assert seen.count == journalled
                refused = viewer.wait_for(viewer.prompt(seen.session, endless()))[-1]
                assert "can only be read" in refused["error"]["data"], refused
            seen = Seen()
            seen.session = open_session(viewer)
            viewer.prompt(seen.session, endless())
            read_and_kill(served, viewer, seen, random.choice(COUNTS))
        journalled, is_torn = check_journal(tmp_path, seen)


@rounds
def test_a_session_that_the_agent_can_load_goes_on_in_its_journal_after_the_bridge_was_killed(tmp_path, rounds):
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
            viewer.take()
            served.process.kill()  # while the agent replays what it has
        assert check_journal(tmp_path, seen)[0] == journalled
