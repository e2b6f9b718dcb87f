"""`_dragoman/sessions` and `_dragoman/projects`: the lists of the page, in parts.

The page shows the latest sessions first and requests more when the user scrolls or asks for them. It never has all
sessions. So it requests facts about all of them here, such as the number of archived ones or the matches of a search.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from dragoman.bridge.router.list_cursor import make_list_cursor, read_list_cursor, wrong_cursor
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.sessions import GROUPS, SESSIONS, ListEntry, SessionLists
from dragoman.bridge.viewers import Viewer, ViewerRequest
from dragoman.errors import ErrorCode, RpcError
from dragoman.store import PAGE_SESSIONS
from dragoman.wire.message import BAD_JSON

MAX_SESSIONS = 1_000
"""Sessions per answer, which are some hundred kilobytes."""

MAX_IDS = 100
MAX_SEARCH_CHARS = 200

PAGE_PROJECTS = 30
PROJECT_SESSIONS = 5
"""Sessions shown per project. The user asks for the others."""


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
        """The parameters that distinguish this list from others."""
        return self.cwd, " ".join(self.words), *sorted(self.groups or GROUPS)


class _ProjectsParams(msgspec.Struct):
    cursor: str | None = None


_Form = TypeVar("_Form")


class SessionPages:
    """Serves the lists of the page."""

    def __init__(self, lists: SessionLists) -> None:
        self._lists = lists

    async def sessions(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/sessions`: named sessions, or a page of a list or of a search."""
        params = _read(request, _SessionsParams)
        if params.ids is not None:
            return {"sessions": self._describe(self._named(request.viewer, params.ids))}
        before = None if params.cursor is None else read_list_cursor(params.cursor, *params.list_name)
        if params.cursor is not None and before is None:
            raise wrong_cursor()
        if params.words:
            groups = params.groups or GROUPS
            found = await self._lists.search(request.viewer, params.words, groups, params.cwd, before)
            found = found[: params.limit + 1]
        else:
            newest = self._lists.newest(request.viewer, params.groups or GROUPS, params.cwd, before)
            found = list(islice(newest, params.limit + 1))
        answer = self._page(params, found)
        if params.cursor is None and params.cwd is None and not params.words:  # the first page of a whole list
            answer["counts"] = self._lists.count(request.viewer)
            answer["busy"] = self._describe(self._lists.busy(request.viewer))
        return answer

    async def projects(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/projects`: the directories with the latest sessions of each."""
        params = _read(request, _ProjectsParams)
        before = None if params.cursor is None else read_list_cursor(params.cursor, "projects")
        if params.cursor is not None and before is None:
            raise wrong_cursor()
        found = self._lists.newest_projects(request.viewer, before, PAGE_PROJECTS + 1)
        shown = found[:PAGE_PROJECTS]
        answer: dict[str, Any] = {"projects": [self._project(request.viewer, cwd) for _, cwd in shown]}
        if len(found) > len(shown):
            answer["nextCursor"] = make_list_cursor(shown[-1][0], "projects")
        return answer

    def _project(self, viewer: Viewer, cwd: str) -> dict[str, Any]:
        params = _SessionsParams(groups=[SESSIONS], cwd=cwd, limit=PROJECT_SESSIONS)
        found = self._lists.newest(viewer, (SESSIONS,), cwd)
        return {"cwd": cwd, **self._page(params, list(islice(found, PROJECT_SESSIONS + 1)))}

    def _page(self, params: _SessionsParams, found: list[ListEntry]) -> dict[str, Any]:
        """Describe a page of a list. `found` has one session more than the page if there is a next page."""
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


def _read(request: ViewerRequest, form: type[_Form]) -> _Form:
    """Decode the params of a request. Raises RpcError."""
    try:
        return msgspec.json.decode(bytes(request.params) or b"{}", type=form)
    except BAD_JSON as error:
        raise RpcError(ErrorCode.INVALID_PARAMS, f"params: {error}") from None
