"""The first page of `session/list` over many and over few sessions, with and without the index."""

import asyncio
import os
import statistics
import tempfile
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from time import perf_counter, time

from bench import commands
from bench.measure import Measure, Target
from bench.raw_agent import RawAgent
from bench.size import size
from dragoman.protocol.update_lines import update_lines
from dragoman.store import FileStore, Header
from dragoman.store.block import Draft, encode_header
from dragoman.store.naming import log_path, projects_path

MANY = size(10_000, 200)
FEW = 100
PROJECT_SESSIONS = 100
PAGE_SESSIONS = 100
REQUESTS = size(100, 5)
WARM_UP_REQUESTS = 5

# Recently changed directories are read again. In practice they are older.
AGE_S = 3600
APART_S = 60
"""The time between the last writes to two sessions."""

RECORDS = (
    ("config", b'{"mode":"ask","thoughts":true}'),
    ("turn", b'{"event":"start"}'),
    ("update", b'{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"What is this?"}}'),
    ("model", b'{"role":"user","content":[{"type":"text","text":"What is this?"}]}'),
    ("title", b'"What is this?"'),
    ("update", b'{"sessionUpdate":"session_info_update","title":"What is this?"}'),
    ("update", b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"A benchmark."}}'),
    ("model", b'{"role":"assistant","text":"A benchmark."}'),
    ("turn", b'{"event":"end","stopReason":"end_turn","title":"What is this?","messages":2}'),
)


@cache
def make_home(sessions: int) -> Path:
    """Write the logs of many sessions, a hundred per project. The store writes the first, the others are copies."""
    home = Path(tempfile.mkdtemp(dir=os.environ["DRAGOMAN_HOME"]))
    first = make_header(0)
    asyncio.run(write_session(home, first))
    for number in range(1, sessions):
        header = make_header(number)
        path = log_path(home, header.cwd, header.id)
        path.parent.mkdir(exist_ok=True)
        written = time() - AGE_S - APART_S * number
        path.write_bytes(make_log(header, int(1000 * written)))
        os.utime(path, (written, written))
    changed = time() - AGE_S
    for project in projects_path(home).iterdir():
        os.utime(project, (changed, changed))
    return home


def make_log(header: Header, time_ms: int) -> bytes:
    first, checksum = encode_header(header, time_ms)
    draft = Draft()
    for kind, data in RECORDS:
        if kind == "update":
            draft.add_lines(update_lines(header.id, [data]))
        else:
            draft.add_record(kind, data)
    return first + draft.seal(1, time_ms, checksum)[0]


def make_header(number: int) -> Header:
    created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Header(str(uuid.uuid4()), f"/project-{number // PROJECT_SESSIONS}", [], created)


async def write_session(home: Path, header: Header) -> None:
    store = FileStore(home)
    log = await store.create(header)
    for kind, data in RECORDS:
        if kind == "update":
            log.append(update_lines(header.id, [data]))
        else:
            log.record(kind, data)
    await store.close()


def time_warm_ms(sessions: int) -> float:
    """Send one agent many requests and return the median time."""
    with start_agent(make_home(sessions)) as agent:
        for _ in range(WARM_UP_REQUESTS):
            time_list_ms(agent)
        return statistics.median(time_list_ms(agent) for _ in range(REQUESTS))


def time_cold_ms(sessions: int) -> float:
    """Send one request without an index."""
    home = make_home(sessions)
    for index in home.glob("index.db*"):
        index.unlink()
    with start_agent(home) as agent:
        return time_list_ms(agent)


def start_agent(home: Path) -> RawAgent:
    agent = RawAgent(commands.dragoman("agent"), environment={"DRAGOMAN_HOME": str(home)})
    agent.initialize()
    return agent


def time_list_ms(agent: RawAgent) -> float:
    started = perf_counter()
    found = agent.call("session/list", {}).result["sessions"]
    seconds = perf_counter() - started
    if len(found) != PAGE_SESSIONS:
        raise RuntimeError(f"{len(found)} sessions were listed, not {PAGE_SESSIONS}")
    return 1000 * seconds


def contenders(measure_once: Callable[[int], float]) -> dict[str, Callable[[], float]]:
    return {f"over {sessions:,}": lambda sessions=sessions: measure_once(sessions) for sessions in (MANY, FEW)}


NAMES = tuple(contenders(time_warm_ms))

MEASURES = (
    Measure(
        part="list",
        title="first page of session/list",
        unit="ms",
        contenders=contenders(time_warm_ms),
        targets=(Target(*NAMES, "at most", 5.0),),
        rounds=7,
        quick_rounds=3,
    ),
    Measure(
        part="list",
        title="the same, its index lost",
        unit="ms",
        contenders=contenders(time_cold_ms),
        targets=(Target(*NAMES, "at most", 3.0),),
        rounds=5,
        quick_rounds=2,
    ),
)
