"""JSON-RPC 2.0 over lines: framing and messages without I/O, the peer, and its transports."""

from dragoman.wire.framing import MAX_LINE_BYTES, LineSplitter, Oversized
from dragoman.wire.handler import HEADS, Handler, IncomingRequest, Shortcut
from dragoman.wire.incoming import MAX_IN_FLIGHT
from dragoman.wire.memory import MemoryTransport, memory_pair
from dragoman.wire.message import MAX_NESTING, ErrorObject, Malformed, Message, error_object, parse
from dragoman.wire.peer import Peer
from dragoman.wire.stdio import StdioTransport, take_stdio
from dragoman.wire.stream import ByteReader, ByteWriter, StreamTransport
from dragoman.wire.transport import LayeredTransport, Receiver, Transport

__all__ = [
    "HEADS",
    "MAX_IN_FLIGHT",
    "MAX_LINE_BYTES",
    "MAX_NESTING",
    "ByteReader",
    "ByteWriter",
    "ErrorObject",
    "Handler",
    "IncomingRequest",
    "LayeredTransport",
    "LineSplitter",
    "Malformed",
    "MemoryTransport",
    "Message",
    "Oversized",
    "Peer",
    "Receiver",
    "Shortcut",
    "StdioTransport",
    "StreamTransport",
    "Transport",
    "error_object",
    "memory_pair",
    "parse",
    "take_stdio",
]
