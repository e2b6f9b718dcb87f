"""Rules about listing, closing and deleting sessions.

A list is judged against the memory of the agent: every known session has one directory, and a deleted one must be gone.
A closed session must stay listed and must keep its history. Closing also ends the running turn as cancelled.
"""

from datetime import datetime
from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Object, SeenMessage, find_request, is_absolute, may_be_same_path, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED, SeenTurn
from dragoman.check.judge.session_setup import CONTENT
from dragoman.check.rule import V1, Version
from dragoman.errors import ErrorCode

EXCUSES = frozenset({ErrorCode.AUTH_REQUIRED, ErrorCode.METHOD_NOT_FOUND})
"""Errors that other rules judge: a login is required, or the method does not exist."""


class ListObserver(Observer):
    """Judges session/list."""

    area: ClassVar[str] = "LIST"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._cursors: set[str] = set()
        self._pages: set[str] = set()
        """The sessions on the pages read so far of the current list."""
        self._has_listed = False

    @watch("request session/list")
    def on_list(self, message: SeenMessage) -> None:
        cursor, cwd = text(message.params, "cursor"), text(message.params, "cwd")
        self.judge_offer("ACP-LIST-101", "sessionCapabilities.list", message)
        if cursor is not None:
            self.judge(
                "ACP-LIST-102",
                cursor in self._cursors,
                f"the cursor {cursor!r} was never issued; expected nextCursor of a page, unchanged",
                message.entry,
            )
        if cwd is not None:
            self.judge("ACP-LIST-103", is_absolute(cwd), f"cwd is {cwd!r}; expected an absolute path", message.entry)

    @watch("answer session/list")
    def on_listed(self, message: SeenMessage) -> None:
        """Judge the answer to a list request. A cursor that the check invented must be refused."""
        request = message.request
        if request is None:
            return
        cursor = text(request.params, "cursor")
        if cursor is not None and cursor.startswith(INVENTED):
            self.judge(
                "ACP-LIST-004",
                message.kind == "error",
                "an unknown cursor was accepted; expected an error",
                request.entry,
                message.entry,
            )
            return
        self._judge_emptiness(message, request, cursor)
        if message.kind == "error":
            return
        self._has_listed = True
        self._judge_page(message, request, cursor)
        for each in parts(message.params, "sessions"):
            self._judge_session(each, message, request)

    def _judge_emptiness(self, message: SeenMessage, request: SeenMessage, cursor: str | None) -> None:
        """Judge whether a list without any known session is an empty list, not an error.

        Only a correct request for the first page counts. An internal error is excused until the agent has
        listed sessions once.
        """
        cwd = text(request.params, "cwd")
        if message.kind == "result":
            if message.params.get("sessions") == []:
                self.count_occasion("ACP-LIST-009")
            return
        known = [past for past in self.state.memory.sessions.values() if past.cwd is not None and not past.deleted]
        is_empty = not any(cwd is None or may_be_same_path(past.cwd or "", cwd) for past in known)
        is_asked_well = request.fits and cursor is None and (cwd is None or is_absolute(cwd))
        is_able = self.agreement.agent_offers("sessionCapabilities.list")
        may_fail = message.code in EXCUSES or (message.code == ErrorCode.INTERNAL_ERROR and not self._has_listed)
        if is_empty and is_asked_well and is_able and not may_fail:
            self.fail(
                "ACP-LIST-009",
                f"without any session, session/list failed with the error {message.code}; expected an empty list",
                request.entry,
                message.entry,
            )

    def _judge_page(self, message: SeenMessage, request: SeenMessage, cursor: str | None) -> None:
        after = text(message.params, "nextCursor")
        if cursor is not None:
            self.judge(
                "ACP-LIST-007",
                after != cursor,
                "nextCursor is the cursor that was sent; expected another one, or none on the last page",
                request.entry,
                message.entry,
            )
        if after is not None:
            self._cursors.add(after)
        if cursor is None:
            self._pages.clear()
        ids = [each for session in parts(message.params, "sessions") if (each := text(session, "sessionId"))]
        twice = sorted({each for each in ids if ids.count(each) > 1})
        again = sorted({each for each in ids if each in self._pages})
        if ids:
            self.judge("ACP-LIST-005", not twice, f"listed twice: {twice}", request.entry, message.entry)
        if again:  # a session used in the meantime may have moved to the next page
            self.warn("ACP-LIST-005", f"listed again on a later page: {again}", request.entry, message.entry)
        self._pages.update(ids)

    def _judge_session(self, session: Object, message: SeenMessage, request: SeenMessage) -> None:
        cwd, asked_cwd = text(session, "cwd"), text(request.params, "cwd")
        session_id = text(session, "sessionId") or ""
        if cwd is not None:
            self.judge(
                "ACP-LIST-001",
                is_absolute(cwd),
                f"the session {session_id!r} has the cwd {cwd!r}; expected an absolute path",
                message.entry,
            )
            past = self.state.memory.sessions.get(session_id)
            if past is not None and past.cwd is not None and is_absolute(past.cwd) and not past.is_shared:
                self.judge(
                    "ACP-LIST-003",
                    may_be_same_path(cwd, past.cwd),
                    f"the session {session_id!r} is listed in {cwd!r}; it was created in {past.cwd!r}",
                    message.entry,
                )
            if asked_cwd is not None:
                self.judge(
                    "ACP-LIST-002",
                    may_be_same_path(cwd, asked_cwd),
                    f"asked for sessions in {asked_cwd!r}, the agent listed one in {cwd!r}",
                    request.entry,
                    message.entry,
                )
        self._judge_time(session, message)
        if self.agreement.initialized is not None:
            advertised = self.agreement.agent_offers("sessionCapabilities.additionalDirectories")
            self.judge(
                "ACP-LIST-008",
                advertised or not session.get("additionalDirectories"),
                "a session is listed with additionalDirectories, which the agent did not advertise",
                message.entry,
            )

    @watch("update session_info_update")
    def on_info(self, message: SeenMessage) -> None:
        self._judge_time(message.update, message)

    def _judge_time(self, session: Object, message: SeenMessage) -> None:
        updated = text(session, "updatedAt")
        if updated is not None:
            self.judge(
                "ACP-LIST-006",
                _is_time(updated),
                f"updatedAt is {updated!r}; expected ISO 8601",
                message.entry,
            )


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value or len(value) == len("2025-10-29")


def judge_prompt_of_closed(
    observer: Observer, closed: ConversationEntry, request: SeenMessage, answer: SeenMessage
) -> None:
    """Judge the answer to a prompt for a session that was closed before."""
    observer.judge(
        "ACP-CLOSE-003",
        answer.kind == "error",
        "a prompt for a closed session was accepted; expected an error",
        closed,
        request.entry,
        answer.entry,
    )


class CloseObserver(Observer):
    """Judges session/close for version 1."""

    area: ClassVar[str] = "CLOSE"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._cut: dict[str, list[SeenTurn]] = {}
        """Turns that were running when their session was closed, by session."""
        self._done: dict[str, ConversationEntry] = {}
        """Responses to session/close, by session."""
        self._woken: set[str] = set()
        """Closed sessions that were prompted, which another rule judges."""

    @watch("request session/close")
    def on_close(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        if session is not None and session.running():
            self._cut[session.id] = session.running()
        self.judge_offer("ACP-CLOSE-101", "sessionCapabilities.close", message)

    @watch("result session/close")
    def on_closed(self, message: SeenMessage) -> None:
        if message.request is not None:
            self._done[text(message.request.params, "sessionId") or ""] = message.entry

    @watch("answer session/prompt")
    def on_prompt_end(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        closed = self._done.get(session_id)
        turns = [turn for turn in self._cut.get(session_id, ()) if turn.prompt is request]
        if turns:
            self._cut[session_id].remove(turns[0])
            reason = text(message.params, "stopReason")
            if reason == "cancelled" or closed is not None:
                self.judge(
                    "ACP-CLOSE-001",
                    reason == "cancelled",
                    f"the turn of a closed session ended with {reason or 'an error'}; expected cancelled",
                    request.entry,
                    *([closed] if closed else []),
                    message.entry,
                )
        elif closed is not None and closed.n < request.entry.n:
            judge_prompt_of_closed(self, closed, request, message)

    @watch("event waited")
    def on_waited(self, message: SeenMessage) -> None:
        for session_id, turns in self._cut.items():
            if session_id in self._done:
                for turn in turns:
                    self.fail(
                        "ACP-CLOSE-001",
                        "the session was closed, and its prompt got no answer; expected cancelled",
                        turn.prompt.entry,
                        self._done[session_id],
                        message.entry,
                    )
                turns.clear()

    @watch("update")
    def on_update(self, message: SeenMessage) -> None:
        if not self._done:
            return
        session_id = text(message.params, "sessionId") or ""
        closed = self._done.get(session_id)
        is_open = session_id in self.state.opening or session_id in self._woken
        if closed is None or is_open or self._cut.get(session_id):
            return
        kind = message.update.get("sessionUpdate")
        if kind in CONTENT:
            self.fail("ACP-CLOSE-004", f"a {kind} came after session/close was answered", closed, message.entry)

    @watch("request session/prompt", "request session/list")
    def on_next(self, message: SeenMessage) -> None:
        if self._done:
            self.count_occasion("ACP-CLOSE-004")
        session_id = text(message.params, "sessionId")
        if message.method == "session/prompt" and session_id in self._done:
            self._woken.add(session_id)

    @watch("answer session/load", "answer session/resume")
    def on_reopened(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None or self.agreement.initialized is None:
            return
        request, session_id = asked
        past = self.state.memory.sessions.get(session_id)
        capability = "loadSession" if request.method == "session/load" else "sessionCapabilities.resume"
        is_there = message.code != ErrorCode.METHOD_NOT_FOUND  # ACP-INIT-006 covers a missing method
        if past is not None and past.closed and past.spoke and not past.is_lost and request.fits and is_there:
            closed = self._done.get(session_id)
            if self.agreement.agent_offers(capability):
                self.judge(
                    "ACP-CLOSE-002",
                    message.kind == "result",
                    f"{request.method} of a session that was closed failed with {message.code}; expected its history",
                    *([closed] if closed else []),
                    request.entry,
                    message.entry,
                )
        if message.kind == "result":
            self._done.pop(session_id, None)
            self._woken.discard(session_id)

    @watch("result session/list")
    def on_listed(self, message: SeenMessage) -> None:
        request = message.request
        if request is None or text(message.params, "nextCursor") or request.params.get("cursor"):
            return
        there = {text(each, "sessionId") for each in parts(message.params, "sessions")}
        cwd = text(request.params, "cwd")
        for session_id, past in self.state.memory.sessions.items():
            if not (past.closed and past.listed) or past.is_lost:
                continue
            if cwd is not None and (past.cwd is None or not may_be_same_path(past.cwd, cwd)):
                continue
            closed = self._done.get(session_id)
            self.judge(
                "ACP-CLOSE-002",
                session_id in there,
                f"the session {session_id!r} was listed, then closed, and is no longer listed; nobody deleted it",
                *([closed] if closed else []),
                message.entry,
            )


class DeleteObserver(Observer):
    """Judges session/delete."""

    area: ClassVar[str] = "DELETE"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._deleted: dict[str, ConversationEntry] = {}

    @watch("request session/delete")
    def on_delete(self, message: SeenMessage) -> None:
        self.judge_offer("ACP-DELETE-101", "sessionCapabilities.delete", message)

    @watch("answer session/delete")
    def on_deleted(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        past = self.state.memory.sessions.get(session_id)
        is_gone = session_id.startswith(INVENTED) or (past is not None and past.deleted)
        is_refused = message.code in EXCUSES
        if is_gone and request.fits and not is_refused and self.agreement.agent_offers("sessionCapabilities.delete"):
            self.judge(
                "ACP-DELETE-002",
                message.kind == "result",
                f"deleting a session that does not exist failed with {message.code}; expected success",
                request.entry,
                message.entry,
            )
        if message.kind == "result":
            self._deleted[session_id] = message.entry

    @watch("result session/list")
    def on_listed(self, message: SeenMessage) -> None:
        """Judge whether a complete list still has the sessions that were closed.

        Only sessions that were listed before count, and only if they belong to the directory of the request.
        """
        there = {text(each, "sessionId") for each in parts(message.params, "sessions")}
        for session_id, deleted in self._deleted.items():
            past = self.state.memory.sessions.get(session_id)
            if session_id.startswith(INVENTED) or (past is not None and past.is_shared):
                continue  # the listed session may be another one with the same id
            self.judge(
                "ACP-DELETE-001",
                session_id not in there,
                f"the session {session_id!r} was deleted, but is still listed",
                deleted,
                message.entry,
            )
