"""Who is asked what the agent wants to know, and what becomes of it."""

import asyncio
from typing import TYPE_CHECKING

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import encode, fields_of, make_error, make_notification, with_id
from dragoman.bridge.hub.ask import PERMISSION, Ask, By, outcome_of
from dragoman.bridge.hub.attachment import Attachment
from dragoman.bridge.hub.terminals import MAKES, translate
from dragoman.errors import ErrorCode
from dragoman.wire import Message

if TYPE_CHECKING:
    from dragoman.bridge.hub.hub import Hub
    from dragoman.bridge.hub.session import Session
    from dragoman.bridge.hub.viewer import Viewer


class Asks:
    """All requests of the agent that are not answered."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._open: dict[Ask, None] = {}
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._open)

    def take(self, ask: Ask) -> None:
        """Take a request of the agent."""
        self._open[ask] = None
        if ask.session is not None and ask.is_question:
            ask.session.asks[ask] = None
            self._note(ask, {"event": "asked", "method": ask.method})
            self._hub.changed(ask.session)
        if ask.is_question:
            for viewer in self._able(ask):
                self._put(ask, viewer)
            self._watch(ask)
        else:
            self._ask_next(ask)

    def attached(self, session: "Session", viewer: "Viewer") -> None:
        """Ask a viewer that came what is still open."""
        for ask in session.asks:
            if self._may_answer(ask, viewer) and viewer not in ask.asked and viewer not in ask.refused_by:
                self._put(ask, viewer)
                ask.stop_timer()

    def answered(self, viewer: "Viewer", message: Message, line: bytes) -> None:
        """Take a viewer's answer; one that comes too late is dropped."""
        id_ = b"" if message.id is UNSET else bytes(message.id)
        ask = viewer.asked.pop(id_, None)
        if ask is None or ask.asked.pop(viewer, None) is None:
            return
        viewer.note_answer(id_, self._attachment(ask, viewer))
        answer = with_id(line, ask.agent_id)
        if message.error is not UNSET and ask.is_question:
            ask.refused_by.add(viewer)
            ask.last_error = answer
            self._settle_if_refused(ask)
        else:
            self._settle(ask, answer, "viewer", viewer, id_)

    def left(self, viewer: "Viewer", session: "Session | None" = None) -> None:
        """Go on without a viewer, on one session or on all."""
        for id_, ask in list(viewer.asked.items()):
            if session is not None and (ask.session is not session or self._holds(viewer, ask)):
                continue
            del viewer.asked[id_]
            ask.asked.pop(viewer, None)
            if not ask.is_question and not ask.settled:
                self._ask_next(ask)
        for ask in list(self._open):
            if ask.is_question:
                self._watch(ask)

    def concern(self, viewer: "Viewer", session: "Session | None") -> bool:
        """Tell whether the agent waits for a person: one on this session, or this viewer about its own request."""
        return any(ask.only is viewer or (session is not None and ask.session is session) for ask in self._open)

    def cancel_session(self, session: "Session") -> None:
        """Settle all questions of a session whose turn was cancelled."""
        for ask in list(session.asks):
            self._settle(ask, ask.cancellation(), "cancel")

    def cancel(self, agent_id: bytes) -> None:
        """Take back what the agent does not want to know any more."""
        for ask in [ask for ask in self._open if ask.agent_id == agent_id]:
            if ask.is_question or not ask.asked:
                problem = "the agent took its request back"
                self._settle(ask, make_error(agent_id, ErrorCode.REQUEST_CANCELLED, problem), "agent")
                continue
            for viewer, id_ in list(ask.asked.items()):
                viewer.send(_cancel_request(id_), self._attachment(ask, viewer))

    def forget_all(self) -> None:
        """Settle everything: the agent that asked is gone."""
        for ask in list(self._open):
            self._settle(ask, None, "agent")

    def forget_session(self, session: "Session") -> None:
        """Settle everything of a session that is gone."""
        problem = "its session was put away before anybody answered"
        for ask in [ask for ask in self._open if ask.session is session]:
            refusal = make_error(ask.agent_id, ErrorCode.REQUEST_CANCELLED, problem)
            self._settle(ask, ask.cancellation() if ask.is_question else refusal, "agent")

    def _able(self, ask: Ask) -> "list[Viewer]":
        if ask.only is not None:
            viewers = [] if ask.only.closed.is_set() else [ask.only]
        elif ask.session is None:
            viewers = list(self._hub.viewers.values())
        else:
            latest = sorted(ask.session.attachments.values(), key=_activity, reverse=True)
            viewers = [attachment.viewer for attachment in latest]
        return [viewer for viewer in viewers if viewer not in ask.refused_by and self._may_answer(ask, viewer)]

    def _may_answer(self, ask: Ask, viewer: "Viewer") -> bool:
        abilities = viewer.abilities
        return abilities is not None and not viewer.read_only and abilities.can(ask.method, ask.params)

    def _put(self, ask: Ask, viewer: "Viewer") -> None:
        self._last_id += 1
        id_ = b"%d" % self._last_id
        ask.asked[viewer] = id_
        viewer.asked[id_] = ask
        names = viewer.terminal_names.get(ask.session.id) if ask.session else None
        line = translate(ask.line, names) if names else ask.line
        viewer.send(with_id(line, id_), self._attachment(ask, viewer), ask_id=id_)

    def _ask_next(self, ask: Ask) -> None:
        if ask.method.startswith("terminal/") and ask.method != MAKES:
            able, lacks = [self._hub.terminals.holder(ask.params)], "has that terminal"
        else:
            holder = self._hub.holdings.holder(ask.method, ask.params)
            able, lacks = [holder] if holder else self._able(ask), "could answer"
        if able and able[0] is not None:
            self._put(ask, able[0])
            return
        problem = f"{ask.method}: no viewer of this session is there that {lacks}"
        self._settle(ask, make_error(ask.agent_id, ErrorCode.METHOD_NOT_FOUND, problem), "timeout")

    def _holds(self, viewer: "Viewer", ask: Ask) -> bool:
        """Tell whether a request is about a terminal of this viewer, which nobody else could answer for."""
        return ask.method.startswith("terminal/") and self._hub.terminals.holder(ask.params) is viewer

    def _settle_if_refused(self, ask: Ask) -> None:
        if ask.last_error is not None and ask.refused_by and not ask.asked:
            self._settle(ask, ask.last_error, "viewer")

    def _watch(self, ask: Ask) -> None:
        """Let the time run while nobody is there who could answer."""
        if ask.settled or self._able(ask):
            ask.stop_timer()
        elif ask.timer is None:
            loop = asyncio.get_running_loop()
            ask.timer = loop.call_later(self._hub.settings.permission_timeout_s, self._time_out, ask)

    def _time_out(self, ask: Ask) -> None:
        self._settle(ask, ask.refusal(), "timeout")

    def _settle(
        self, ask: Ask, answer: bytes | None, by: By, viewer: "Viewer | None" = None, viewer_id: bytes = b""
    ) -> None:
        """Answer the agent, and tell whoever was asked."""
        if ask.settled:
            return
        ask.settled = True
        ask.stop_timer()
        self._open.pop(ask, None)
        if answer is not None and viewer is not None and not ask.is_question:
            answer = self._note_made(ask, answer, viewer)
        if answer is not None:
            self._hub.supervisor.write(answer)
        result = None if answer is None else outcome_of(answer)
        if viewer is not None and viewer.marked and ask.is_question:
            self._tell(ask, viewer, viewer_id, result, "you")
        for other, id_ in ask.asked.items():
            other.asked.pop(id_, None)
            if other.marked and ask.is_question:
                self._tell(ask, other, id_, result, by)
            else:
                other.send(_cancel_request(id_), self._attachment(ask, other))
        ask.asked.clear()
        self._close(ask, by, result)

    def _note_made(self, ask: Ask, answer: bytes, viewer: "Viewer") -> bytes:
        """Remember what a viewer has made for the agent, and give its answer as the agent is to have it."""
        self._hub.holdings.note_answer(ask.method, answer, viewer)
        return self._hub.terminals.note_made(ask.params, answer, viewer) if ask.method == MAKES else answer

    def _close(self, ask: Ask, by: By, result: Raw | None) -> None:
        session = ask.session
        if session is None or session.asks.pop(ask, UNSET) is UNSET:
            return
        self._note(ask, {"event": "settled", "by": by, "result": result})
        self._hub.changed(session)
        self._hub.syncer.want(session.journal)

    def _note(self, ask: Ask, record: dict[str, object]) -> None:
        if ask.session is not None and ask.method == PERMISSION:
            call = fields_of(fields_of(ask.params).get("toolCall", UNSET)).get("toolCallId")
            ask.session.journal.note("permission", encode({**record, "toolCallId": call}))
            self._hub.touch(ask.session)

    def _tell(self, ask: Ask, viewer: "Viewer", id_: bytes, result: Raw | None, by: str) -> None:
        params = {
            "sessionId": ask.session.id if ask.session else None,
            "requestId": Raw(id_),
            "result": result,
            "by": by,
        }
        viewer.send(make_notification("_dragoman/settled", params), self._attachment(ask, viewer))

    def _attachment(self, ask: Ask, viewer: "Viewer") -> Attachment | None:
        return ask.session.attachments.get(viewer) if ask.session else None


def _activity(attachment: Attachment) -> int:
    return attachment.last_active


def _cancel_request(id_: bytes) -> bytes:
    return make_notification("$/cancel_request", {"requestId": Raw(id_)})
