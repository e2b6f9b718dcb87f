"""The tool that runs a command."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.agent.turns.prepared_call import (
    IN_SANDBOX,
    Action,
    PreparedCall,
    ShowProgress,
    TargetChangedError,
    ToolError,
    ToolOutcome,
    code,
    text_content,
)
from dragoman.agent.workspace.shell import NO_OUTPUT, CommandResult
from dragoman.agent.workspace.workspace import Workspace
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.protocol import v1
from dragoman.sandbox import SandboxMode
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


class SandboxedCommandArguments(RunCommandArguments, frozen=True):
    """The arguments of `run_command` in a session with a sandbox."""

    outside_sandbox: Annotated[
        str | None,
        Meta(
            description="Why the command must run outside the sandbox, such as: it needs the network, or it changes a "
            "path outside. The user reads this and is asked. Leave it out for all other commands."
        ),
    ] = None


class CommandSandbox(msgspec.Struct, frozen=True):
    """The sandbox that a session uses."""

    mode: SandboxMode
    writable: Sequence[str]
    warn: Callable[[str], None]
    """Tells the user why there is no sandbox here. Called for each command that should have been sandboxed."""

    @property
    def limits(self) -> str:
        """What a command in the sandbox cannot do."""
        network = "has network" if self.mode == "workspace+network" else "has no network"
        return f"in a sandbox, in which it can change only the session's directories and {network}"


class RunCommand:
    """Runs a command in the session's directory, in the sandbox, or in the client's terminal if it has one."""

    title = "Run a command"
    kind: v1.ToolKind = "execute"

    def __init__(
        self, workspace: Workspace, *, timeout_s: float = TIMEOUT_S, sandbox: CommandSandbox | None = None
    ) -> None:
        self._arguments = RunCommandArguments if sandbox is None else SandboxedCommandArguments
        limits = "" if sandbox is None else f" It runs {sandbox.limits}. Give a reason to run it outside."
        self.definition = ToolDefinition(
            "run_command",
            "Run a shell command (sh -c) in the working directory and wait until it exits. It has no input. It is "
            f"stopped after {timeout_s:.0f} s, and processes that it leaves running are stopped when it exits. Long "
            f"output is cut in the middle.{limits}",
            make_schema(self._arguments),
        )
        self._workspace = workspace
        self._timeout_s = timeout_s
        self._sandbox = sandbox

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the call, and hash the files that the command names. Raises ToolError."""
        # imported here: compiling its patterns takes 4 ms of every first turn, and most turns run no command
        from dragoman.assistant.tools.scripts import bind

        asked = decode(self._arguments, arguments, self.definition.name)
        command = asked.command
        _check(command)
        workspace, cwd = self._workspace, self._workspace.cwd
        reason = asked.outside_sandbox if isinstance(asked, SandboxedCommandArguments) else None
        inside = None if reason else await self._find_sandbox()
        bound = await asyncio.to_thread(bind, command, cwd, workspace.roots)

        async def check() -> None:
            if await asyncio.to_thread(bind, command, cwd, workspace.roots) != bound:
                raise TargetChangedError("a file that the command names has changed since it was checked")

        async def run(progress: ShowProgress) -> ToolOutcome:
            sandbox = None if inside is None else workspace.make_sandbox(inside.mode, inside.writable)
            end = await workspace.run(command, progress, timeout_s=self._timeout_s, sandbox=sandbox)
            return _outcome(end, workspace, inside)

        # If the command is unclear, a refusal applies to its text, whatever its files contain.
        where = f"{bound.digest} {cwd}" if bound.digest and bound.certain else cwd
        action = Action("command", command, where if inside is None else f"{IN_SANDBOX}{where}")
        shown = [code(visible(command, lines=True))]
        if reason:
            shown += [text_content("Outside the sandbox, because:"), code(visible(reason, lines=True))]
        place = "" if self._sandbox is None else f" ({'in sandbox' if inside else 'outside the sandbox'})"
        return PreparedCall(
            f"{_title(command)}{place}",
            self.kind,
            run=run,
            check=check,
            action=action,
            can_be_kept=bound.certain,
            content=shown,
            in_sandbox=inside is not None,
        )

    async def _find_sandbox(self) -> CommandSandbox | None:
        """Return the sandbox if it works here. Tell the user if it does not."""
        if self._sandbox is not None and (problem := await self._workspace.find_sandbox_problem()) is not None:
            self._sandbox.warn(problem)
            return None
        return self._sandbox


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


def _outcome(end: CommandResult, workspace: Workspace, sandbox: CommandSandbox | None) -> ToolOutcome:
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
    content = list(end.content)
    if end.renamed:
        names = ", ".join(f"{workspace.show(old)} to {workspace.show(new)}" for old, new in end.renamed)
        text = visible(f"The sandbox renamed new files that programs run or obey by themselves: {names}.")
        parts.append(f"[{text} Create such files with write_file.]")
        content.append(code(text))
    raw = {"exitCode": end.exit_code, "signal": end.signal, "timedOut": end.timed_out, "output": end.output}
    failed = end.timed_out or end.cancelled or end.signal is not None or end.exit_code not in (0, None)
    if failed and sandbox is not None:
        parts.append(f"[it ran {sandbox.limits}]")
    return ToolOutcome("\n".join(parts), content, raw, failed=failed)
