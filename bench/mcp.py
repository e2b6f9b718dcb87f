"""The time from `session/new` until the tools of its MCP servers are usable, and the cost per session and process.

Servers that only wait show whether one delays another. Real servers, which are busy while they start, show how much CPU
time we take from them. A hanging server must not delay the response to `session/new`.
"""

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter

from bench import commands, mcp_call
from bench.commands import Command
from bench.mcp_servers import clock, hung, name_servers, scripted, time_bare_s, waiting
from bench.measure import Measure, Target
from bench.memory import MIB
from bench.size import size
from bench.watched_agent import WatchedAgent

COUNTS = (1, 4, 16)
WAIT_S = 1.0
SESSIONS = size(20, 2)
WITHIN_NOISE = 1.1

CWD = str(commands.ROOT)


def start_agent() -> WatchedAgent:
    agent = WatchedAgent(commands.dragoman("agent"))
    agent.initialize()
    return agent


def time_ready_ms(command: Command, count: int) -> float:
    """Return the time from the first `session/new` of a process until all servers are ready."""
    with start_agent() as agent:
        started = perf_counter()
        agent.open_ready_session(CWD, name_servers(command, count))
        return 1000 * (perf_counter() - started)


def time_first_session_ms(servers: Sequence[Command]) -> float:
    """Return the response time of the first `session/new` of a process."""
    with start_agent() as agent:
        return time_session_ms(agent, servers)


def time_later_session_ms(servers: Sequence[Command]) -> float:
    """Return the response time of a second `session/new`, while the servers of the first session are running."""
    with start_agent() as agent:
        agent.open_ready_session(CWD, name_servers(scripted()))
        return statistics.median(time_session_ms(agent, servers) for _ in range(SESSIONS))


def time_session_ms(agent: WatchedAgent, servers: Sequence[Command]) -> float:
    named = [server for command in servers for server in name_servers(command)]
    started = perf_counter()
    agent.open_session(CWD, named)
    return 1000 * (perf_counter() - started)


def measure_rss_mib(count: int) -> float:
    """Return the resident memory of an agent when `count` servers are ready."""
    with start_agent() as agent:
        if count:
            agent.open_ready_session(CWD, name_servers(scripted(), count))
        else:
            agent.open_session(CWD, [])
        return agent.read_rss_bytes() / MIB


def ours(count: int) -> str:
    return f"dragoman, {count}"


def bare(count: int) -> str:
    return f"bare processes, {count}"


def starting(make: Callable[[], Command], counts: Sequence[int]) -> dict[str, Callable[[], float]]:
    """Return the contenders that start servers, ours and bare ones in turns."""
    contenders: dict[str, Callable[[], float]] = {}
    for count in counts:
        contenders[bare(count)] = lambda count=count: 1000 * time_bare_s(make(), count)
        contenders[ours(count)] = lambda count=count: time_ready_ms(make(), count)
    return contenders


def answering(time_ms: Callable[[Sequence[Command]], float]) -> dict[str, Callable[[], float]]:
    return {WITHOUT: lambda: time_ms([]), WITH_HUNG: lambda: time_ms([hung()])}


WITHOUT = "without servers"
WITH_HUNG = "with a hung server"

MEASURES = (
    Measure(
        part="mcp",
        title=f"servers that wait {WAIT_S:g} s, until all are usable",
        unit="ms",
        contenders=starting(lambda: waiting(WAIT_S), COUNTS),
        targets=(Target(ours(16), bare(1), "at most", 1.1),),
        ratios=tuple((ours(count), bare(count)) for count in COUNTS),
        rounds=7,
        quick_rounds=3,
    ),
    Measure(
        part="mcp",
        title="real Python servers, until all are usable",
        unit="ms",
        contenders=starting(clock, COUNTS),
        targets=tuple(Target(ours(count), bare(count), "at most", 1.1) for count in COUNTS),
        rounds=7,
        quick_rounds=2,
    ),
    Measure(
        part="mcp",
        title="session/new, the first of a process",
        unit="ms",
        contenders=answering(time_first_session_ms),
        targets=(Target(WITH_HUNG, WITHOUT, "at most", WITHIN_NOISE),),
        rounds=21,
        quick_rounds=5,
    ),
    Measure(
        part="mcp",
        title="session/new, a later one",
        unit="ms",
        contenders=answering(time_later_session_ms),
        targets=(Target(WITH_HUNG, WITHOUT, "at most", WITHIN_NOISE),),
        rounds=9,
        quick_rounds=3,
    ),
    *mcp_call.MEASURES,
    Measure(
        part="mcp",
        title="memory of the agent, its servers ready",
        unit="MiB",
        contenders={f"{count} servers": lambda count=count: measure_rss_mib(count) for count in (0, *COUNTS)},
        targets=(),
        rounds=3,
        quick_rounds=1,
    ),
)
