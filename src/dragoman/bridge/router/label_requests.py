"""`session/set_title`, `session/archive`, `session/unarchive` and `session/status`, for any agent.

An agent that offers one of the first three keeps titles or the archive itself: it is asked, and what it answers counts.
For an agent that does not, or that no longer has a session of which there is a journal here, the bridge keeps a label.
A title that a person gave stays: no title of an agent that does not know of it takes its place.

`session/status` of a session that is known here is answered without asking the agent, because the bridge is the agent's
only client, and asking may start a process: "open" while the agent has the session, else "saved".
"""

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import ViewerRequest
from dragoman.bridge.envelope import fields_of, make_notification, string_of
from dragoman.bridge.registry import LabelChanges, LifeEvent, ServedSession, SessionRegistry, SessionRestorer
from dragoman.bridge.router.listing import SessionListing
from dragoman.bridge.router.questions import Questions
from dragoman.bridge.supervisor import AgentSupervisor
from dragoman.errors import ErrorCode
from dragoman.text import one_line
from dragoman.wire import Message
from dragoman.wire.message import parse_error

MAX_TITLE_CHARS = 200
"""A title is one line of a list; more is cut, as the protocol allows."""

_NOT_AT_AGENT = (ErrorCode.METHOD_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND)


class LabelRequests:
    """Serves the requests that say something about a session, and ask nothing of its conversation."""

    def __init__(
        self,
        timeout_s: float,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        restorer: SessionRestorer,
        questions: Questions,
        listing: SessionListing,
    ) -> None:
        self._timeout_s = timeout_s
        self._spawn = spawn
        self._supervisor = supervisor
        self._registry = registry
        self._restorer = restorer
        self._questions = questions
        self._listing = listing

    def set_title(self, request: ViewerRequest) -> None:
        """Give a session the title that a person wants."""
        given = string_of(fields_of(request.params).get("title"))
        title = "" if given is None else one_line(given, MAX_TITLE_CHARS)
        if request.session_id is None or not title:
            path = "params.title" if request.session_id is not None else "params.sessionId"
            problem = f"{path} has to be a text that is not empty"
            request.refuse(ErrorCode.INVALID_PARAMS, {"path": path, "problem": problem, "expected": "a text"})
            return

        def agreed(session_id: str, result: Raw) -> None:
            stored = string_of(fields_of(result).get("title")) or title
            session = self._registry.find(session_id)
            if session is not None and session.info.title != stored:
                session.set_title(stored)

        offered = self._supervisor.support.title
        self._serve(request, {"title": title}, {"title": title}, offered=offered, follow={"title": None}, agreed=agreed)

    def archive(self, request: ViewerRequest) -> None:
        """Archive a session: its work is stopped, and lists leave it out."""

        def agreed(session_id: str, result: Raw) -> None:
            del result
            session = self._registry.find(session_id)
            if session is not None:
                self._closed(session)

        label = {"archived": True}
        self._serve(request, {}, label, offered=self._supervisor.support.archive, follow=label, agreed=agreed)

    def unarchive(self, request: ViewerRequest) -> None:
        """Have lists show a session again."""
        label = {"archived": False}
        self._serve(request, {}, label, offered=self._supervisor.support.archive, follow=label)

    def status(self, request: ViewerRequest) -> None:
        """Tell whether the agent has a session in memory."""
        session = self._registry.find(request.session_id)
        if session is not None:
            request.answer({"status": "open" if session.life.is_at_agent else "saved"})
        elif self._registry.knows(request.session_id or ""):
            request.answer({"status": "saved"})
        elif self._supervisor.support.status:
            self._restorer.forward(request)
        else:
            self._spawn(self._tell_whether_saved(request))

    async def _tell_whether_saved(self, request: ViewerRequest) -> None:
        if await self._listing.exists(request.session_id or ""):
            request.answer({"status": "saved"})
        else:
            _refuse_unknown(request)

    def _serve(
        self,
        request: ViewerRequest,
        result: dict[str, Any],
        label: LabelChanges,
        *,
        offered: bool,
        follow: LabelChanges,
        agreed: Callable[[str, Raw], None] | None = None,
    ) -> None:
        """Have the agent do it if it can, and the label follow it; else keep a label and answer with `result`."""
        session_id = request.session_id or ""

        def answered(message: Message, line: bytes) -> None:
            if message.error is UNSET:
                if agreed is not None:
                    agreed(session_id, Raw(bytes(message.result) if message.result is not UNSET else b"{}"))
                self._spawn(self._follow_agent(request, line, follow))
            elif parse_error(message.error).code in _NOT_AT_AGENT and self._registry.knows(session_id):
                self._spawn(self._keep_label(request, result, label))
            else:
                request.pass_on(line)

        if offered:
            self._restorer.forward(request, answered=answered)
        else:
            self._spawn(self._keep_label(request, result, label))

    async def _follow_agent(self, request: ViewerRequest, line: bytes, label: LabelChanges) -> None:
        """Have the label follow the agent, whose own word counts, and then tell it: lists may go by the label."""
        await self._registry.change_label(request.session_id or "", **label)
        request.pass_on(line)

    async def _keep_label(self, request: ViewerRequest, result: dict[str, Any], label: LabelChanges) -> None:
        session_id = request.session_id or ""
        session = self._registry.find(session_id)
        if not await self._listing.exists(session_id):
            _refuse_unknown(request)
            return
        if session is not None and label.get("archived"):
            await self._stop(session)
        if await self._registry.change_label(session_id, **label):
            request.answer(result)
        else:
            problem = "the labels of sessions cannot be written; see the log of the bridge, and make space on its disk"
            request.refuse(ErrorCode.INTERNAL_ERROR, problem)

    async def _stop(self, session: ServedSession) -> None:
        """Cancel the work of a session and have the agent close it, if it can: it has nothing more to do."""
        session.cancel_prompts()
        is_there = self._supervisor.is_ready and session.life.is_at_agent
        if is_there and session.info.turns:
            self._supervisor.write(make_notification("session/cancel", {"sessionId": session.id}))
        self._questions.cancel_session(session)
        if is_there and self._supervisor.support.close:
            answer = await self._supervisor.ask("session/close", {"sessionId": session.id}, self._timeout_s)
            if answer is not None and answer.error is UNSET:
                self._closed(session)

    def _closed(self, session: ServedSession) -> None:
        session.life.take(LifeEvent.CLOSE)
        session.close_turns()
        self._questions.forget_session(session)
        session.changed()


def _refuse_unknown(request: ViewerRequest) -> None:
    session_id = request.session_id
    problem = f"there is no session {session_id}; session/list has those that there are"
    request.refuse(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": problem})
