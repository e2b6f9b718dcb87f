"""`terminal/*`: commands that the client runs for an agent.

A terminal is a command without input. stdout and stderr are merged, and the end of the output is kept. The command
inherits the client's environment without the variables that look like secrets. It runs in a directory inside the
session's, after the policy has allowed it. All processes of a command end when its terminal is released, or its session
or connection ends.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.client.permission.action import RunAction, command_text, locate
from dragoman.client.permission.policy import PermissionQuestion
from dragoman.client.services.session_boundary import (
    BoundaryOf,
    Decide,
    SessionBoundaries,
    check_absolute,
    refuse,
    require,
)
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.errors import ErrorCode, InvalidParamsError, RpcError, StartError
from dragoman.files import Boundary, OutsideBoundaryError, PathError
from dragoman.proc import Child, Supervisor
from dragoman.proc.command import without_secrets
from dragoman.proc.pipes import OutputTail
from dragoman.protocol import v1
from dragoman.protocol.connection import Routes
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import (
    TERMINAL_CREATE,
    TERMINAL_KILL,
    TERMINAL_OUTPUT,
    TERMINAL_RELEASE,
    TERMINAL_WAIT_FOR_EXIT,
)
from dragoman.wire import IncomingRequest

if TYPE_CHECKING:
    from dragoman.client.permission.questions import AgentQuestions
    from dragoman.client.sessions.sessions import Sessions

DEFAULT_OUTPUT_BYTES = 1024 * 1024
"""Output that is kept if the agent sets no limit. It holds the log of a long build."""

MAX_OUTPUT_BYTES = 8 * 1024 * 1024
"""Largest limit for the kept output, because the agent receives all of it in one message."""

MAX_TERMINALS = 64
"""Terminals of one session that were not released. More of them are a leak, and each may be a running build."""

TERM_GRACE_S = 0.5
"""From SIGTERM to SIGKILL. A cancelled turn must end quickly, but a program can still remove its lock file."""

_MERGED = 'exec "$@" 2>&1'

Order = v1.CreateTerminalRequest
_Named = v1.TerminalOutputRequest | v1.WaitForTerminalExitRequest | v1.KillTerminalRequest | v1.ReleaseTerminalRequest


class ProvidedTerminal:
    """One command, running or ended."""

    def __init__(self, session_id: str, child: Child, max_bytes: int) -> None:
        self.session_id = session_id
        self._child = child
        self._tail = OutputTail(max_bytes)
        self._pipe = child.read_stdout(self._tail.add)

    @property
    def exit_status(self) -> v1.TerminalExitStatus | None:
        """The exit status, or None while the command runs."""
        ended = self._child.exit
        return None if ended is None else v1.TerminalExitStatus(exit_code=ended.code, signal=ended.signal_name)

    def output(self) -> tuple[str, bool]:
        """Return the end of the output so far, and whether earlier output was dropped."""
        over = self._child.exit is not None
        if over:
            self._pipe.catch_up()
        return self._tail.text(final=over)

    async def wait(self) -> v1.WaitForTerminalExitResponse:
        """Wait until the command has exited."""
        ended = await self._child.wait()
        return v1.WaitForTerminalExitResponse(exit_code=ended.code, signal=ended.signal_name)

    async def stop(self) -> None:
        """Stop the command and all processes that it started."""
        await self._child.stop(grace_s=0, term_s=TERM_GRACE_S)

    def stop_reading(self) -> None:
        """Stop reading the output."""
        self._pipe.close()


class TerminalService:
    """Answers `terminal/*`. It must be closed, which stops every terminal."""

    def __init__(self, boundary_of: BoundaryOf, decide: Decide) -> None:
        self._boundary_of = boundary_of
        self._decide = decide
        self._supervisor: Supervisor | None = None
        self._is_closed = False
        self._terminals: dict[str, ProvidedTerminal] = {}

    async def close(self) -> None:
        """Stop every terminal and refuse new ones."""
        self._is_closed = True
        try:
            await self._release_all(tuple(self._terminals))
        finally:
            if self._supervisor is not None:
                await self._supervisor.__aexit__(None, None, None)

    async def create(self, params: Order, request: IncomingRequest) -> v1.CreateTerminalResponse:
        """Answer `terminal/create` after the policy has allowed it."""
        # Decoded strictly, because skipping an invalid parameter would change the command.
        params = decode_params(TERMINAL_CREATE, request.params)
        boundary = self._boundary_of(params.session_id)
        self._check_room(params.session_id)
        cwd = await asyncio.to_thread(_find_directory, boundary, params.cwd)
        environment = {**without_secrets(), **{variable.name: variable.value for variable in params.env}}
        command, run = _find_command(params, cwd, environment)
        await require(self._decide, _question(params, boundary, run), f"running {run.command!r}")
        child = await self._start(command, cwd, environment)
        terminal = ProvidedTerminal(params.session_id, child, _limit(params.output_byte_limit))
        terminal_id = f"term_{secrets.token_hex(8)}"
        self._terminals[terminal_id] = terminal
        await self._check_still_wanted(params.session_id, terminal_id, boundary)
        return v1.CreateTerminalResponse(terminal_id=terminal_id)

    async def output(self, params: v1.TerminalOutputRequest) -> v1.TerminalOutputResponse:
        """Answer `terminal/output`."""
        terminal = self._find(params)
        text, truncated = terminal.output()
        return v1.TerminalOutputResponse(output=text, truncated=truncated, exit_status=terminal.exit_status)

    async def wait_for_exit(self, params: v1.WaitForTerminalExitRequest) -> v1.WaitForTerminalExitResponse:
        """Answer `terminal/wait_for_exit`."""
        return await self._find(params).wait()

    async def kill(self, params: v1.KillTerminalRequest) -> v1.KillTerminalResponse:
        """Answer `terminal/kill` when all processes have ended. The output and exit status stay available."""
        await self._find(params).stop()
        return v1.KillTerminalResponse()

    async def release(self, params: v1.ReleaseTerminalRequest) -> v1.ReleaseTerminalResponse:
        """Answer `terminal/release` when all processes have ended."""
        self._find(params)
        await self._release(params.terminal_id)
        return v1.ReleaseTerminalResponse()

    async def end_session(self, session_id: str) -> None:
        """Release every terminal of a session."""
        await self._release_all([name for name, each in self._terminals.items() if each.session_id == session_id])

    async def _release_all(self, terminal_ids: Sequence[str]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for terminal_id in terminal_ids:
                tasks.create_task(self._release(terminal_id))

    async def _release(self, terminal_id: str) -> None:
        terminal = self._terminals.pop(terminal_id, None)
        if terminal is None:
            return
        try:
            await terminal.stop()
        finally:
            terminal.stop_reading()

    async def _start(self, command: Sequence[str], cwd: str, environment: dict[str, str]) -> Child:
        if self._is_closed:
            raise RpcError(
                ErrorCode.INVALID_REQUEST, {"problem": "the connection is closing; no new terminals can be started"}
            )
        if self._supervisor is None:
            self._supervisor = await Supervisor().__aenter__()
        try:
            return await self._supervisor.start(
                ["/bin/sh", "-c", _MERGED, "sh", *command], cwd=cwd, env=environment, inherit=()
            )
        except StartError as error:
            raise InvalidParamsError("params.command", f"{command[0]} could not be started: {error.reason}") from None

    async def _check_still_wanted(self, session_id: str, terminal_id: str, boundary: Boundary) -> None:
        """Release a terminal again if its session was closed while the command started."""
        try:
            gone = self._boundary_of(session_id) is not boundary
        except RpcError:
            gone = True
        if gone:
            await self._release(terminal_id)
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": "the session was closed"})

    def _check_room(self, session_id: str) -> None:
        if sum(each.session_id == session_id for each in self._terminals.values()) >= MAX_TERMINALS:
            problem = f"the session has {MAX_TERMINALS} terminals; release some first"
            raise RpcError(ErrorCode.INVALID_REQUEST, {"problem": problem})

    def _find(self, params: _Named) -> ProvidedTerminal:
        terminal = self._terminals.get(params.terminal_id)
        if terminal is None or terminal.session_id != params.session_id:
            problem = "this session has no such terminal, or it was released"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"terminalId": params.terminal_id, "problem": problem})
        return terminal


class ProvidedTerminals:
    """The terminal service of a client. It must be closed after the connection."""

    def __init__(self) -> None:
        self._service: TerminalService | None = None

    def advertise(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Return the capabilities with that of this service."""
        return msgspec.structs.replace(capabilities, terminal=True)

    def install(self, routes: Routes, sessions: "Sessions", questions: "AgentQuestions") -> None:
        """Add the handlers of `terminal/*`."""
        self._service = TerminalService(
            SessionBoundaries(sessions.find),
            lambda question: questions.decide(sessions.find(question.session_id), question),
        )
        install_terminals(routes, self._service)

    async def end_session(self, session_id: str) -> None:
        """Release every terminal of a session."""
        if self._service is not None:
            await self._service.end_session(session_id)

    async def close(self) -> None:
        """Stop every terminal."""
        if self._service is not None:
            await self._service.close()


def install_terminals(routes: Routes, service: TerminalService) -> None:
    """Register a service as the handler of `terminal/*`."""
    routes.on_incoming_request(TERMINAL_CREATE, service.create)
    routes.on_request(TERMINAL_OUTPUT, service.output)
    routes.on_request(TERMINAL_WAIT_FOR_EXIT, service.wait_for_exit)
    routes.on_request(TERMINAL_KILL, service.kill)
    routes.on_request(TERMINAL_RELEASE, service.release)


def _find_directory(boundary: Boundary, cwd: str | None) -> str:
    if cwd is None:
        return boundary.roots[0]
    check_absolute(cwd, "cwd")
    path, root = locate(boundary, cwd)
    try:
        boundary.list_directory(cwd)
        if root is None:
            raise OutsideBoundaryError(cwd, boundary.roots)
    except PathError as error:
        raise refuse(error) from None
    return path


def _find_command(params: Order, cwd: str, environment: dict[str, str]) -> tuple[tuple[str, ...], RunAction]:
    """Return the words to run and the action. Some agents send a whole shell line as the command."""
    variables = tuple(variable.name for variable in params.env)
    program = os.path.join(cwd, params.command) if "/" in params.command else params.command  # noqa: PTH118 -- a word
    if params.command and shutil.which(program, path=environment.get("PATH")):
        return (params.command, *params.args), RunAction(command_text(params.command, params.args), cwd, variables)
    if not params.args and len(params.command.split()) > 1:
        return ("/bin/sh", "-c", params.command), RunAction(params.command, cwd, variables)
    problem = f"there is no command {params.command!r} here; use one that is on PATH, or its full path"
    raise InvalidParamsError("params.command", problem)


def _question(params: Order, boundary: Boundary, run: RunAction) -> PermissionQuestion:
    call = ToolCallState("", title=run.command, kind="execute", raw_input={"command": run.command, "cwd": run.cwd})
    return PermissionQuestion(params.session_id, call, (), boundary.roots[0], run)


def _limit(wanted: int | None) -> int:
    return DEFAULT_OUTPUT_BYTES if wanted is None else min(wanted, MAX_OUTPUT_BYTES)
