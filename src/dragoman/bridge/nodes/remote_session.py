"""A session that this node does not own. Viewers here read its journal from the database.

The node polls the last committed record of all such sessions (`node.py`). It reads new records once for all viewers,
which then continue at their cursors as on a local session.
"""

import logging
import uuid
from typing import Any

from dragoman.bridge.viewers import Subscription, Viewer
from dragoman.errors import SessionUnreadableError
from dragoman.store.postgresql.history import ReplicaHistory

_log = logging.getLogger("dragoman.bridge")


class RemoteSession:
    """A session that another node owns, or no node, with the viewers here that follow it.

    Viewers subscribe to it as to a `ServedSession`. Its history is read from the database, and messages of viewers are
    sent to the owner.
    """

    def __init__(self, session_id: str, history: ReplicaHistory, owner: uuid.UUID | None) -> None:
        self.id = session_id
        self.history = history
        self.owner = owner
        """The node that owns it, as far as this node knows. None if that node has ended."""
        self.subscriptions: dict[Viewer, Subscription] = {}

    def subscribe(self, viewer: Viewer, cursor: int, *, has_history: bool = False) -> Subscription:
        """Subscribe a viewer after a record. The viewer may have the earlier records."""
        subscription = viewer.subscribe(self.id)
        subscription.bind(self.history, cursor, has_history=has_history)
        self.subscriptions[viewer] = subscription
        viewer.wake(subscription)
        return subscription

    def unsubscribe(self, viewer: Viewer) -> None:
        """Unsubscribe a viewer."""
        self.subscriptions.pop(viewer, None)

    def wake_viewers(self) -> None:
        """Wake the streams of all viewers."""
        for viewer, subscription in self.subscriptions.items():
            viewer.wake(subscription)

    def positions(self) -> dict[Viewer, int]:
        """Return the last record that each viewer has."""
        return {viewer: each.position for viewer, each in self.subscriptions.items()}

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
