"""A call of a trivial MCP tool: with the bare SDK, with our server, and in a whole turn next to a built-in tool.

Both clients run in the same environment, on the same event loop, with the same server.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import msgspec

from bench import commands
from bench.client_run import run_reporter
from bench.mcp_servers import name_servers, scripted
from bench.measure import Measure, Target
from bench.size import size
from bench.watched_agent import WatchedAgent

CALLS = size(1_000, 10)
BIG_CALLS = size(40, 2)
BIG_BYTES = 1024 * 1024
TURN_CALLS = size(40, 2)
"""Fewer than the 50 requests that a turn may make."""

OURS = "dragoman"
BARE = "bare mcp client"
MCP_TOOL = "an MCP tool"
BUILT_IN = "read_file"
LEGACY, MODERN = "2025-11-25", "2026-07-28"

FILE = "tiny.txt"
TOOLS = {
    MCP_TOOL: {"name": "server-0__echo", "arguments": {"text": "A tiny text.\n"}},
    BUILT_IN: {"name": "read_file", "arguments": {"path": FILE}},
}
PROFILE = """\
permissions:
  allow_yolo: true
"""


def time_call_us(client: commands.Command, calls: int, result_bytes: int | None) -> float:
    """Call a tool many times with a client and return the median."""
    server = scripted(result_bytes=result_bytes)
    return run_reporter((*client, str(calls), "--", *server))["median_us"]


def contenders(calls: int, result_bytes: int | None = None) -> dict[str, Callable[[], float]]:
    return {
        # The base installation of dragoman is without the SDK.
        BARE: lambda: time_call_us(commands.python("mcp_sdk_client.py"), calls, result_bytes),
        OURS: lambda: time_call_us(commands.on_dragoman("dragoman_mcp_client.py"), calls, result_bytes),
    }


def time_era_call_us(era: str) -> float:
    """Call a tool of a server of one era many times with our client and return the median."""
    server = (sys.executable, "-I", "-S", str(commands.PEERS / "era_server.py"), era)
    return run_reporter((*commands.on_dragoman("dragoman_mcp_client.py"), str(CALLS), "--", *server))["median_us"]


def time_turn_call_us(tool: str) -> float:
    """Return the time per call when a scripted model calls a tool in every reply. The second turn counts."""
    with tempfile.TemporaryDirectory() as folder:
        replies = [*[[{"tool": TOOLS[tool]}] for _ in range(TURN_CALLS)], [{"text": "Done."}]]
        script, profile = Path(folder, "script.yaml"), Path(folder, "agent.yaml")
        script.write_bytes(msgspec.json.encode(replies))
        profile.write_text(PROFILE)
        Path(folder, FILE).write_text("A tiny text.\n")
        command = commands.dragoman("agent", "--model", f"script:{script}", "--agent", str(profile))
        with WatchedAgent(command, environment={"DRAGOMAN_HOME": folder}) as agent:
            agent.initialize()
            session = agent.open_ready_session(folder, name_servers(scripted()))
            agent.call_watching("session/set_mode", {"sessionId": session, "modeId": "yolo"})
            prompt(agent, session)
            started = perf_counter()
            prompt(agent, session)
            return 1_000_000 * (perf_counter() - started) / TURN_CALLS


def prompt(agent: WatchedAgent, session: str) -> None:
    """Run a turn. Raises RuntimeError if it did not make all of its calls."""
    done = 0
    text = [{"type": "text", "text": "Go on."}]
    request = agent.send("session/prompt", {"sessionId": session, "prompt": text})
    while (message := agent.read_message()).get("id") != request:
        update = message.get("params", {}).get("update", {})
        done += update.get("sessionUpdate") == "tool_call_update" and update.get("status") == "completed"
    if done != TURN_CALLS:
        raise RuntimeError(f"{done} calls of {TURN_CALLS} were made: {message}")


MEASURES = (
    Measure(
        part="mcp",
        title="a call of an MCP tool",
        unit="µs",
        contenders=contenders(CALLS),
        targets=(Target(OURS, BARE, "at most", 1.2),),
        rounds=9,
        quick_rounds=3,
    ),
    Measure(
        part="mcp",
        title="the same, with a result of 1 MB",
        unit="µs",
        contenders=contenders(BIG_CALLS, BIG_BYTES),
        targets=(Target(OURS, BARE, "at most", 1.2),),
        rounds=9,
        quick_rounds=3,
    ),
    Measure(
        part="mcp",
        title="a call in each era of MCP",
        unit="µs",
        contenders={LEGACY: lambda: time_era_call_us("legacy"), MODERN: lambda: time_era_call_us("modern")},
        targets=(Target(MODERN, LEGACY, "at most", 1.1),),
        rounds=9,
        quick_rounds=3,
    ),
    Measure(
        part="mcp",
        title="a call in a turn, with a model that only calls",
        unit="µs",
        contenders={tool: lambda tool=tool: time_turn_call_us(tool) for tool in TOOLS},
        targets=(),
        ratios=((MCP_TOOL, BUILT_IN),),
        rounds=7,
        quick_rounds=2,
    ),
)
