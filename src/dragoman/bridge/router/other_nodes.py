"""The other bridges that share a database with this one, as its router uses them."""

from typing import Protocol

from dragoman.bridge.viewers import Viewer
from dragoman.wire import Malformed, Message


class OtherNodes(Protocol):
    """The owners of sessions that are not open here."""

    async def pass_on(self, viewer: Viewer, message: Message, line: bytes, session_id: str) -> bool:
        """Send a viewer's message to the owner of its session. Return False if this node handles it.

        If the session has no owner and the message needs one, this node becomes the owner. Raises RpcError.
        """
        ...

    def pass_back(self, viewer: Viewer, message: Message | Malformed, line: bytes) -> bool:
        """Send an answer to the node that asked, or a cancellation to the node that has the request.

        An answer that cannot be read is sent as well. Return False for other messages.
        """
        ...

    def viewer_left(self, viewer: Viewer) -> None:
        """Unsubscribe a viewer from the sessions of other nodes."""
        ...
