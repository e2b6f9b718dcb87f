"""What an outlet gives: one message, and the name of its place in the stream."""

import msgspec


class Event(msgspec.Struct, frozen=True, gc=False):
    """One JSON-RPC message for a viewer."""

    data: bytes
    """One line of JSON, without a newline."""
    id: bytes | None = None
    """What a viewer over HTTP gives as `Last-Event-ID` to go on from here; None where there is no such place."""
