"""`session/list` of any agent: the agent's own list with the labels of the bridge, or the sessions that have journals.

A title that a person gave through the bridge stands in place of the agent's. Which sessions are archived says the agent
if it can archive, and the labels follow it; else the labels say it, and the bridge leaves out the sessions that a
viewer did not ask for. A page of the agent's list may become short or empty by that; `nextCursor` still leads on.
Pages of sessions that have journals are full, and each costs the same however many there are.
"""

from itertools import islice
from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Delivery, ViewerRequest
from dragoman.bridge.envelope import decode_fields, encode, fields_of, parse_list, string_of
from dragoman.bridge.registry import ARCHIVED, GROUPS, RUNS, SESSIONS, SessionLabels, SessionRegistry, SessionRestorer
from dragoman.bridge.router.list_cursor import make_list_cursor, read_list_cursor, refuse_cursor
from dragoman.bridge.supervisor import AgentSupervisor
from dragoman.errors import ErrorCode
from dragoman.protocol.origin import ORIGIN_KEY
from dragoman.store import PAGE_SESSIONS
from dragoman.wire import Message

_MAX_PAGES = 1_000
"""Pages in which a session is looked for, of an agent that says of each that it is not the last."""

_LISTED = ("sessionId", "cwd", "title", "updatedAt")

_GROUPS = {"exclude": (SESSIONS, RUNS), "include": GROUPS, "only": (ARCHIVED,)}
"""The groups of sessions in each list that the filter of `session/list` names."""

_FILTERS = tuple(_GROUPS)

_KNOWN = "dragoman/listed"
"""In `_meta` of a session of the agent's list: the bridge has it in its own list too."""

_ARCHIVED = {True: Raw(b"true"), False: Raw(b"false")}


class SessionListing:
    """Lists sessions, and finds those that only the agent knows."""

    def __init__(
        self,
        timeout_s: float,
        *,
        delivery: Delivery,
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        restorer: SessionRestorer,
    ) -> None:
        self._timeout_s = timeout_s
        self._spawn = delivery.spawn
        self._is_shared = delivery.journals.is_shared
        """Whether other nodes have sessions too, of which the agent here knows nothing."""
        self._supervisor = supervisor
        self._registry = registry
        self._restorer = restorer

    @property
    def _labels(self) -> SessionLabels:
        return self._registry.labels

    def list_sessions(self, request: ViewerRequest) -> None:
        """Answer `session/list`."""
        params = fields_of(request.params)
        wanted = string_of(params.get("archived")) or "exclude"
        support = self._supervisor.support
        if wanted not in _FILTERS and not support.archive:
            problem = f"there is no such filter; expected one of {', '.join(_FILTERS)}"
            refusal = {"path": "params.archived", "problem": problem, "expected": list(_FILTERS), "got": wanted}
            request.refuse(ErrorCode.INVALID_PARAMS, refusal)
        elif support.list and not self._is_shared and not request.viewer.is_scoped:
            self._list_of_agent(request, params, wanted)
        else:
            self._list_journals(request, params, wanted)

    async def exists(self, session_id: str) -> bool:
        """Tell whether a session is here, or in the agent's own list."""
        if self._registry.knows(session_id):
            return True
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES if self._supervisor.support.list else 0):
            message = await self._supervisor.ask("session/list", params, self._timeout_s)
            if message is None or message.error is not UNSET:
                return False
            page = fields_of(message.result)
            if any(
                string_of(fields_of(each).get("sessionId")) == session_id for each in parse_list(page.get("sessions"))
            ):
                return True
            cursor = string_of(page.get("nextCursor"))
            if cursor is None:
                return False
            params = {"cursor": cursor}
        return False

    def _list_of_agent(self, request: ViewerRequest, params: dict[str, Raw], wanted: str) -> None:
        can_archive = self._supervisor.support.archive

        def answered(message: Message, line: bytes) -> None:
            if message.error is not UNSET:
                request.pass_on(line)
                return
            result: dict[str, Any] = dict(fields_of(message.result))
            listed = [self._label(fields_of(each)) for each in parse_list(result.get("sessions"))]
            if request.viewer.knows_extensions:
                listed = [self._mark(each) for each in listed]
            if can_archive:
                self._spawn(self._follow(listed))
            else:
                listed = [each for each in listed if _fits(wanted, archived=each["archived"] is _ARCHIVED[True])]
            answer = {**decode_fields(line), "result": Raw(encode({**result, "sessions": listed}))}
            request.pass_on(encode(answer))

        if not can_archive and "archived" in params:
            rest = {key: value for key, value in params.items() if key != "archived"}
            request.line = encode({**decode_fields(request.line), "params": Raw(encode(rest))})
        self._restorer.forward(request, answered=answered)

    def _label(self, listed: dict[str, Raw]) -> dict[str, Raw]:
        """Add to a session of the agent's list the facts that the bridge knows better."""
        session_id = string_of(listed.get("sessionId")) or ""
        label = self._labels.of(session_id)
        session = self._registry.find(session_id)
        title = label.title or string_of(listed.get("title")) or (None if session is None else session.info.title)
        if title is not None:
            listed["title"] = Raw(encode(title))
        if not self._supervisor.support.archive:
            listed["archived"] = _ARCHIVED[label.archived]
        if label.origin is not None:
            listed["_meta"] = Raw(encode({ORIGIN_KEY: label.origin, **fields_of(listed.get("_meta", UNSET))}))
        return listed

    def _mark(self, listed: dict[str, Raw]) -> dict[str, Raw]:
        """Tell of a session of the agent's list that the bridge lists it too."""
        if self._registry.lists.find(string_of(listed.get("sessionId")) or "") is None:
            return listed
        return {**listed, "_meta": Raw(encode({**fields_of(listed.get("_meta", UNSET)), _KNOWN: True}))}

    async def _follow(self, listed: list[dict[str, Raw]]) -> None:
        """Have the labels say of each session what the agent says of it."""
        for each in listed:
            session_id, archived = string_of(each.get("sessionId")), each.get("archived")
            if session_id is None or archived is None or bytes(archived) not in (b"true", b"false"):
                continue
            is_archived = bytes(archived) == b"true"
            if is_archived != self._labels.of(session_id).archived:
                await self._registry.change_label(session_id, archived=is_archived)

    def _list_journals(self, request: ViewerRequest, params: dict[str, Raw], wanted: str) -> None:
        cwd, cursor = string_of(params.get("cwd")), string_of(params.get("cursor"))
        before = None if cursor is None else read_list_cursor(cursor, cwd, wanted)
        if cursor is not None and before is None:
            refuse_cursor(request)
            return
        lists = self._registry.lists
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
        request.answer({"sessions": sessions, **more})


def _fits(wanted: str, *, archived: bool) -> bool:
    return wanted == "include" or archived == (wanted == "only")
