"""The workspace of a session's tools: its directories, and the two ways to its files and commands.

Files and commands go through the client if it supports this, because the user's editor knows unsaved changes and shows
running commands. Otherwise we access files and run commands ourselves. The boundary applies in both cases. A path is
first resolved, including its links, to a `ResolvedPath`, and only a target inside is ever written. We open it through
the boundary a second time, which excludes races. A client receives the absolute path of the target, without links
below the session's directory. The path begins with that directory as the client itself spelled it.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dragoman.agent.turns.prepared_call import ShowProgress, TargetChangedError, ToolError
from dragoman.agent.workspace.client_side import ClientFiles, ClientSide, ClientTerminals
from dragoman.agent.workspace.shell import CLEANUP_TIMEOUT_S, CommandResult, CommandRunner, Shell, Supervise
from dragoman.cancellation import finish
from dragoman.files import Boundary, DirectoryEntry, FileAccessError, OutsideBoundaryError, PathError
from dragoman.files.path import show_from
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.extensions import TERMINALS
from dragoman.sandbox import SandboxMode
from dragoman.sandbox.active_files import ActiveFiles

if TYPE_CHECKING:
    from dragoman.sandbox.sandbox import Sandbox

T = TypeVar("T")

MAX_FILE_BYTES = 8 * 1024 * 1024
"""The largest text that is read or written whole. Source files are far smaller, and a diff contains the text twice."""

_MISSING = (errno.ENOENT, errno.ENOTDIR)


class ResolvedPath(msgspec.Struct, frozen=True):
    """The target of a path at one moment."""

    given: str
    """The path as the model wrote it."""
    path: str
    """The absolute path without links."""
    inside: bool
    """Whether the target is inside the session's directories."""
    active: bool = False
    """Whether the target is inside and an active file, see `active_files`."""


class Workspace:
    """The directories of one session, and the operations of its tools on them."""

    def __init__(
        self,
        cwd: str,
        additional_directories: Sequence[str] = (),
        *,
        session_id: str,
        connection: Connection,
        capabilities: v1.ClientCapabilities | None,
        supervise: Supervise,
        active_files: ActiveFiles | None = None,
    ) -> None:
        """Open the directories. Raises PathError if one cannot be opened."""
        self._boundary = Boundary([cwd, *additional_directories])
        self._real_roots = [os.path.realpath(root) for root in self.roots]
        self._active_files = active_files or ActiveFiles()
        self.supervise = supervise
        client = ClientSide(connection, session_id)
        capabilities = capabilities or v1.ClientCapabilities()
        self._client_files = ClientFiles(client, capabilities.fs)
        self._shell = Shell(supervise, offers_cancel=TERMINALS in (capabilities.meta or {}))
        self._commands: CommandRunner = ClientTerminals(client) if capabilities.terminal else self._shell
        self._sandbox_works = False

    @property
    def cwd(self) -> str:
        """The base of relative paths and the directory in which commands run."""
        return self._boundary.roots[0]

    @property
    def roots(self) -> tuple[str, ...]:
        """All directories of the session."""
        return self._boundary.roots

    def set_directories(self, additional_directories: Sequence[str]) -> None:
        """Change the additional directories. Prepared calls must respect the new ones. Raises PathError."""
        self._boundary = Boundary([self.cwd, *additional_directories])
        self._real_roots = [self._real_roots[0], *map(os.path.realpath, additional_directories)]

    async def run(
        self, command: str, progress: ShowProgress, *, timeout_s: float, sandbox: "Sandbox | None" = None
    ) -> CommandResult:
        """Run a shell command in the cwd to its end, in a terminal of the client if it has them. Raises ToolError.

        A command in a sandbox runs as our child, because the sandbox of a client is unknown.
        """
        if sandbox is None:
            return await self._commands.run(command, self.cwd, progress, timeout_s=timeout_s)
        return await self._shell.run(command, self.cwd, progress, timeout_s=timeout_s, sandbox=sandbox)

    def cancel_command(self, terminal_id: str) -> bool:
        """Cancel the command in one of our terminals. Return whether one was running."""
        return self._shell.cancel(terminal_id)

    async def find_sandbox_problem(self) -> str | None:
        """Return why there is no sandbox here, with the fix, or None if it works."""
        if not self._sandbox_works:
            from dragoman.sandbox.sandbox import SandboxUnavailableError, find_problem

            if (problem := await find_problem(await self.supervise())) is not None:
                return problem
            try:  # these directories may not be possible to protect
                await asyncio.to_thread(self.make_sandbox("workspace").wrap, ["true"], self.cwd)
            except SandboxUnavailableError as error:
                return str(error)
            self._sandbox_works = True
        return None

    def make_sandbox(self, mode: SandboxMode, writable: Sequence[str] = ()) -> "Sandbox":
        """Return the sandbox for one command. `writable` are paths outside that it may change as well."""
        from dragoman.sandbox.sandbox import Sandbox

        return Sandbox(mode, self._real_roots, writable=writable, active_files=self._active_files)

    async def find(self, path: str) -> ResolvedPath:
        """Resolve a path to its target, which need not exist. Raises ToolError."""
        return await _in_thread(lambda: self._find(path))

    async def check(self, target: ResolvedPath) -> None:
        """Raise TargetChangedError if the path now leads elsewhere."""
        if await self.find(target.given) != target:
            raise TargetChangedError(f"{target.given} now leads to another file")

    def show(self, path: str) -> str:
        """Return an absolute path in its shortest clear form: relative to the cwd if it is inside."""
        return show_from(self.cwd, path)

    async def read_text(self, target: ResolvedPath) -> str:
        """Return the text of a file, or of an unsaved buffer.

        Raises ToolError if the file does not exist, is not text or is too large.
        """
        text = await self._read_text(target, unsaved=True)
        if text is None:
            raise ToolError(str(FileAccessError(target.given, errno.ENOENT)))
        return text

    async def read_text_or_none(self, target: ResolvedPath) -> str | None:
        """Return the text of a file, or None if it is not on disk. Raises ToolError for other failures."""
        return await self._read_text(target, unsaved=False)

    async def check_text(self, target: ResolvedPath, *, expected: str | None) -> None:
        """Raise TargetChangedError if a path leads elsewhere or its text is not the expected one.

        An `expected` of None means a missing file. Raises ToolError if the text cannot be determined.
        """
        await self.check(target)
        _compare(target, await self._read_text(target, unsaved=bool(expected)), expected)

    async def write_text(self, target: ResolvedPath, text: str, *, expected: str | None) -> None:
        """Write a file inside the boundary, right after `check_text`. Raises ToolError.

        Raises TargetChangedError if the text on disk is no longer the expected one. None means a missing file.
        """
        if not target.inside:
            raise ToolError(str(OutsideBoundaryError(target.given, self.roots)))
        if self._client_files.can_write:
            await self._client_files.write(target.path, text)
        else:
            must_match = not self._client_files.can_read  # the client's unsaved text may differ from the text on disk
            # A cancellation is raised after the write, so that nothing is written after the response.
            writing = _in_thread(lambda: _write(self._boundary, target, text, expected, must_match=must_match))
            await finish(writing, limit_s=CLEANUP_TIMEOUT_S)

    async def list_directory(self, target: ResolvedPath) -> list[DirectoryEntry]:
        """List a directory. Raises ToolError."""
        return await _in_thread(lambda: self.boundary_of(target).list_directory(target.path))

    async def is_directory(self, target: ResolvedPath) -> bool:
        """Return whether a path is a directory. Raises ToolError if it does not exist."""
        return await _in_thread(lambda: _is_directory(self.boundary_of(target), target))

    def boundary_of(self, target: ResolvedPath) -> Boundary:
        """Return the boundary for a target. An approved target outside gets a separate boundary.

        Raises PathError.
        """
        if target.inside:
            return self._boundary
        return Boundary([target.path if os.path.isdir(target.path) else os.path.dirname(target.path)])  # noqa: PTH112, PTH120 -- strings

    def place(self, target: ResolvedPath) -> tuple[str, str]:
        """Return the directory that contains a target, and the relative path, which is `.` for the directory itself.

        Raises ToolError.
        """
        try:
            found = self.boundary_of(target).resolve(target.path)
        except PathError as error:
            raise ToolError(str(error)) from None
        return found.root.path, found.relative

    async def _read_text(self, target: ResolvedPath, *, unsaved: bool) -> str | None:
        """Return a text, from the client if it provides files, or None for a missing file.

        A file that is not on disk is requested from a client only if `unsaved` buffers count, because the client would
        report the missing file to the user. Some clients then answer with an empty text, which counts as no file.
        """
        if not self._client_files.can_read:
            return await _in_thread(lambda: _read(self.boundary_of(target), target))
        exists = await _in_thread(lambda: _check_readable(self.boundary_of(target), target))
        if not exists and not unsaved:
            return None
        try:
            text = await self._client_files.read(target.path)
        except ToolError:
            if exists:
                raise
            return None
        if "\0" in text:
            raise ToolError(f"{target.given} is binary, not text; use a command that reads it")
        return text if text or exists else None

    def _find(self, path: str) -> ResolvedPath:
        try:
            named = self._boundary.resolve(path).path
        except OutsideBoundaryError:
            named = os.path.join(self.cwd, path)  # noqa: PTH118 -- a Path would resolve `..` as text
        real = os.path.realpath(named)
        try:
            place = os.path.normpath(self._boundary.resolve(real).path)
        except OutsideBoundaryError:
            return ResolvedPath(path, real, inside=False)
        return ResolvedPath(path, place, inside=True, active=self._active_files.includes(named, real, self.roots))


def _read(boundary: Boundary, target: ResolvedPath) -> str | None:
    try:
        return boundary.read_text(target.path, MAX_FILE_BYTES)
    except FileAccessError as problem:
        if problem.errno in _MISSING:
            return None
        raise


def _check_readable(boundary: Boundary, target: ResolvedPath) -> bool:
    """Open a file for reading. Return False if it does not exist."""
    try:
        with boundary.open_read(target.path) as file:
            if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
                boundary.read_bytes(target.path, MAX_FILE_BYTES)
    except FileAccessError as problem:
        if problem.errno in _MISSING:
            return False
        raise
    return True


def _is_directory(boundary: Boundary, target: ResolvedPath) -> bool:
    try:
        boundary.list_directory(target.path)
    except FileAccessError as problem:
        if problem.errno != errno.ENOTDIR:
            raise
        boundary.stat(target.path)
        return False
    return True


def _write(boundary: Boundary, target: ResolvedPath, text: str, expected: str | None, *, must_match: bool) -> None:
    if must_match:
        _compare(target, _read(boundary, target), expected)
    boundary.write_bytes(target.path, text.encode())


def _compare(target: ResolvedPath, found: str | None, expected: str | None) -> None:
    """Raise TargetChangedError if the texts differ. An empty file counts as a missing one."""
    if (found or "") != (expected or ""):
        raise TargetChangedError(f"{target.given} has changed since it was checked")


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except PathError as error:
        raise ToolError(str(error)) from None
