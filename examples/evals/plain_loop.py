"""Evaluate an agent on tasks, each in a separate directory and process, and print a table.

    python plain_loop.py                              our own agent, with a scripted model for each task
    python plain_loop.py "claude-agent-acp"           any other agent
    python plain_loop.py --output results             and a trajectory in ATIF of each task

`{task}` in the command is replaced by the name of the task. The exit code is 0 when all tasks passed.
"""

import argparse
import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.client import TurnResult, connect, read_sessions, to_atif
from dragoman.client.errors import DragomanError
from dragoman.client.policies import allow_all

HERE = Path(__file__).parent
AGENT = f"{shlex.quote(sys.executable)} -m dragoman agent --model script:{HERE}/scripts/{{task}}.yaml"
PARALLEL = 2
TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Task:
    """A prompt, the initial files, and the function that checks the result."""

    name: str
    prompt: str
    passes: Callable[[TurnResult, Path], bool]
    files: dict[str, str] = field(default_factory=dict)


TASKS = [
    Task(
        "hello",
        "Write a file hello.txt with the word hello.",
        lambda _, folder: (folder / "hello.txt").read_text().strip() == "hello",
    ),
    Task(
        "rename",
        "Rename the function f in code.py to add.",
        lambda result, folder: "def add(" in (folder / "code.py").read_text() and len(result.changed_files) == 1,
        {"code.py": "def f(a, b):\n    return a + b\n"},
    ),
    Task("question", "What is six times seven? Answer with the number.", lambda result, _: result.text.strip() == "42"),
]


@dataclass(frozen=True)
class Row:
    """The outcome of a task."""

    task: str
    outcome: str
    result: TurnResult | None
    seconds: float


async def evaluate(task: Task, command: str, output: Path | None) -> Row:
    """Run a task with a new agent process and judge the result."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "project")
        folder.mkdir()
        for path, text in task.files.items():
            (folder / path).write_text(text)
        record = Path(name, "recording.jsonl")
        # Our own agent stores its sessions here, so that they do not appear among the user's sessions.
        here = {"DRAGOMAN_HOME": str(Path(name, "home")), "DRAGOMAN_STORE": ""}
        env = here if "-m dragoman agent" in command else {}
        try:
            async with connect(
                command.replace("{task}", task.name), env=env, policy=allow_all(), record=record
            ) as agent:
                session = await agent.new_session(folder)
                result = await session.run(task.prompt, timeout_s=TIMEOUT_S)
        except DragomanError as error:  # the agent did not start, or it exited before the prompt
            return Row(task.name, f"error: {error}", None, time.monotonic() - began)
        if output is not None:
            [trajectory] = read_sessions(record)
            (output / f"{task.name}.json").write_text(json.dumps(to_atif(trajectory), indent=2))
        return Row(task.name, judge(task, result, folder), result, time.monotonic() - began)


def judge(task: Task, result: TurnResult, folder: Path) -> str:
    """Return one word for the table, or an error."""
    if result.error is not None:
        return f"error: {result.error}"
    try:
        return "passed" if task.passes(result, folder) else "failed"
    except OSError:  # an expected file is missing
        return "failed"


def table(rows: list[Row]) -> str:
    """Return the rows as a table, and the number of passed tasks."""
    lines = [("TASK", "OUTCOME", "STOPPED", "CALLS", "FILES", "TOKENS", "SECONDS")]
    for row in rows:
        result = row.result
        tokens = str(result.usage.total_tokens) if result and result.usage else "-"
        lines.append(
            (
                row.task,
                row.outcome.splitlines()[0],
                (result.stop_reason if result else None) or "-",
                str(len(result.tool_calls)) if result else "-",
                str(len(result.changed_files)) if result else "-",
                tokens,
                f"{row.seconds:.1f}",
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    passed = sum(row.outcome == "passed" for row in rows)
    return "\n".join([*shown, f"{passed} of {len(rows)} passed"])


async def main() -> int:
    """Evaluate all tasks, a few at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", nargs="?", default=AGENT, help="the command of the agent")
    parser.add_argument("--output", type=Path, help="a directory for trajectories")
    options = parser.parse_args()
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
    slots = asyncio.Semaphore(PARALLEL)

    async def run(task: Task) -> Row:
        async with slots:
            return await evaluate(task, options.agent, options.output)

    rows = await asyncio.gather(*map(run, TASKS))
    print(table(rows))
    return 0 if all(row.outcome == "passed" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
