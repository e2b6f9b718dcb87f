"""The tool that runs a command."""

import asyncio
from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.prepared_call import (
    Action,
    PreparedCall,
    ShowProgress,
    TargetChanged,
    ToolFailure,
    ToolOutcome,
    code,
)
from dragoman.agent.workspace.shell import NO_OUTPUT, CommandEnd
from dragoman.agent.workspace.workspace import Workspace
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.protocol import v1
from dragoman.text import visible

TIMEOUT_S = 600.0
"""Long enough for most builds and test runs; a command that waits for input it will not get ends some time."""

MAX_COMMAND_BYTES = 64 * 1024
"""Half of the longest argument on Linux; a longer text belongs into a script."""

MAX_TITLE_CHARS = 80

Command = Annotated[str, Meta(min_length=1, description="The text for sh -c; it runs in the working directory.")]


class RunCommandArguments(Arguments, frozen=True):
    """The arguments of `run_command`."""

    command: Command


class RunCommand:
    """Runs a command in the session's directory, in the client's terminal where it has one."""

    title = "Run a command"
    kind: v1.ToolKind = "execute"

    def __init__(self, workspace: Workspace, *, timeout_s: float = TIMEOUT_S) -> None:
        self.definition = ToolDefinition(
            "run_command",
            "Run a shell command (sh -c) in the working directory and wait for its end. It has no input, and what it "
            f"leaves running is stopped, all of it after {timeout_s:.0f} s. Long output is cut in the middle.",
            make_schema(RunCommandArguments),
        )
        self._workspace = workspace
        self._timeout_s = timeout_s

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Show the whole command, and hash the files that it names; raises ToolFailure."""
        # Its patterns take 4 ms to compile, which every first turn would wait for, and most run no command.
        from dragoman.assistant.tools.scripts import bind

        command = decode(RunCommandArguments, arguments, self.definition.name).command
        _check(command)
        workspace, cwd = self._workspace, self._workspace.cwd
        bound = await asyncio.to_thread(bind, command, cwd, workspace.roots)

        async def check() -> None:
            if await asyncio.to_thread(bind, command, cwd, workspace.roots) != bound:
                raise TargetChanged("a file that the command names has changed since it was looked at")

        async def run(progress: ShowProgress) -> ToolOutcome:
            return _give(await workspace.commands.run(command, cwd, progress, timeout_s=self._timeout_s))

        # A refusal of a command that is not understood holds for its text, whatever is in the files.
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
        raise ToolFailure("the command is empty")
    if "\0" in command:
        raise ToolFailure("a command cannot hold a NUL")
    if len(command.encode()) > MAX_COMMAND_BYTES:
        raise ToolFailure(f"the command has more than {MAX_COMMAND_BYTES:,} bytes; write a script and run that")


def _title(command: str) -> str:
    first, *more = command.strip().split("\n")
    cut = bool(more) or len(first) > MAX_TITLE_CHARS
    return f"Run {first[:MAX_TITLE_CHARS].rstrip()}{'…' if cut else ''}"


def _give(end: CommandEnd) -> ToolOutcome:
    output = end.output.rstrip("\n") or NO_OUTPUT
    words = [output]
    if end.cut:
        words.append("[output was cut; to see all of it, send it to a file and read that in parts]")
    if end.cancelled:
        words.append("[the person stopped it]")
    if end.timed_out:
        words.append("[it did not end in time and was stopped]")
    elif end.signal is not None:
        words.append(f"[killed by {end.signal}]")
    elif end.exit_code is not None:
        words.append(f"[exit code {end.exit_code}]")
    else:
        words.append("[exit code unknown: the terminal did not tell it]")
    raw = {"exitCode": end.exit_code, "signal": end.signal, "timedOut": end.timed_out, "output": end.output}
    failed = end.timed_out or end.cancelled or end.signal is not None or end.exit_code not in (0, None)
    return ToolOutcome("\n".join(words), end.content, raw, failed=failed)
