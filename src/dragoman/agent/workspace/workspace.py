"""Where the tools of a session work: its directories, and the two ways to its files and commands.

Files and commands go through the client where it offers that, because the person's editor knows the changes that are
not saved yet and shows the commands that run; else they are our own. The boundary holds in both cases: a path is first
resolved, with its links, to a `ResolvedPath`, and only a target inside is ever written. We open it through the boundary
once more, which no race can defeat; a client is given the absolute path of the target, without links below the
session's directory, spelled from that directory as the client itself spelled it.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from dragoman.agent.prepared_call import TargetChanged, ToolFailure
from dragoman.agent.workspace.active_files import ActiveFiles
from dragoman.agent.workspace.client_side import ClientFiles, ClientSide, ClientTerminals
from dragoman.agent.workspace.shell import CLEANUP_TIMEOUT_S, CommandRunner, Shell, Supervise
from dragoman.cancellation import finish
from dragoman.files import Boundary, DirectoryEntry, FileProblem, OutsideBoundary, PathError
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.notice import TERMINALS

T = TypeVar("T")

MAX_FILE_BYTES = 8 * 1024 * 1024
"""The largest text that is read or written whole: source files are far smaller, and a diff has it twice."""

_MISSING = (errno.ENOENT, errno.ENOTDIR)


class ResolvedPath(msgspec.Struct, frozen=True):
    """The target of a path at one moment."""

    given: str
    """The path as the model wrote it."""
    path: str
    """The absolute path without links."""
    inside: bool
    """Whether it lies in the session's directories."""
    active: bool = False
    """Whether it is inside and acts by itself: see `active_files`."""


class Workspace:
    """The directories of one session, and all that its tools do there."""

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
        """Open the directories; raises PathError when one cannot be."""
        self._boundary = Boundary([cwd, *additional_directories])
        self._active_files = active_files or ActiveFiles()
        self.supervise = supervise
        client = ClientSide(connection, session_id)
        capabilities = capabilities or v1.ClientCapabilities()
        self._client_files = ClientFiles(client, capabilities.fs)
        self.commands: CommandRunner = (
            ClientTerminals(client)
            if capabilities.terminal
            else Shell(supervise, offers_cancel=TERMINALS in (capabilities.meta or {}))
        )

    @property
    def cwd(self) -> str:
        """The base of relative paths, and where commands run."""
        return self._boundary.roots[0]

    @property
    def roots(self) -> tuple[str, ...]:
        """All directories of the session."""
        return self._boundary.roots

    def set_directories(self, additional_directories: Sequence[str]) -> None:
        """Change the directories beside the cwd; calls that are prepared are held to the new ones. Raises PathError."""
        self._boundary = Boundary([self.cwd, *additional_directories])

    async def find(self, path: str) -> ResolvedPath:
        """Follow a path to its target, whether there is something or not; raises ToolFailure."""
        return await _in_thread(lambda: self._find(path))

    async def check(self, target: ResolvedPath) -> None:
        """Raise TargetChanged when the path now leads elsewhere."""
        if await self.find(target.given) != target:
            raise TargetChanged(f"{target.given} leads elsewhere than it did")

    def show(self, path: str) -> str:
        """Return an absolute path as short as it can be understood: from the cwd, where it lies in it."""
        if path == self.cwd:
            return "."
        return path.removeprefix(self.cwd.rstrip("/") + "/")

    async def read_text(self, target: ResolvedPath) -> str:
        """Return the text of a file, or of a buffer that is not saved yet.

        Raises ToolFailure when there is none, or it is no text, or too large.
        """
        text = await self._read_text(target, unsaved=True)
        if text is None:
            raise ToolFailure(str(FileProblem(target.given, errno.ENOENT)))
        return text

    async def read_text_if_there(self, target: ResolvedPath) -> str | None:
        """Return the text of a file, or None when the disk has no such file; raises ToolFailure otherwise."""
        return await self._read_text(target, unsaved=False)

    async def check_text(self, target: ResolvedPath, *, expected: str | None) -> None:
        """Raise TargetChanged when a path leads elsewhere, or to another text than expected; None is a missing file.

        Raises ToolFailure when that cannot be found out.
        """
        await self.check(target)
        _compare(target, await self._read_text(target, unsaved=bool(expected)), expected)

    async def write_text(self, target: ResolvedPath, text: str, *, expected: str | None) -> None:
        """Give a file inside this text, right after `check_text`; raises ToolFailure.

        Raises TargetChanged when it no longer has the expected text (None: is not there), as far as the disk shows.
        """
        if not target.inside:
            raise ToolFailure(str(OutsideBoundary(target.given, self.roots)))
        if self._client_files.can_write:
            await self._client_files.write(target.path, text)
        else:
            must_match = not self._client_files.can_read  # the client's unsaved text differs from the disk's
            # A cancellation is raised when it is done, so that nothing is written after its answer.
            writing = _in_thread(lambda: _write(self._boundary, target, text, expected, must_match=must_match))
            await finish(writing, limit_s=CLEANUP_TIMEOUT_S)

    async def list_directory(self, target: ResolvedPath) -> list[DirectoryEntry]:
        """List a directory; raises ToolFailure."""
        return await _in_thread(lambda: self.boundary_of(target).list_directory(target.path))

    async def is_directory(self, target: ResolvedPath) -> bool:
        """Whether there is a directory; raises ToolFailure when there is nothing."""
        return await _in_thread(lambda: _is_directory(self.boundary_of(target), target))

    def boundary_of(self, target: ResolvedPath) -> Boundary:
        """Return the boundary for a target: one of its own for a target outside that was allowed.

        Raises PathError.
        """
        if target.inside:
            return self._boundary
        return Boundary([target.path if os.path.isdir(target.path) else os.path.dirname(target.path)])  # noqa: PTH112, PTH120 -- texts

    def place(self, target: ResolvedPath) -> tuple[str, str]:
        """Return the directory that holds a target and the way from there, `.` when it is that directory itself.

        Raises ToolFailure.
        """
        try:
            found = self.boundary_of(target).resolve(target.path)
        except PathError as error:
            raise ToolFailure(str(error)) from None
        return found.root.path, found.relative

    async def _read_text(self, target: ResolvedPath, *, unsaved: bool) -> str | None:
        """Return a text, the client's where it gives any; None when there is none.

        What the disk does not have, a client is asked for only if `unsaved` buffers count: it would complain to the
        person of a file that is missing. Some clients then answer with an empty text, which is none.
        """
        if not self._client_files.can_read:
            return await _in_thread(lambda: _read(self.boundary_of(target), target))
        exists = await _in_thread(lambda: _check_readable(self.boundary_of(target), target))
        if not exists and not unsaved:
            return None
        try:
            text = await self._client_files.read(target.path)
        except ToolFailure:
            if exists:
                raise
            return None
        if "\0" in text:
            raise ToolFailure(f"{target.given} is binary, not text; use a command that reads it")
        return text if text or exists else None

    def _find(self, path: str) -> ResolvedPath:
        try:
            named = self._boundary.resolve(path).path
        except OutsideBoundary:
            named = os.path.join(self.cwd, path)  # noqa: PTH118 -- a Path would take `..` for words
        real = os.path.realpath(named)
        try:
            place = os.path.normpath(self._boundary.resolve(real).path)
        except OutsideBoundary:
            return ResolvedPath(path, real, inside=False)
        return ResolvedPath(path, place, inside=True, active=self._active_files.includes(named, real, self.roots))


def _read(boundary: Boundary, target: ResolvedPath) -> str | None:
    try:
        return boundary.read_text(target.path, MAX_FILE_BYTES)
    except FileProblem as problem:
        if problem.errno in _MISSING:
            return None
        raise


def _check_readable(boundary: Boundary, target: ResolvedPath) -> bool:
    """Open a file as if to read it; False when there is none."""
    try:
        with boundary.open_read(target.path) as file:
            if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
                boundary.read_bytes(target.path, MAX_FILE_BYTES)
    except FileProblem as problem:
        if problem.errno in _MISSING:
            return False
        raise
    return True


def _is_directory(boundary: Boundary, target: ResolvedPath) -> bool:
    try:
        boundary.list_directory(target.path)
    except FileProblem as problem:
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
    """Raise TargetChanged when the texts differ; to write an empty file is to write a new one."""
    if (found or "") != (expected or ""):
        raise TargetChanged(f"{target.given} has changed since it was looked at")


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except PathError as error:
        raise ToolFailure(str(error)) from None
