"""`fs/*`: the files of a session's directories, for its agent.

Every file inside may be read, unless a rule denies it; the policy decides on each write, with the target of
the path after all links. Only that target is written: a path that leads elsewhere by then is refused.
"""

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

from dragoman.cancellation import finish
from dragoman.client.action import Read, Write, locate
from dragoman.client.events import FileWritten
from dragoman.client.policy import Policy, Question, ReadGate, ReadGuard
from dragoman.client.session_boundary import (
    BoundaryOf,
    Decide,
    SessionBoundaries,
    check_absolute,
    denied,
    refuse,
    require,
)
from dragoman.client.tool_call import ToolCallState
from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.files import Boundary, OutsideBoundary, PathError, TooLarge
from dragoman.files.content import decode
from dragoman.protocol import v1
from dragoman.protocol.connection import Routes
from dragoman.protocol.methods import FS_READ_TEXT_FILE, FS_WRITE_TEXT_FILE
from dragoman.wire import IncomingRequest

if TYPE_CHECKING:
    from dragoman.client.asking import Asking
    from dragoman.client.sessions import Sessions

T = TypeVar("T")

MAX_FILE_BYTES = 8 * 1024 * 1024
"""The most that is read or written at once: source files are far smaller, and a line of the wire holds it."""

_SKIP_BYTES = 1 << 16


class FileService:
    """Answers `fs/*`; `guard` may keep files from being read, `on_write` is told what was written in which session."""

    def __init__(
        self,
        boundary_of: BoundaryOf,
        decide: Decide,
        guard: ReadGuard | None = None,
        *,
        asks_reads: bool = False,
        on_write: Callable[[str, FileWritten], None] | None = None,
    ) -> None:
        self._boundary_of = boundary_of
        self._decide = decide
        self._guard = guard
        self._asks_reads = asks_reads
        self._on_write = on_write

    async def read(self, params: v1.ReadTextFileRequest, request: IncomingRequest) -> v1.ReadTextFileResponse:
        """Answer `fs/read_text_file`: `limit` lines from `line` on, the first being 1."""
        del request
        check_absolute(params.path, "path")
        boundary = self._boundary_of(params.session_id)
        if self._asks_reads:
            place = Read(*await _in_thread(lambda: _locate_inside(boundary, params.path)))
            await require(self._decide, _read_question(params, boundary, place), f"reading {place.path}")
        content = await _in_thread(lambda: self._read(boundary, params))
        return v1.ReadTextFileResponse(content=content)

    async def write(self, params: v1.WriteTextFileRequest, request: IncomingRequest) -> v1.WriteTextFileResponse:
        """Answer `fs/write_text_file`, once the policy has allowed it."""
        del request
        check_absolute(params.path, "path")
        data = _encode(params.content)
        boundary = self._boundary_of(params.session_id)
        place = Write(*await _in_thread(lambda: _locate_inside(boundary, params.path)))
        before = await _in_thread(lambda: _read_if_text(boundary, place.path))
        await require(self._decide, _question(params, boundary, place, before), f"writing {place.path}")
        # A cancellation is raised when it is done, so that nothing is written after its answer.
        await finish(_in_thread(lambda: _write(boundary, params.path, place, data)))
        if self._on_write is not None:
            self._on_write(params.session_id, FileWritten(params.path, before, params.content))
        return v1.WriteTextFileResponse()

    def _read(self, boundary: Boundary, params: v1.ReadTextFileRequest) -> str:
        path = params.path
        if self._guard is not None:
            place = Read(*_locate_inside(boundary, path))
            if reason := self._guard.forbid_read(place, boundary.roots[0]):
                raise denied(f"reading {place.path}", reason)
            path = place.path
        with boundary.open_read(path) as file:
            return decode(_read_lines(file, params), params.path)


class ProvidedFiles:
    """The service behind `fs/*`; only for reading, or for writing as well."""

    def __init__(self, *, write: bool = False, policy: Policy | None = None) -> None:
        self._can_write = write
        self._guard = policy if isinstance(policy, ReadGuard) else None
        self._asks_reads = isinstance(policy, ReadGate) and policy.asks_reads

    def advertise(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Return the capabilities with these among them."""
        fs = v1.FileSystemCapabilities(read_text_file=True, write_text_file=self._can_write)
        return msgspec.structs.replace(capabilities, fs=fs)

    def install(self, routes: Routes, sessions: "Sessions", asking: "Asking") -> None:
        """Add the handlers."""
        service = FileService(
            SessionBoundaries(sessions.find),
            lambda question: asking.decide(sessions.find(question.session_id), question),
            self._guard,
            asks_reads=self._asks_reads,
            on_write=sessions.tell,
        )
        install_files(routes, service, write=self._can_write)


def install_files(routes: Routes, service: FileService, *, write: bool) -> None:
    """Let a service answer `fs/*`."""
    routes.on_request(FS_READ_TEXT_FILE, service.read)
    if write:
        routes.on_request(FS_WRITE_TEXT_FILE, service.write)


def _question(params: v1.WriteTextFileRequest, boundary: Boundary, place: Write, before: str | None) -> Question:
    cwd = boundary.roots[0]
    call = ToolCallState(
        "",
        title=f"Write {place.path.removeprefix(cwd.rstrip('/') + '/')}",
        kind="edit",
        content=(v1.Diff(path=place.path, old_text=before, new_text=params.content),),
        locations=(v1.ToolCallLocation(path=place.path),),
    )
    return Question(params.session_id, call, (), cwd, place)


def _read_question(params: v1.ReadTextFileRequest, boundary: Boundary, place: Read) -> Question:
    cwd = boundary.roots[0]
    call = ToolCallState(
        "",
        title=f"Read {place.path.removeprefix(cwd.rstrip('/') + '/')}",
        kind="read",
        locations=(v1.ToolCallLocation(path=place.path),),
    )
    return Question(params.session_id, call, (), cwd, place)


def _locate_inside(boundary: Boundary, path: str) -> tuple[str, str]:
    found, root = locate(boundary, path)
    if root is None:
        boundary.stat(path)  # which says best what is wrong with it
        raise OutsideBoundary(path, boundary.roots)
    return found, root


def _write(boundary: Boundary, path: str, place: Write, data: bytes) -> None:
    if Write(*locate(boundary, path)) != place:
        raise RpcError(ErrorCode.INVALID_PARAMS, {"path": path, "problem": f"{path} leads elsewhere than it did"})
    boundary.write_bytes(place.path, data)


def _read_if_text(boundary: Boundary, path: str) -> str | None:
    try:
        return boundary.read_text(path, MAX_FILE_BYTES)
    except PathError:
        return None


def _read_lines(file: BinaryIO, params: v1.ReadTextFileRequest) -> bytes:
    for _ in range((params.line or 1) - 1):
        if not _skip_line(file):
            return b""
    lines: list[bytes] = []
    room = MAX_FILE_BYTES + 1
    while (params.limit is None or len(lines) < params.limit) and (line := file.readline(room)):
        lines.append(line)
        room -= len(line)
        if room <= 0:
            raise TooLarge(params.path, os.fstat(file.fileno()).st_size, MAX_FILE_BYTES)
    return b"".join(lines)


def _skip_line(file: BinaryIO) -> bool:
    while part := file.readline(_SKIP_BYTES):
        if part.endswith(b"\n"):
            return True
    return False


def _encode(content: str) -> bytes:
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise InvalidParams("params.content", "the content has half of a surrogate pair; no UTF-8 text can") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidParams(
            "params.content",
            f"the content has {len(data):,} bytes; expected at most {MAX_FILE_BYTES:,}",
            expected=f"at most {MAX_FILE_BYTES:,} bytes",
        )
    return data


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except PathError as error:
        raise refuse(error) from None
