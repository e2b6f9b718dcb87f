"""`_dragoman/files` and `_dragoman/revert`: the files of a session's directories, for a viewer that may write.

A path is taken inside the directories of the session alone: its `cwd` and the additional ones. All work is done in one
thread of its own, because a disk may be slow; a viewer waits for a bounded time.

A revert undoes changes that the agent has shown as diffs, the last one first. A diff has either the whole texts of a
file or a part of each, and does not say which. So each step asks for the new text of its change: it has to be the whole
file, or to be in the file exactly once. Where a person, or another program, has changed that text since, nothing is
written, and the answer says so.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from dragoman.bridge.delivery import ViewerRequest
from dragoman.bridge.delivery.delivery import Spawn
from dragoman.bridge.envelope import fields_of, parse_list, string_of
from dragoman.bridge.registry import ServedSession, SessionRegistry
from dragoman.errors import ErrorCode
from dragoman.files import Boundary, FileLists, FileProblem, PathError, match_files

MAX_OFFERED = 50
"""Files of one answer: more than a list on a screen shows."""

MAX_REVERTED_BYTES = 16 * 1024 * 1024
"""Of a file: an agent shows no larger one as a diff, because messages have this limit."""

_FRESH_S = 5.0
_MAX_KEPT = 4
_TIMEOUT_S = 10.0


class FileChange(msgspec.Struct, frozen=True, rename="camel"):
    """A change that an agent has shown; without an old text it made the file."""

    new_text: str
    old_text: str | None = None


class RevertRefused(Exception):
    """A file is not as the agent left it."""


class FileRequests:
    """Serves requests about files."""

    def __init__(self, cwd: str, spawn: Spawn, registry: SessionRegistry) -> None:
        self._cwd = cwd
        self._spawn = spawn
        self._registry = registry
        self._lists = FileLists(fresh_s=_FRESH_S, max_kept=_MAX_KEPT)
        self._thread = ThreadPoolExecutor(1, "files")

    def find(self, request: ViewerRequest) -> None:
        """Answer `_dragoman/files`: the files whose paths fit a text."""
        typed = string_of(fields_of(request.params).get("query")) or ""
        roots = self._roots(request)
        if roots is not None:
            self._serve(request, lambda: self._find(roots, typed))

    def revert(self, request: ViewerRequest) -> None:
        """Answer `_dragoman/revert`: undo the agent's changes of one file."""
        roots, session = self._roots(request), self._registry.find(request.session_id)
        if roots is None:
            return
        fields = fields_of(request.params)
        path = string_of(fields.get("path"))
        try:
            changes = [msgspec.json.decode(each, type=FileChange) for each in parse_list(fields.get("changes"))]
        except msgspec.MsgspecError:
            changes = []
        if session is None or not path or not changes:
            _refuse(request, "it needs sessionId, path and changes, a list of {oldText, newText} in their order")
        elif session.info.turns:
            _refuse(request, "the agent is at work, and may write this file; wait for the end of the turn, or stop it")
        else:
            self._serve(request, lambda: {"exists": revert_file(Boundary(roots), path, changes)})

    def close(self) -> None:
        """Take no more work; what is under way ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _roots(self, request: ViewerRequest) -> list[str] | None:
        """Give the directories of the session, or of one that is to begin; None for a session that is not here."""
        if "sessionId" not in fields_of(request.params):
            return [self._cwd]
        session = self._registry.find(request.session_id)
        if session is None:
            problem = f"session {request.session_id} is not open here; open it with session/load"
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": request.session_id, "problem": problem})
            return None
        return [session.cwd, *_additional(session)]

    def _serve(self, request: ViewerRequest, work: Callable[[], dict[str, Any]]) -> None:
        async def serve() -> None:
            loop = asyncio.get_running_loop()
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    request.answer(await loop.run_in_executor(self._thread, work))
            except (PathError, RevertRefused) as error:
                _refuse(request, str(error))
            except TimeoutError:
                request.refuse(
                    ErrorCode.INTERNAL_ERROR, f"the disk has not answered for {_TIMEOUT_S:g} s; try again later"
                )

        self._spawn(serve())

    def _find(self, roots: list[str], typed: str) -> dict[str, Any]:
        found: list[str] = []
        is_whole = True
        for at, root in enumerate(roots):
            listed = self._lists.of(root)
            is_whole = is_whole and listed.is_whole
            matches = match_files(listed, typed, MAX_OFFERED)
            found += matches if at == 0 else [f"{root.rstrip('/')}/{path}" for path in matches]
        return {"files": found[:MAX_OFFERED], "isWhole": is_whole}


def revert_file(boundary: Boundary, path: str, changes: list[FileChange]) -> bool:
    """Undo changes of a file, the last first; tells whether there is a file now. Raises PathError, RevertRefused."""
    try:
        text = boundary.read_bytes(path, MAX_REVERTED_BYTES).decode()
    except UnicodeDecodeError:
        raise RevertRefused(f"{path} is no text any more; nothing was changed") from None
    except FileProblem:
        raise RevertRefused(f"{path} is not there any more; nothing was changed") from None
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
                    raise RevertRefused(f"{path} was there before the agent made it; undo the changes by hand")
                return None
            text = change.old_text
        elif change.old_text is not None and change.new_text and text.count(change.new_text) == 1:
            text = text.replace(change.new_text, change.old_text)
        else:
            raise RevertRefused(f"{path} was changed after the agent; nothing was reverted. Compare it with the diff")
    return text


def _additional(session: ServedSession) -> list[str]:
    listed = parse_list(session.params.get("additionalDirectories"))
    return [path for each in listed if (path := string_of(each)) is not None]


def _refuse(request: ViewerRequest, problem: str) -> None:
    request.refuse(ErrorCode.INVALID_PARAMS, problem)
