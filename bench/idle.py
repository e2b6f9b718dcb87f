"""The cost of an idle loaded session: the growth of the agent with 1,000 of them."""

import asyncio
import os
import tempfile
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from bench import commands
from bench.measure import Measure, Target
from bench.raw_agent import RawAgent
from bench.size import size
from dragoman.protocol.update_lines import rename_session
from dragoman.store import FileStore, Header

SESSIONS = size(1000, 5)
WARM_UP_SESSIONS = size(10, 1)  # excludes imports and other first-use work
TURNS = 3
CWD = "/"

OURS = "dragoman agent"
SCRIPT = """\
- - thought: They want to know what the function does, so I look at where it is called.
  - text: "It reads the next line, and it returns None "
  - text: when there is none.
    repeat: 20
  - usage: {input: 1200, output: 45}
"""
PROMPT = [{"type": "text", "text": "What does this function return when the file has ended?"}]


@cache
def make_sessions() -> tuple[Path, tuple[str, ...]]:
    """Run a few turns with the real agent, and copy them into the necessary number of sessions."""
    home = Path(tempfile.mkdtemp(dir=os.environ["DRAGOMAN_HOME"]))
    script = home / "script.yaml"
    script.write_text(SCRIPT)
    command = commands.dragoman("agent", "--model", f"script:{script}")
    with RawAgent(command, environment={"DRAGOMAN_HOME": str(home)}) as agent:
        agent.initialize()
        session_id = agent.call("session/new", {"cwd": CWD, "mcpServers": []}).result["sessionId"]
        for _ in range(TURNS):
            agent.call("session/prompt", {"sessionId": session_id, "prompt": PROMPT})
    return home, asyncio.run(copy_session(home, session_id))


async def copy_session(home: Path, session_id: str) -> tuple[str, ...]:
    store = FileStore(home)
    copies = tuple(str(uuid.uuid4()) for _ in range(WARM_UP_SESSIONS + SESSIONS))
    for copy in copies:
        header = Header(copy, CWD, [], datetime.now(UTC).isoformat().replace("+00:00", "Z"))
        await store.fork(session_id, header, lambda lines, copy=copy: rename_session(lines, session_id, copy))
    await store.close()
    return copies


def measure_session_kb() -> float:
    """Load the sessions in one agent. Return the growth per session in thousands of bytes."""
    home, sessions = make_sessions()
    with RawAgent(commands.dragoman("agent"), environment={"DRAGOMAN_HOME": str(home)}) as agent:
        agent.initialize()
        load(agent, sessions[:WARM_UP_SESSIONS])
        before = agent.read_rss_bytes()
        load(agent, sessions[WARM_UP_SESSIONS:])
        return (agent.read_rss_bytes() - before) / SESSIONS / 1000


def load(agent: RawAgent, sessions: tuple[str, ...]) -> None:
    for session_id in sessions:
        answer = agent.call("session/load", {"sessionId": session_id, "cwd": CWD, "mcpServers": []})
        if not answer.notifications:
            raise RuntimeError(f"session {session_id} has nothing in it")


MEASURES = (
    Measure(
        part="idle",
        title="1,000 idle loaded sessions, each",
        unit="KB",
        contenders={OURS: measure_session_kb},
        targets=(Target(OURS, None, "at most", 50.0),),
        rounds=3,
        quick_rounds=1,
    ),
)
