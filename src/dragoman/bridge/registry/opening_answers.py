"""The answers to requests that open a session: the viewer is put on the session, and served from its journal.

A viewer may name the cursor of the last record that it has; it goes on behind that if the journal still has the place.
"""

from typing import Any, Protocol

from msgspec import UNSET

from dragoman.bridge.delivery import Cursor, Subscription, Viewer, ViewerRequest, read_cursor
from dragoman.bridge.envelope import fields_of, string_of
from dragoman.bridge.registry.registry import Announcements
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.supervisor import AgentSupervisor
from dragoman.bridge.translation import V2
from dragoman.errors import ErrorCode
from dragoman.store import is_same_directory


class OpeningQuestions(Protocol):
    """The router's questions, as they matter while a session is opened."""

    def viewer_joined(self, session: ServedSession, viewer: Viewer) -> None:
        """Ask a viewer the open questions of a session."""
        ...

    def count_for(self, session: ServedSession, viewer: Viewer) -> int:
        """Count the open questions of a session that a viewer which joins is asked."""
        ...

    def wait_for(self, viewer: Viewer, session: ServedSession | None) -> bool:
        """Tell whether the agent waits for a person: one on this session, or this viewer about its own request."""
        ...


class OpeningAnswers:
    """Puts viewers on sessions that are open here, and answers the requests that opened them."""

    def __init__(
        self, *, supervisor: AgentSupervisor, announcements: Announcements, questions: OpeningQuestions
    ) -> None:
        self._supervisor = supervisor
        self._announcements = announcements
        self._questions = questions

    def serve(self, request: ViewerRequest, session: ServedSession) -> None:
        """Serve a session from its journal."""
        viewer = request.viewer
        if viewer.closed.is_set() or request.is_over:
            return
        refusal = find_wrong_cwd(request, session)
        if refusal is not None:
            request.refuse(ErrorCode.INVALID_PARAMS, refusal)
            return
        wanted = take_wanted(request, session)
        end = session.journal.next_end
        fits = wanted is not None and session.journal.has(wanted)
        here = session.subscriptions.get(viewer)
        # A load begins at the start. A resume goes on where the viewer is, or at the end. A relay cannot take back what
        # it has passed on: without a cursor that fits, it goes on at the end, too.
        cursor = 0
        is_relay = viewer.has_cursors and not viewer.knows_extensions
        if not request.wants_replay and (wanted is None or (is_relay and not fits)):
            cursor = end if here is None else here.position
        if wanted is not None and fits:
            cursor = wanted.seq
        has_history = here is not None or (wanted is not None and fits)
        subscription = session.subscribe(viewer, cursor, has_history=has_history)
        is_reset = wanted is not None and not fits
        self._announcements.session_opened(session, viewer, after=cursor, reset=is_reset)
        self._answer(request, session, subscription, end, is_reset=is_reset)
        self._questions.viewer_joined(session, viewer)

    def complete(self, request: ViewerRequest, session: ServedSession) -> None:
        """Answer the viewer for which the agent was asked, and which has followed the replay."""
        subscription = session.subscriptions.get(request.viewer)
        if request.is_over or subscription is None:
            self.serve(request, session)
            return
        self._answer(request, session, subscription, session.journal.next_end)
        self._questions.viewer_joined(session, request.viewer)

    def begin_anew(self, session: ServedSession) -> None:
        """Show viewers the history that the agent has; a viewer without our extensions goes on at its end."""
        for viewer in list(session.subscriptions):
            session.subscribe(viewer, 0 if viewer.knows_extensions else session.journal.next_end)
            if viewer.knows_extensions:
                self._announcements.session_opened(session, viewer, after=0, reset=True)

    def _answer(
        self,
        request: ViewerRequest,
        session: ServedSession,
        subscription: Subscription,
        end: int,
        *,
        is_reset: bool = False,
    ) -> None:
        """Answer a request that opened a session behind its records, in version 2 with its state before the answer."""
        if request.viewer.version == V2:
            request.viewer.send(session.describe_state(), subscription, end)
        result = self._result(request, session, end, is_reset=is_reset)
        request.answer_opened(result, subscription, end)

    def _result(self, request: ViewerRequest, session: ServedSession, end: int, *, is_reset: bool) -> dict[str, Any]:
        # Over HTTP the answer names the session, as in the proposal's examples: clients open its stream by that.
        named = {"sessionId": session.id} if request.viewer.over_http else {}
        setup = session.setup.fields
        if session.version != self._supervisor.version:
            setup = {}  # it is in the words of the version that the agent spoke before
        if not request.viewer.has_cursors:
            return {**named, **setup}
        own: dict[str, Any] = {"cursor": session.journal.cursor(end), "state": session.state}
        own |= {"title": session.info.title, "asked": self._questions.count_for(session, request.viewer)}
        if is_reset:
            own["reset"] = True
        return {**named, **setup, "_meta": {"dragoman": own}}


def take_wanted(request: ViewerRequest, session: ServedSession) -> Cursor | None:
    """Give the cursor after which the viewer wants to go on, if it named one; an unreadable one fits nowhere."""
    own = fields_of(fields_of(fields_of(request.params).get("_meta", UNSET)).get("dragoman", UNSET))
    after = string_of(own.get("after"))
    if after is not None:
        return read_cursor(after) or Cursor(after, -1)
    subscription = request.viewer.subscription(session.id)
    return None if subscription is None else subscription.take_resume_from()


def find_wrong_cwd(request: ViewerRequest, session: ServedSession) -> dict[str, Any] | None:
    """Give the refusal of a request that names another directory than the session's."""
    cwd = string_of(fields_of(request.params).get("cwd"))
    if cwd is None or not session.cwd or is_same_directory(cwd, session.cwd):
        return None
    problem = f"session {session.id} belongs to {session.cwd}; send that as its cwd"
    return {"path": "params.cwd", "problem": problem, "expected": session.cwd, "got": cwd}
