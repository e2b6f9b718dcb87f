"""An adversary that waits for clients that a person drives: as a command for an editor, and at a WebSocket."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from dragoman.check.adversary.parts import TOUR
from dragoman.check.adversary.player import Player
from dragoman.check.adversary.record import Record, read_record
from dragoman.check.adversary.run import agent_command, judge_client
from dragoman.check.conclude import report
from dragoman.check.conversation import Flooded, Side
from dragoman.check.finding import Report
from dragoman.check.inbox import Inbox
from dragoman.wire.websocket import MAX_FRAME_BYTES, WebSocketTransport

HOST = "127.0.0.1"


class Listening(msgspec.Struct):
    """Where clients can be pointed, and where what they say is written down."""

    command: list[str]
    url: str
    directory: Path

    @property
    def conversations(self) -> int:
        """Return how many were begun."""
        return len(list(self.directory.glob("*.ndjson")))

    def report(self) -> Report:
        """Judge all that was said so far. Raises Flooded."""
        return report([judge_client(read_record(each)) for each in sorted(self.directory.glob("*.ndjson"))], "client")


class WebSocketChannel:
    """A WebSocket, with everything written down."""

    def __init__(self, connection: ServerConnection, record: Record) -> None:
        self._connection = connection
        self._record = record
        self.transport = WebSocketTransport(connection)
        self.inbox = Inbox(self.transport)
        self.read = self.inbox.read

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    def note(self, sender: Side, line: bytes = b"", event: str = "") -> None:
        self._record.add(sender, line, event)

    async def die(self) -> None:
        self._connection.transport.abort()


@asynccontextmanager
async def listen(directory: Path, port: int = 0) -> AsyncGenerator[Listening]:
    """Wait for clients, until left; raises OSError when the port is taken."""
    path = f"/{secrets.token_urlsafe(24)}"  # whoever knows it may talk to us; no page in a browser does

    def admit(connection: ServerConnection, request: Request) -> Response | None:
        if request.path != path or "Origin" in request.headers:
            return connection.respond(HTTPStatus.NOT_FOUND, "There is nothing here. Use the whole URL as printed.\n")
        return None

    async def play(connection: ServerConnection) -> None:
        record = Record(directory / f"tour.{secrets.token_hex(4)}.ndjson")
        channel = WebSocketChannel(connection, record)
        try:
            async with asyncio.TaskGroup() as tasks:
                channel.transport.start(channel.inbox, tasks)
                await Player(channel, TOUR).play()
                await channel.transport.close()
        except* Flooded:
            pass  # the report says so
        finally:
            record.close()

    async with serve(play, HOST, port, process_request=admit, max_size=MAX_FRAME_BYTES) as server:
        yield Listening(agent_command(TOUR.name, directory), f"ws://{HOST}:{_port(server)}{path}", directory)


def _port(server: Server) -> int:
    return next(iter(server.sockets)).getsockname()[1]
