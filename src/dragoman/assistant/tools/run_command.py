"""The tool that runs a command."""

import asyncio
from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.turns.prepared_call import (
    Action,
    PreparedCall,
    ShowProgress,
    TargetChangedError,
    ToolError,
    ToolOutcome,
    code,
)
from dragoman.agent.workspace.shell import NO_OUTPUT, CommandResult
from dragoman.agent.workspace.workspace import Workspace
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.protocol import v1
from dragoman.text import visible

TIMEOUT_S = 600.0
"""Long enough for most builds and test runs. A command that waits for input is stopped eventually."""

MAX_COMMAND_BYTES = 64 * 1024
"""Half of the longest argument on Linux. A longer text belongs in a script."""

MAX_TITLE_CHARS = 80

Command = Annotated[str, Meta(min_length=1, description="The command for sh -c; it runs in the working directory.")]


class RunCommandArguments(Arguments, frozen=True):
    """The arguments of `run_command`."""

    command: Command


class RunCommand:
    """Runs a command in the session's directory, in the client's terminal if it has one."""

    title = "Run a command"
    kind: v1.ToolKind = "execute"

    def __init__(self, workspace: Workspace, *, timeout_s: float = TIMEOUT_S) -> None:
        self.definition = ToolDefinition(
            "run_command",
            "Run a shell command (sh -c) in the working directory and wait until it exits. It has no input. It is "
            f"stopped after {timeout_s:.0f} s, and processes that it leaves running are stopped when it exits. Long "
            "output is cut in the middle.",
            make_schema(RunCommandArguments),
        )
        self._workspace = workspace
        self._timeout_s = timeout_s

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the call, and hash the files that the command names. Raises ToolError."""
        # imported here: compiling its patterns takes 4 ms of every first turn, and most turns run no command
        from dragoman.assistant.tools.scripts import bind

        command = decode(RunCommandArguments, arguments, self.definition.name).command
        _check(command)
        workspace, cwd = self._workspace, self._workspace.cwd
        bound = await asyncio.to_thread(bind, command, cwd, workspace.roots)

        async def check() -> None:
            if await asyncio.to_thread(bind, command, cwd, workspace.roots) != bound:
                raise TargetChangedError("a file that the command names has changed since it was checked")

        async def run(progress: ShowProgress) -> ToolOutcome:
            return _outcome(await workspace.commands.run(command, cwd, progress, timeout_s=self._timeout_s))

        # If the command is unclear, a refusal applies to its text, whatever its files contain.
        where = f"{bound.digest} {cwd}" if bound.digest and bound.certain else cwd
        action = Action("command", command, where)
        shown = [code(visible(command, lines=True))]
        return PreparedCall(
            _title(command),
            self.kind,
            run=run,
            check=check,
            action=action,
            can_be_kept=bound.certain,
            content=shown,
        )


def _check(command: str) -> None:
    if not command.strip():
        raise ToolError("the command is empty")
    if "\0" in command:
        raise ToolError("a command cannot contain a NUL character")
    if len(command.encode()) > MAX_COMMAND_BYTES:
        raise ToolError(f"the command has more than {MAX_COMMAND_BYTES:,} bytes; write a script and run that")


def _title(command: str) -> str:
    first, *more = command.strip().split("\n")
    cut = bool(more) or len(first) > MAX_TITLE_CHARS
    return f"Run {first[:MAX_TITLE_CHARS].rstrip()}{'…' if cut else ''}"


def _outcome(end: CommandResult) -> ToolOutcome:
    output = end.output.rstrip("\n") or NO_OUTPUT
    parts = [output]
    if end.cut:
        parts.append("[output was cut; to see all of it, redirect it to a file and read the file in parts]")
    if end.cancelled:
        parts.append("[the user stopped it]")
    if end.timed_out:
        parts.append("[it did not finish in time and was stopped]")
    elif end.signal is not None:
        parts.append(f"[killed by {end.signal}]")
    elif end.exit_code is not None:
        parts.append(f"[exit code {end.exit_code}]")
    else:
        parts.append("[exit code unknown: the terminal did not report it]")
    raw = {"exitCode": end.exit_code, "signal": end.signal, "timedOut": end.timed_out, "output": end.output}
    failed = end.timed_out or end.cancelled or end.signal is not None or end.exit_code not in (0, None)
    return ToolOutcome("\n".join(parts), end.content, raw, failed=failed)
