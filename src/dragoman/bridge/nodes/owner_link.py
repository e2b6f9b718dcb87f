"""The link of one viewer on this node to another node, which owns sessions that the viewer uses.

The owner receives the messages of the viewer unchanged, and treats it like its own viewers (`remote_viewer.py`). It
sends back the messages that only this viewer receives. Each names the record that it must follow, so it is put into the
viewer's queue at once, and no task waits for an answer.
"""

import uuid
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.bridge.envelope import fields_of, string_of, with_param
from dragoman.bridge.nodes.messages import Direct, NodeMessage, ViewerLine
from dragoman.bridge.viewers import Viewer
from dragoman.errors import ErrorCode
from dragoman.protocol import methods
from dragoman.wire import Malformed, Message, parse
from dragoman.wire.envelope import make_request, session_of

RESUME = methods.SESSION_RESUME.name
REOPENING = frozenset({methods.SESSION_LOAD.name, RESUME})

_CANCEL = methods.CANCEL_REQUEST.name

_numbers = count(1)


class PendingRequest(msgspec.Struct, frozen=True):
    """A request that was sent to the owner."""

    session_id: str | None
    moves_viewer: bool = False
    """Whether the viewer continues at the position that the owner names. Otherwise it stays where it is."""
    is_internal: bool = False
    """Whether this node sent it by itself, so that the viewer does not receive the answer."""


class OwnerLink:
    """The link of one viewer on this node to one other node."""

    def __init__(
        self, agent: str, viewer: Viewer, owner: uuid.UUID, send: Callable[[uuid.UUID, NodeMessage], None]
    ) -> None:
        self.id = str(uuid.uuid4())
        self.viewer = viewer
        self.owner = owner
        self.end_reason: str | None = None
        """The reason why the owner has closed the link."""
        self._agent = agent
        self._send = send
        self._pending: dict[bytes, PendingRequest] = {}
        self._asked: set[bytes] = set()
        """Ids of the owner's requests that the viewer has not answered."""

    def pass_on(self, message: Message, line: bytes) -> None:
        """Send a message of the viewer about a session of the owner."""
        session_id, moves_viewer = session_of(message.params), message.method in REOPENING
        if moves_viewer and (placed := self._with_position(message, line, session_id)) is not None:
            line, moves_viewer = placed, message.method != RESUME
        if message.id is not UNSET:
            self._pending[bytes(message.id)] = PendingRequest(session_id, moves_viewer)
        self._send_line(line)

    def pass_back(self, message: Message | Malformed, line: bytes) -> bool:
        """Send an answer to the owner, or the cancellation of a request there. Return False for other messages."""
        if isinstance(message, Malformed) or message.method is None:
            id_ = b"" if message.id is UNSET else bytes(message.id)
            is_here = id_ in self._asked
            self._asked.discard(id_)
        else:
            requested = fields_of(message.params).get("requestId") if message.method == _CANCEL else None
            is_here = requested is not None and bytes(requested) in self._pending
        if is_here:
            self._send_line(line)
        return is_here

    def ask(self, method: str, params: dict[str, Any], session_id: str | None = None) -> None:
        """Send a request of this node for the viewer, which does not receive the answer."""
        id_ = b'"dragoman-%d"' % next(_numbers)
        self._pending[id_] = PendingRequest(session_id, is_internal=True)
        self._send_line(make_request(id_, method, params))

    def moves_viewer(self, session_id: str) -> bool:
        """Return whether a pending request lets the owner choose the viewer's position in a session."""
        return any(each.moves_viewer and each.session_id == session_id for each in self._pending.values())

    def deliver(self, message: Direct) -> None:
        """Send the viewer a message of the owner, after the record that it must follow."""
        line = parse(message.line)
        if not isinstance(line, Malformed) and line.id is not UNSET:
            if line.method is not None:
                self._asked.add(bytes(line.id))
            elif (pending := self._pending.pop(bytes(line.id), None)) is not None and pending.is_internal:
                return
        subscription = self.viewer.subscription(message.session)
        if message.opens and subscription is not None and subscription.history is not None:
            self.viewer.send_opened(message.line, subscription, message.after)
        else:
            self.viewer.send(message.line, subscription, message.after)

    def refuse_pending(self, reason: str) -> None:
        """Refuse the requests that the owner has not answered."""
        for id_, pending in self._pending.items():
            if not pending.is_internal:
                subscription = self.viewer.subscription(pending.session_id)
                self.viewer.refuse(id_, ErrorCode.INTERNAL_ERROR, reason, subscription)

    def _send_line(self, line: bytes) -> None:
        self._send(self.owner, ViewerLine(self._agent, self.id, line))

    def _with_position(self, message: Message, line: bytes, session_id: str | None) -> bytes | None:
        """Return a request with the viewer's position, which the owner does not know.

        Return None if the request names a position itself, or the viewer has none.
        """
        subscription = self.viewer.subscription(session_id)
        meta = fields_of(fields_of(message.params).get("_meta", UNSET))
        own = fields_of(meta.get("dragoman", UNSET))
        if subscription is None or string_of(own.get("after")) is not None:
            return None
        if (cursor := subscription.pop_resume_from()) is not None:
            after = f"{cursor.epoch}.{cursor.seq}"
        elif subscription.history is not None and message.method == RESUME:
            after = subscription.history.cursor(subscription.position)
        else:
            return None
        return with_param(line, "_meta", {**meta, "dragoman": {**own, "after": after}})
