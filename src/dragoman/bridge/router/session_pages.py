"""`_dragoman/sessions` and `_dragoman/projects`: the lists of the page, a part at a time.

The page shows the latest sessions first and asks for more when a person does. So it never has all of them: what it has
to say of all, such as how many are archived or which title fits a search, it asks for here.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from dragoman.bridge.delivery import ListPlace, Viewer, ViewerRequest
from dragoman.bridge.registry import GROUPS, SESSIONS, ListEntry, SessionLists
from dragoman.bridge.router.list_cursor import make_list_cursor, read_list_cursor, refuse_cursor
from dragoman.errors import ErrorCode
from dragoman.store import PAGE_SESSIONS
from dragoman.wire.message import BAD_JSON

MAX_SESSIONS = 1_000
"""In one answer: some hundred kilobytes."""

MAX_IDS = 100
MAX_SEARCH_CHARS = 200

PAGE_PROJECTS = 30
PROJECT_SESSIONS = 5
"""Of each project at first; a person asks for the others."""

_SEARCHED_AT_ONCE = 2_000
"""Sessions whose titles are looked at before others have their turn: some milliseconds."""


class _SessionsParams(msgspec.Struct):
    groups: list[Literal["sessions", "runs", "archived"]] | None = None
    cwd: str | None = None
    search: Annotated[str, Meta(max_length=MAX_SEARCH_CHARS)] | None = None
    ids: Annotated[list[str], Meta(max_length=MAX_IDS)] | None = None
    limit: Annotated[int, Meta(ge=0, le=MAX_SESSIONS)] = PAGE_SESSIONS
    cursor: str | None = None

    @property
    def words(self) -> list[str]:
        return (self.search or "").lower().split()

    @property
    def list_name(self) -> tuple[str | None, ...]:
        """What tells its list from others."""
        return self.cwd, " ".join(self.words), *sorted(self.groups or GROUPS)


class _ProjectsParams(msgspec.Struct):
    cursor: str | None = None


_Form = TypeVar("_Form")


class SessionPages:
    """Serves the lists of the page."""

    def __init__(self, lists: SessionLists, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._lists = lists
        self._spawn = spawn

    def sessions(self, request: ViewerRequest) -> None:
        """Answer `_dragoman/sessions`."""
        params = _read(request, _SessionsParams)
        if params is None:
            return
        if params.ids is not None:
            request.answer({"sessions": self._describe(self._named(request.viewer, params.ids))})
            return
        before = None if params.cursor is None else read_list_cursor(params.cursor, *params.list_name)
        if params.cursor is not None and before is None:
            refuse_cursor(request)
        elif params.words:
            self._spawn(self._search(request, params, before))
        else:
            found = self._lists.newest(request.viewer, params.groups or GROUPS, params.cwd, before)
            self._answer(request, params, list(islice(found, params.limit + 1)))

    def projects(self, request: ViewerRequest) -> None:
        """Answer `_dragoman/projects`: the directories with the latest sessions of each."""
        params = _read(request, _ProjectsParams)
        if params is None:
            return
        before = None if params.cursor is None else read_list_cursor(params.cursor, "projects")
        if params.cursor is not None and before is None:
            refuse_cursor(request)
            return
        found = self._lists.newest_projects(request.viewer, before, PAGE_PROJECTS + 1)
        shown = found[:PAGE_PROJECTS]
        answer: dict[str, Any] = {"projects": [self._project(request.viewer, cwd) for _, cwd in shown]}
        if len(found) > len(shown):
            answer["nextCursor"] = make_list_cursor(shown[-1][0], "projects")
        request.answer(answer)

    def _project(self, viewer: Viewer, cwd: str) -> dict[str, Any]:
        params = _SessionsParams(groups=[SESSIONS], cwd=cwd, limit=PROJECT_SESSIONS)
        found = self._lists.newest(viewer, (SESSIONS,), cwd)
        return {"cwd": cwd, **self._page(params, list(islice(found, PROJECT_SESSIONS + 1)))}

    async def _search(self, request: ViewerRequest, params: _SessionsParams, before: ListPlace | None) -> None:
        """Find the sessions whose title or directory has all words."""
        found: list[ListEntry] = []
        while len(found) <= params.limit:
            some = list(
                islice(
                    self._lists.newest(request.viewer, params.groups or GROUPS, params.cwd, before), _SEARCHED_AT_ONCE
                )
            )
            found += [each for each in some if self._fits(each, params.words)]
            if len(some) < _SEARCHED_AT_ONCE:
                break
            before = some[-1].place
            await asyncio.sleep(0)
        self._answer(request, params, found[: params.limit + 1])

    def _fits(self, listed: ListEntry, words: list[str]) -> bool:
        text = f"{self._lists.title_of(listed)} {last_name(listed.cwd)}".lower()
        return all(word in text for word in words)

    def _answer(self, request: ViewerRequest, params: _SessionsParams, found: list[ListEntry]) -> None:
        """Answer with a page; the first one of a whole list also has what is true of all sessions."""
        answer = self._page(params, found)
        if params.cursor is None and params.cwd is None and not params.words:
            answer["counts"] = self._lists.count(request.viewer)
            answer["busy"] = self._describe(self._lists.busy(request.viewer))
        request.answer(answer)

    def _page(self, params: _SessionsParams, found: list[ListEntry]) -> dict[str, Any]:
        """Describe a page of a list, of which `found` has one session more if there is one."""
        shown = found[: params.limit]
        page: dict[str, Any] = {"sessions": self._describe(shown)}
        if shown and len(found) > len(shown):
            page["nextCursor"] = make_list_cursor(shown[-1].place, *params.list_name)
        return page

    def _named(self, viewer: Viewer, ids: Iterable[str]) -> list[ListEntry]:
        found = (self._lists.find(each) for each in ids if viewer.sees(each))
        return [each for each in found if each is not None]

    def _describe(self, found: Iterable[ListEntry]) -> list[dict[str, Any]]:
        return [self._lists.describe(each) for each in found]


def _read(request: ViewerRequest, form: type[_Form]) -> _Form | None:
    """Decode the params of a request; one that does not fit is refused."""
    try:
        return msgspec.json.decode(bytes(request.params) or b"{}", type=form)
    except BAD_JSON as error:
        request.refuse(ErrorCode.INVALID_PARAMS, f"params: {error}")
        return None


def last_name(path: str) -> str:
    """Return the last part of a path, by which the page names a project."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
