"""JSON-RPC 2.0 over lines: framing and messages without I/O, the peer, and its transports."""

from dragoman.wire.framing import MAX_LINE_BYTES, LineSplitter, Oversized
from dragoman.wire.handler import HEADS, IncomingRequest, Shortcut
from dragoman.wire.incoming import MAX_IN_FLIGHT
from dragoman.wire.memory import memory_pair
from dragoman.wire.message import MAX_NESTING, Malformed, Message, error_object, parse
from dragoman.wire.peer import Peer
from dragoman.wire.stdio import StdioTransport, claim_stdio
from dragoman.wire.stream import ByteReader, ByteWriter, StreamTransport
from dragoman.wire.transport import LayeredTransport, Receiver, Transport

__all__ = [
    "HEADS",
    "MAX_IN_FLIGHT",
    "MAX_LINE_BYTES",
    "MAX_NESTING",
    "ByteReader",
    "ByteWriter",
    "IncomingRequest",
    "LayeredTransport",
    "LineSplitter",
    "Malformed",
    "Message",
    "Oversized",
    "Peer",
    "Receiver",
    "Shortcut",
    "StdioTransport",
    "StreamTransport",
    "Transport",
    "claim_stdio",
    "error_object",
    "memory_pair",
    "parse",
]
