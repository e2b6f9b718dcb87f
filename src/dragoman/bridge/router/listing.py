"""`session/list`: the agent's own list with the labels of the bridge, or the sessions that have journals.

A title that the user set through the bridge replaces the agent's title. If the agent supports archiving, its list says
which sessions are archived, and the labels are updated from it. Otherwise the labels say it, and the bridge filters the
agent's list. A page may then be short or empty, but `nextCursor` still leads to the next page.

Pages of sessions that have journals are full, and the cost of a page does not depend on the number of sessions. A
read-only viewer receives this list. It can open no other sessions, and its request must not reach the agent.
"""

from itertools import islice
from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.envelope import parse_list
from dragoman.bridge.router.list_cursor import make_list_cursor, read_list_cursor, wrong_cursor
from dragoman.bridge.router.opening_requests import check_paths
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.sessions import ARCHIVED, GROUPS, RUNS, SESSIONS, ServedSessions, SessionLabels
from dragoman.bridge.viewers import Delivery, ViewerRequest
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import methods
from dragoman.protocol.session_origin import ORIGIN_KEY
from dragoman.store import PAGE_SESSIONS
from dragoman.wire.envelope import decode_fields, encode, fields_of, string_of

_MAX_PAGES = 1_000
"""Pages to search for a session, if an agent never ends its list."""

_LISTED = ("sessionId", "cwd", "title", "updatedAt")

_GROUPS = {"exclude": (SESSIONS, RUNS), "include": GROUPS, "only": (ARCHIVED,)}
"""The groups of sessions in each list that the filter of `session/list` names."""

_FILTERS = tuple(_GROUPS)

_KNOWN = "dragoman/listed"
"""Key in `_meta` of an entry of the agent's list: the bridge's own list has this session as well."""

_ARCHIVED = {True: Raw(b"true"), False: Raw(b"false")}


class SessionListing:
    """Lists sessions, and finds sessions that only the agent knows."""

    def __init__(
        self,
        timeout_s: float,
        *,
        delivery: Delivery,
        host: AgentHost,
        sessions: ServedSessions,
    ) -> None:
        self._timeout_s = timeout_s
        self._spawn = delivery.spawn
        self._is_shared = delivery.histories.is_shared
        """Whether other nodes have sessions that the agent here does not know."""
        self._host = host
        self._sessions = sessions

    @property
    def _labels(self) -> SessionLabels:
        return self._sessions.labels

    async def list_sessions(self, request: ViewerRequest) -> Reply:
        """Answer `session/list`."""
        check_paths(request)
        params = fields_of(request.params)
        wanted = string_of(params.get("archived")) or "exclude"
        support = self._host.support
        if wanted not in _FILTERS and not support.archive:
            problem = f"unknown filter; expected one of {', '.join(_FILTERS)}"
            refusal = {"path": "params.archived", "problem": problem, "expected": list(_FILTERS), "got": wanted}
            raise RpcError(ErrorCode.INVALID_PARAMS, refusal)
        if support.list and not self._is_shared and not request.viewer.read_only:
            return await self._list_of_agent(request, params, wanted)
        return self._list_journals(request, params, wanted)

    async def exists(self, session_id: str) -> bool:
        """Return whether a session is here or in the agent's own list."""
        if self._sessions.knows(session_id):
            return True
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES if self._host.support.list else 0):
            answer = await self._host.ask(methods.SESSION_LIST.name, params, self._timeout_s)
            if answer is None or answer.is_error:
                return False
            page = answer.result
            if any(
                string_of(fields_of(each).get("sessionId")) == session_id for each in parse_list(page.get("sessions"))
            ):
                return True
            cursor = string_of(page.get("nextCursor"))
            if cursor is None:
                return False
            params = {"cursor": cursor}
        return False

    async def _list_of_agent(self, request: ViewerRequest, params: dict[str, Raw], wanted: str) -> Reply:
        """Ask the agent for its list, and apply the labels and the filter of the bridge."""
        can_archive = self._host.support.archive
        if not can_archive and "archived" in params:
            rest = {key: value for key, value in params.items() if key != "archived"}
            request.line = encode({**decode_fields(request.line), "params": Raw(encode(rest))})
        answer = await self._sessions.pass_on(request)
        if answer.is_error:
            return answer
        result: dict[str, Any] = dict(answer.result)
        listed = [self._label(fields_of(each)) for each in parse_list(result.get("sessions"))]
        if request.viewer.knows_extensions:
            listed = [self._mark(each) for each in listed]
        if can_archive:
            self._spawn(self._follow(listed))
        else:
            listed = [each for each in listed if _fits(wanted, archived=each["archived"] is _ARCHIVED[True])]
        return {**result, "sessions": listed}

    def _label(self, listed: dict[str, Raw]) -> dict[str, Raw]:
        """Add the title, archive state and origin that the bridge knows to an entry of the agent's list."""
        session_id = string_of(listed.get("sessionId")) or ""
        label = self._labels.of(session_id)
        session = self._sessions.find(session_id)
        title = label.title or string_of(listed.get("title")) or (None if session is None else session.info.title)
        if title is not None:
            listed["title"] = Raw(encode(title))
        if not self._host.support.archive:
            listed["archived"] = _ARCHIVED[label.archived]
        if label.origin is not None:
            listed["_meta"] = Raw(encode({ORIGIN_KEY: label.origin, **fields_of(listed.get("_meta", UNSET))}))
        return listed

    def _mark(self, listed: dict[str, Raw]) -> dict[str, Raw]:
        """Mark an entry of the agent's list if the bridge lists the same session."""
        if self._sessions.lists.find(string_of(listed.get("sessionId")) or "") is None:
            return listed
        return {**listed, "_meta": Raw(encode({**fields_of(listed.get("_meta", UNSET)), _KNOWN: True}))}

    async def _follow(self, listed: list[dict[str, Raw]]) -> None:
        """Update the labels of sessions from the archive state in the agent's list."""
        for each in listed:
            session_id, archived = string_of(each.get("sessionId")), each.get("archived")
            if session_id is None or archived is None or bytes(archived) not in (b"true", b"false"):
                continue
            is_archived = bytes(archived) == b"true"
            if is_archived != self._labels.of(session_id).archived:
                await self._sessions.change_label(session_id, archived=is_archived)

    def _list_journals(self, request: ViewerRequest, params: dict[str, Raw], wanted: str) -> Reply:
        """Return a page of the sessions that have journals."""
        cwd, cursor = string_of(params.get("cwd")), string_of(params.get("cursor"))
        before = None if cursor is None else read_list_cursor(cursor, cwd, wanted)
        if cursor is not None and before is None:
            raise wrong_cursor()
        lists = self._sessions.lists
        page = list(islice(lists.newest(request.viewer, _GROUPS[wanted], cwd, before), PAGE_SESSIONS + 1))
        sessions: list[dict[str, Any]] = []
        for listed in page[:PAGE_SESSIONS]:
            described = lists.describe(listed)
            label = lists.label_of(listed)
            meta = {} if label.origin is None else {"_meta": {ORIGIN_KEY: label.origin}}
            sessions.append({**{key: described[key] for key in _LISTED}, "archived": label.archived, **meta})
        more = {}
        if len(page) > PAGE_SESSIONS:
            more = {"nextCursor": make_list_cursor(page[PAGE_SESSIONS - 1].place, cwd, wanted)}
        return {"sessions": sessions, **more}


def _fits(wanted: str, *, archived: bool) -> bool:
    return wanted == "include" or archived == (wanted == "only")
