"""A session that this node does not own, with the viewers here that follow it.

Its history is read from the database. The node polls the last committed record of all such sessions (`node.py`). It
reads new records once for all viewers, which then continue at their cursors as on a `ServedSession`. The messages of
these viewers are sent to the owner (`owner_link.py`).
"""

import logging
import uuid
from typing import Any

from msgspec import UNSET

from dragoman.bridge.viewers import Subscription, Viewer
from dragoman.bridge.viewers.direct_queue import DirectMessage
from dragoman.errors import ErrorCode, SessionUnreadableError
from dragoman.store.postgresql.history import ReplicaHistory
from dragoman.wire import Malformed, parse
from dragoman.wire.envelope import make_error

_log = logging.getLogger("dragoman.bridge")


class RemoteSession:
    """A session that another node owns, or no node."""

    def __init__(self, history: ReplicaHistory, owner: uuid.UUID | None) -> None:
        self.id = history.header.id
        self.history = history
        self.owner = owner
        """The node that owns it, as far as this node knows. None if that node has ended."""
        self.subscriptions: dict[Viewer, Subscription] = {}

    def subscribe(self, viewer: Viewer, cursor: int, *, has_history: bool = False) -> None:
        """Subscribe a viewer after a record. The viewer may have the earlier records."""
        self.subscriptions[viewer] = subscription = viewer.subscribe(self.id)
        subscription.bind(self.history, cursor, has_history=has_history)
        viewer.wake(subscription)

    def wake_viewers(self) -> None:
        """Wake the streams of all viewers."""
        for viewer, subscription in self.subscriptions.items():
            viewer.wake(subscription)

    async def follow(self, last: int) -> bool:
        """Read the records up to this one. Return whether there were any. Raises DragomanError.

        A history that cannot be read costs only its viewers.
        """
        try:
            return await self.history.follow(last)
        except SessionUnreadableError as error:
            _log.warning("session %s is no longer shown: %s", self.id, error)
            for viewer in list(self.subscriptions):
                viewer.drop(f"session {self.id} cannot be read: {error.problem}")
            return False

    def resume_params(self, subscription: Subscription) -> dict[str, Any]:
        """Return the params of `session/resume` with which a viewer continues at its position at another owner."""
        cwd = self.history.header.cwd
        return {
            "sessionId": self.id,
            **({"cwd": cwd} if cwd else {}),  # an agent may have begun the session without one
            "mcpServers": [],
            "_meta": {"dragoman": {"after": self.history.cursor(subscription.position)}},
        }

    def lose_owner(self, viewer: Viewer, reason: str) -> None:
        """Handle that the link of a viewer to the owner was closed. The viewer stays subscribed."""
        self.owner = None
        viewer.terminal_names.pop(self.id, None)
        refuse_uncommitted(viewer, self.subscriptions[viewer], self.history.end, reason)


def refuse_uncommitted(viewer: Viewer, subscription: Subscription, end: int, reason: str) -> None:
    """Refuse requests whose answers wait for records that will never be committed. Send the other messages."""
    for direct in subscription.queue.clear():
        if direct.after <= end:
            viewer.send(direct.data, subscription, direct.after)
        elif (refusal := _refusal_of(direct, reason)) is not None:
            viewer.send(refusal, subscription, end)
    for direct in viewer.outbox.pop_gated(subscription, end):
        if (refusal := _refusal_of(direct, reason)) is not None:
            viewer.send(refusal)


def _refusal_of(direct: DirectMessage, reason: str) -> bytes | None:
    """Return the error that replaces an answer, or None if the message is not an answer."""
    message = parse(direct.data)
    if isinstance(message, Malformed) or message.method is not None or message.id is UNSET:
        return None
    return make_error(bytes(message.id), ErrorCode.INTERNAL_ERROR, reason)
