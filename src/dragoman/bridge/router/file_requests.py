"""`_dragoman/files` and `_dragoman/revert`: the files of a session's directories, for a viewer that may write.

Only paths inside the session's directories are accepted: its `cwd` and the additional ones. A separate thread does the
work, because a disk may be slow. A viewer waits for a bounded time.

A revert undoes changes that the agent has shown as diffs, the last one first. A diff has the whole texts of a file or a
part of each, and does not say which. So each step looks for the new text of its change. It must be the whole file, or
occur in the file exactly once. If the user or a program has changed that text since, nothing is written and the request
fails.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from dragoman.bridge.envelope import parse_list
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.sessions import ServedSession, ServedSessions
from dragoman.bridge.viewers import ViewerRequest
from dragoman.errors import ErrorCode, RpcError
from dragoman.files import Boundary, FileAccessError, FileLists, PathError, match_files
from dragoman.wire.envelope import fields_of, string_of

MAX_OFFERED = 50
"""Files per answer, which is more than a list on a screen shows."""

MAX_REVERTED_BYTES = 16 * 1024 * 1024
"""Largest file to revert. Agents show no larger one as a diff, because messages have this limit."""

_FRESH_S = 5.0
_MAX_KEPT = 4
_TIMEOUT_S = 10.0


class FileChange(msgspec.Struct, frozen=True, rename="camel"):
    """A change that an agent has shown. Without an old text, the agent created the file."""

    new_text: str
    old_text: str | None = None


class RevertError(Exception):
    """A file is not as the agent left it."""


class FileRequests:
    """Serves requests about files."""

    def __init__(self, cwd: str, sessions: ServedSessions) -> None:
        self._cwd = cwd
        self._sessions = sessions
        self._lists = FileLists(fresh_s=_FRESH_S, max_kept=_MAX_KEPT)
        self._thread = ThreadPoolExecutor(1, "files")

    async def find(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/files`: the files whose paths match a text."""
        typed = string_of(fields_of(request.params).get("query")) or ""
        roots = self._roots(request)
        return await self._work(lambda: self._find(roots, typed))

    async def revert(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/revert`: undo the agent's changes of one file."""
        roots, session = self._roots(request), self._sessions.find(request.session_id)
        fields = fields_of(request.params)
        path = string_of(fields.get("path"))
        try:
            changes = [msgspec.json.decode(each, type=FileChange) for each in parse_list(fields.get("changes"))]
        except msgspec.MsgspecError:
            changes = []
        if session is None or not path or not changes:
            problem = "it needs sessionId, path and changes, an ordered list of {oldText, newText}"
            raise RpcError(ErrorCode.INVALID_PARAMS, problem)
        if session.info.turns:
            problem = "the agent is working and may write this file; wait until the turn ends, or stop it"
            raise RpcError(ErrorCode.INVALID_PARAMS, problem)
        return await self._work(lambda: {"exists": revert_file(Boundary(roots), path, changes)})

    def close(self) -> None:
        """Refuse new work. Running work is not cancelled."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _roots(self, request: ViewerRequest) -> list[str]:
        """Return the directories of the session, or of the next new session. Raises RpcError."""
        if "sessionId" not in fields_of(request.params):
            return [self._cwd]
        session = self._sessions.find(request.session_id)
        if session is None:
            problem = f"session {request.session_id} is not open here; open it with session/load"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": request.session_id, "problem": problem})
        return [session.cwd, *_additional(session)]

    async def _work(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run work in the thread for files, in bounded time. Raises RpcError."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (PathError, RevertError) as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, str(error)) from None
        except TimeoutError:
            problem = f"the disk has not responded for {_TIMEOUT_S:g} s; try again later"
            raise RpcError(ErrorCode.INTERNAL_ERROR, problem) from None

    def _find(self, roots: list[str], typed: str) -> dict[str, Any]:
        found: list[str] = []
        is_whole = True
        for at, root in enumerate(roots):
            listed = self._lists.get(root)
            is_whole = is_whole and listed.is_whole
            matches = match_files(listed, typed, MAX_OFFERED)
            found += matches if at == 0 else [f"{root.rstrip('/')}/{path}" for path in matches]
        return {"files": found[:MAX_OFFERED], "isWhole": is_whole}


def revert_file(boundary: Boundary, path: str, changes: list[FileChange]) -> bool:
    """Undo changes of a file, the last first. Return whether the file exists now. Raises PathError, RevertError."""
    try:
        text = boundary.read_bytes(path, MAX_REVERTED_BYTES).decode()
    except UnicodeDecodeError:
        raise RevertError(f"{path} is no longer a text file; nothing was changed") from None
    except FileAccessError:
        raise RevertError(f"{path} no longer exists; nothing was changed") from None
    before = _undo(text, path, changes)
    if before is None:
        boundary.remove(path)
        return False
    boundary.write_bytes(path, before.encode())
    return True


def _undo(text: str, path: str, changes: list[FileChange]) -> str | None:
    for number, change in enumerate(reversed(changes)):
        if text == change.new_text:
            if change.old_text is None:
                if number < len(changes) - 1:
                    raise RevertError(f"{path} existed before the agent wrote it; undo the changes by hand")
                return None
            text = change.old_text
        elif change.old_text is not None and change.new_text and text.count(change.new_text) == 1:
            text = text.replace(change.new_text, change.old_text)
        else:
            raise RevertError(
                f"{path} changed after the agent edited it, so nothing was reverted. Compare the file with the diff"
            )
    return text


def _additional(session: ServedSession) -> list[str]:
    listed = parse_list(session.params.get("additionalDirectories"))
    return [path for each in listed if (path := string_of(each)) is not None]
