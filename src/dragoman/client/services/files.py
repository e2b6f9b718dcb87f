"""`fs/*`: access for the agent to the files in a session's directories.

Every file inside may be read, unless a rule denies it. The policy decides on each write by the target of the path after
all links. The write is refused if the path has another target by then.
"""

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

from dragoman.cancellation import finish
from dragoman.client.events import FileWritten
from dragoman.client.permission.action import ReadAction, WriteAction, locate
from dragoman.client.permission.policy import PermissionQuestion, Policy, ReadGate, ReadGuard
from dragoman.client.services.session_boundary import (
    BoundaryOf,
    Decide,
    SessionBoundaries,
    check_absolute,
    denied,
    refuse,
    require,
)
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.errors import ErrorCode, InvalidParamsError, RpcError
from dragoman.files import Boundary, FileTooLargeError, OutsideBoundaryError, PathError
from dragoman.files.content import decode
from dragoman.protocol import v1
from dragoman.protocol.connection import Routes
from dragoman.protocol.methods import FS_READ_TEXT_FILE, FS_WRITE_TEXT_FILE

if TYPE_CHECKING:
    from dragoman.client.permission.questions import AgentQuestions
    from dragoman.client.sessions.sessions import Sessions

T = TypeVar("T")

MAX_FILE_BYTES = 8 * 1024 * 1024
"""Limit of one read or write. Source files are far smaller, and one line of the protocol can hold it."""

_SKIP_BYTES = 1 << 16


class FileService:
    """Answers `fs/*`. `guard` can forbid reads, and `on_write` is called with the session id and the written file."""

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

    async def read(self, params: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
        """Answer `fs/read_text_file` with `limit` lines, starting at `line`. The first line is 1."""
        check_absolute(params.path, "path")
        boundary = self._boundary_of(params.session_id)
        if self._asks_reads:
            action = ReadAction(*await _in_thread(lambda: _locate_inside(boundary, params.path)))
            await require(self._decide, _read_question(params, boundary, action), f"reading {action.path}")
        content = await _in_thread(lambda: self._read(boundary, params))
        return v1.ReadTextFileResponse(content=content)

    async def write(self, params: v1.WriteTextFileRequest) -> v1.WriteTextFileResponse:
        """Answer `fs/write_text_file` after the policy has allowed it."""
        check_absolute(params.path, "path")
        data = _encode(params.content)
        boundary = self._boundary_of(params.session_id)
        action = WriteAction(*await _in_thread(lambda: _locate_inside(boundary, params.path)))
        before = await _in_thread(lambda: _read_if_text(boundary, action.path))
        await require(self._decide, _question(params, boundary, action, before), f"writing {action.path}")
        # A cancellation waits for the write, so that nothing is written after the answer.
        await finish(_in_thread(lambda: _write(boundary, params.path, action, data)))
        if self._on_write is not None:
            self._on_write(params.session_id, FileWritten(params.path, before, params.content))
        return v1.WriteTextFileResponse()

    def _read(self, boundary: Boundary, params: v1.ReadTextFileRequest) -> str:
        path = params.path
        if self._guard is not None:
            action = ReadAction(*_locate_inside(boundary, path))
            if reason := self._guard.forbid_read(action, boundary.roots[0]):
                raise denied(f"reading {action.path}", reason)
            path = action.path
        with boundary.open_read(path) as file:
            return decode(_read_lines(file, params), params.path)


class ProvidedFiles:
    """The file service of a client, with or without writing."""

    def __init__(self, *, write: bool = False, policy: Policy | None = None) -> None:
        self._can_write = write
        self._guard = policy if isinstance(policy, ReadGuard) else None
        self._asks_reads = isinstance(policy, ReadGate) and policy.asks_reads

    def advertise(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Return the capabilities with those of this service."""
        fs = v1.FileSystemCapabilities(read_text_file=True, write_text_file=self._can_write)
        return msgspec.structs.replace(capabilities, fs=fs)

    def install(self, routes: Routes, sessions: "Sessions", questions: "AgentQuestions") -> None:
        """Add the handlers of `fs/*`."""
        service = FileService(
            SessionBoundaries(sessions.find),
            lambda question: questions.decide(sessions.find(question.session_id), question),
            self._guard,
            asks_reads=self._asks_reads,
            on_write=sessions.add_event,
        )
        install_files(routes, service, write=self._can_write)


def install_files(routes: Routes, service: FileService, *, write: bool) -> None:
    """Register a service as the handler of `fs/*`."""
    routes.on_request(FS_READ_TEXT_FILE, service.read)
    if write:
        routes.on_request(FS_WRITE_TEXT_FILE, service.write)


def _question(
    params: v1.WriteTextFileRequest, boundary: Boundary, action: WriteAction, before: str | None
) -> PermissionQuestion:
    cwd = boundary.roots[0]
    call = ToolCallState(
        "",
        title=f"Write {action.path.removeprefix(cwd.rstrip('/') + '/')}",
        kind="edit",
        content=(v1.Diff(path=action.path, old_text=before, new_text=params.content),),
        locations=(v1.ToolCallLocation(path=action.path),),
    )
    return PermissionQuestion(params.session_id, call, (), cwd, action)


def _read_question(params: v1.ReadTextFileRequest, boundary: Boundary, action: ReadAction) -> PermissionQuestion:
    cwd = boundary.roots[0]
    call = ToolCallState(
        "",
        title=f"Read {action.path.removeprefix(cwd.rstrip('/') + '/')}",
        kind="read",
        locations=(v1.ToolCallLocation(path=action.path),),
    )
    return PermissionQuestion(params.session_id, call, (), cwd, action)


def _locate_inside(boundary: Boundary, path: str) -> tuple[str, str]:
    found, root = locate(boundary, path)
    if root is None:
        boundary.stat(path)  # raises the most precise error
        raise OutsideBoundaryError(path, boundary.roots)
    return found, root


def _write(boundary: Boundary, path: str, action: WriteAction, data: bytes) -> None:
    if WriteAction(*locate(boundary, path)) != action:
        raise RpcError(ErrorCode.INVALID_PARAMS, {"path": path, "problem": f"{path} now leads to another file"})
    boundary.write_bytes(action.path, data)


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
            raise FileTooLargeError(params.path, os.fstat(file.fileno()).st_size, MAX_FILE_BYTES)
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
        raise InvalidParamsError(
            "params.content", "the content contains half a surrogate pair, which UTF-8 cannot encode"
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidParamsError(
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
