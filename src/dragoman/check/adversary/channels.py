"""The channels of an adversary: our stdio or a WebSocket. Every line is recorded for the checker.

On stdio, the client starts the adversary as its own process. The checker runs in another process and reads the
recording.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import BinaryIO

import msgspec
from websockets.asyncio.server import ServerConnection

from dragoman.check.adversary.player import Part, Player
from dragoman.check.conversation import MAX_BYTES, FloodedError, RecordedConversation, Side
from dragoman.check.inbox import Inbox
from dragoman.wire.stdio import StdioTransport, claim_stdio
from dragoman.wire.websocket import WebSocketTransport

DEAD_STATUS = 3


class RecordedLine(msgspec.Struct, array_like=True):
    """A line or an event, with its time in seconds since the agent was started."""

    at_s: float
    sender: Side
    line: str = ""
    """The bytes of the line as Latin-1, because they may be any bytes."""
    event: str = ""


class AdversaryRecording:
    """A file to which every line is written immediately, because the process may be killed at any moment."""

    def __init__(self, path: Path) -> None:
        self._name = path.stem
        self._bytes = 0
        self._file: BinaryIO = path.open("xb", buffering=0)
        self._start_s = time.monotonic()

    def add(self, sender: Side, line: bytes = b"", event: str = "") -> None:
        """Write the next line or event. Raises FloodedError."""
        written = msgspec.json.encode(
            RecordedLine(time.monotonic() - self._start_s, sender, line.decode("latin-1"), event)
        )
        self._file.write(written + b"\n")
        self._bytes += len(written)
        if self._bytes > MAX_BYTES:
            raise FloodedError(self._name)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_recording(path: Path) -> RecordedConversation:
    """Read the recording so far, without an incomplete last line. Raises FloodedError."""
    if path.stat().st_size > MAX_BYTES:
        raise FloodedError(path.stem)
    conversation = RecordedConversation(path.stem)
    for written in path.read_bytes().split(b"\n")[:-1]:
        line = msgspec.json.decode(written, type=RecordedLine)
        conversation.add(line.sender, line.line.encode("latin-1"), line.at_s, line.event)
    return conversation


class WebSocketChannel:
    """A WebSocket with a recording of every line."""

    def __init__(self, connection: ServerConnection, recording: AdversaryRecording) -> None:
        self._connection = connection
        self._recording = recording
        self.transport = WebSocketTransport(connection)
        self.inbox = Inbox(self.transport)
        self.read = self.inbox.read

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    def record(self, sender: Side, line: bytes = b"", event: str = "") -> None:
        self._recording.add(sender, line, event)

    async def die(self) -> None:
        self._connection.transport.abort()


class StdioChannel:
    """Our stdio with a recording of every line."""

    def __init__(self, transport: StdioTransport, recording: AdversaryRecording) -> None:
        self._transport = transport
        self._recording = recording
        self.inbox = Inbox(transport)
        self.read = self.inbox.read

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def record(self, sender: Side, line: bytes = b"", event: str = "") -> None:
        self._recording.add(sender, line, event)

    async def die(self) -> None:
        await self._transport.close()
        os._exit(DEAD_STATUS)


async def serve(part: Part, recording_path: Path, answer_timeout_s: float) -> None:
    """Play a part with the client that started us."""
    recording = AdversaryRecording(recording_path)
    transport = StdioTransport(*claim_stdio())
    channel = StdioChannel(transport, recording)
    channel.record("agent", event="started")
    try:
        async with asyncio.TaskGroup() as tasks:
            transport.start(channel.inbox, tasks)
            await Player(channel, part, answer_timeout_s).play()
            channel.record("agent", event="stdin closed")
            await transport.close()
    finally:
        recording.close()
