"""The rows of the table in `docs/performance.md`: what is measured, the peer, and the target.

A row names a measure by its part and title, and two of its contenders. The results contain many more figures.
"""

from typing import Literal

import msgspec

from bench.measure import PYTHON_SDK, TYPESCRIPT_SDK

AGENT = "dragoman agent"
KIT = "kit agent"
BRIDGE = "dragoman serve"
STDIO_TO_WS = "stdio-to-ws (npm)"


class Row(msgspec.Struct, frozen=True):
    """One line of the table. `theirs` is None if the figure itself has a target."""

    label: str
    part: str
    title: str
    ours: str
    theirs: str | None
    relation: Literal["at most", "at least"]
    target: float
    against: str = ""
    """The name of the other side in the table, by default the measure's name for it."""
    unit: str = ""
    """The unit of a target that is a figure."""


class Section(msgspec.Struct, frozen=True):
    """A group of rows."""

    title: str
    rows: tuple[Row, ...]


_START = ("start", "spawn to initialize")
_NEW = ("session", "spawn to session/new")
_STREAM = ("stream", "50,000 chunks, back to back")
_REPLAY = ("replay", "load of 100,000 updates")
_BRIDGE = ("bridge", "50,000 chunks through a bridge")

_STORE_STREAM = ("store", "50,000 chunks through one node")

_KIT_START = ("kit", "spawn to initialize, an agent of the kit")
_KIT_STREAM = ("kit", "50,000 chunks from an agent of the kit")
_KIT_TURN = ("kit", "round trip to an agent of the kit, p50")

START_ROW = Row("start, to the answer to `initialize`", *_START, AGENT, PYTHON_SDK, "at most", 0.25)
STREAM_ROW = Row("50,000 chunks streamed", *_STREAM, "dragoman", PYTHON_SDK, "at least", 20.0)

SECTIONS = (
    Section(
        "The agent",
        (
            START_ROW,
            Row("… ", *_START, AGENT, TYPESCRIPT_SDK, "at most", 1.0),
            Row("start, to the answer to `session/new`", *_NEW, AGENT, "pydantic-acp", "at most", 0.25),
            Row("memory after `initialize`", "memory", "memory after initialize", AGENT, PYTHON_SDK, "at most", 0.55),
            STREAM_ROW,
            Row(
                "… with the log on",
                "log",
                "50,000 chunks, with and without a log",
                "dragoman agent, log on",
                "the same without a log",
                "at least",
                0.9,
                "no log",
            ),
            Row("round trip, p50", "roundtrip", "round trip, p50", "dragoman", PYTHON_SDK, "at most", 1 / 3),
            Row(
                "… both processes on one core",
                "roundtrip",
                "round trip on one core, p50",
                "dragoman",
                PYTHON_SDK,
                "at most",
                1 / 3,
            ),
        ),
    ),
    Section(
        "Sessions",
        (
            Row(
                "`session/load` of 100,000 updates",
                *_REPLAY,
                AGENT,
                "limit: copy through a pipe",
                "at least",
                0.5,
                "a copy through a pipe",
            ),
            Row(
                "first page of `session/list`, of 10,000",
                "list",
                "first page of session/list",
                "over 10,000",
                "over 100",
                "at most",
                5.0,
                "of 100",
            ),
            Row(
                "… its index lost",
                "list",
                "the same, its index lost",
                "over 10,000",
                "over 100",
                "at most",
                3.0,
                "of 100",
            ),
            Row(
                "an idle loaded session",
                "idle",
                "1,000 idle loaded sessions, each",
                AGENT,
                None,
                "at most",
                50.0,
                unit="KB",
            ),
        ),
    ),
    Section(
        "The kit",
        (
            Row("start of an agent made with it", *_KIT_START, KIT, AGENT, "at most", 1.1),
            Row("… ", *_KIT_START, KIT, PYTHON_SDK, "at most", 0.25),
            Row("50,000 chunks from it, its log on", *_KIT_STREAM, KIT, AGENT, "at least", 0.9),
            Row("… ", *_KIT_STREAM, KIT, PYTHON_SDK, "at least", 10.0),
            Row("a turn of one word, on the disk, p50", *_KIT_TURN, KIT, AGENT, "at most", 1.1),
        ),
    ),
    Section(
        "MCP servers",
        (
            Row("a call of a tool", "mcp", "a call of an MCP tool", "dragoman", "bare mcp client", "at most", 1.2),
            Row(
                "a call by MCP 2026-07-28",
                "mcp",
                "a call in each era of MCP",
                "2026-07-28",
                "2025-11-25",
                "at most",
                1.1,
                "MCP 2025-11-25",
            ),
        ),
    ),
    Section(
        "The client",
        (
            Row(
                "50,000 updates read",
                "client",
                "50,000 updates read by a client",
                "dragoman.client",
                PYTHON_SDK,
                "at least",
                10.0,
            ),
        ),
    ),
    Section(
        "The bridge",
        (
            Row("50,000 chunks through it", *_BRIDGE, BRIDGE, "direct stdio", "at least", 0.75),
            Row("… ", *_BRIDGE, BRIDGE, STDIO_TO_WS, "at least", 1.0, "`stdio-to-ws`"),
            Row(
                "round trip through it, p50",
                "bridge",
                "round trip through a bridge, p50",
                BRIDGE,
                STDIO_TO_WS,
                "at most",
                0.9,
                "`stdio-to-ws`",
            ),
            Row(
                "one session to 100 viewers",
                "bridge",
                "one session to 100 viewers, 1,000 chunks",
                BRIDGE,
                None,
                "at least",
                1086.0,
                unit="k msg/s",
            ),
            Row(
                "chunks of an agent of ACP 1 to a viewer of ACP 2",
                "versions",
                "50,000 chunks of an agent of version 1",
                "translated",
                "the same version",
                "at least",
                0.5,
            ),
            Row(
                "chunks of an agent of ACP 2 to a viewer of ACP 1",
                "versions",
                "50,000 chunks of an agent of version 2",
                "translated",
                "the same version",
                "at least",
                0.5,
            ),
        ),
    ),
    Section(
        "Sessions in PostgreSQL",
        (
            Row("50,000 chunks through one node", *_STORE_STREAM, "PostgreSQL", "files", "at least", 0.5),
            Row(
                "latency added to an update, p50",
                "store",
                "latency that the database adds to an update, p50",
                "PostgreSQL",
                None,
                "at most",
                2.0,
                unit="commits",
            ),
            Row(
                "one session to 10 viewers on another node",
                "store",
                "one session to 10 viewers, 5,000 chunks",
                "PostgreSQL, viewers on another node",
                "files",
                "at least",
                0.3,
            ),
            Row(
                "first page of `session/list`, of 10,000",
                "store",
                "first page of session/list from a database",
                "over 10,000",
                "over 100",
                "at most",
                2.0,
                "of 100",
            ),
        ),
    ),
    Section(
        "The tap",
        (
            Row(
                "20,000 messages a second, judged",
                "tap",
                "20,000 messages a second through a proxy",
                "tap, judging live",
                "a pump in Python",
                "at least",
                0.95,
            ),
        ),
    ),
)
