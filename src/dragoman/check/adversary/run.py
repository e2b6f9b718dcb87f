"""Checking a client. We start it once for each part, or the user connects it to us. The recordings are judged."""

import asyncio
import os
import secrets
import shlex
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from dragoman.check.adversary.channels import AdversaryRecording, WebSocketChannel, read_recording
from dragoman.check.adversary.parts import PARTS, TOURS
from dragoman.check.adversary.player import ANSWER_TIMEOUT_S, Player
from dragoman.check.conversation import FloodedError, RecordedConversation
from dragoman.check.judge import Judge
from dragoman.check.results import CheckReport, make_report
from dragoman.check.rule import VERSIONS, Version
from dragoman.errors import DragomanError
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.wire.framing import MAX_FRAME_BYTES

HOST = "127.0.0.1"
AGENT_PLACEHOLDER = "{agent}"
"""The placeholder for the adversary's command in the client's command."""

AT_ONCE = 3
"""Maximum number of clients that run concurrently. They mostly wait."""

POLL_S = 0.02
INTERRUPT_ID = b"cancel me"
"""The id of the request at which the client is interrupted."""
CANCELLED = frozenset({"is-cancelled", "v2-is-cancelled"})
"""The parts in which the client is interrupted."""
EXTENSIONS = 4
"""A client that continues to send messages may run this many times its timeout."""
INTERRUPTED = frozenset({-signal.SIGINT, 128 + signal.SIGINT})
"""Exit statuses of a client that does not handle Ctrl-C, with or without a shell around it."""


class ClientNotStartedError(DragomanError):
    """The client did not start the given agent, or sent nothing to it."""


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The client to check, and its time limits."""

    command: tuple[str, ...]
    timeout_s: float = 30.0
    """Time for the client to exit, measured from its start and again from each message of a part."""
    answer_timeout_s: float = ANSWER_TIMEOUT_S
    """Time for the client to answer a request of the agent."""
    parts: frozenset[str] | None = None
    """The names of the parts to play, or None for all."""
    protocols: tuple[Version, ...] | None = None
    """The protocol versions to judge. None means version 1, and version 2 if the client requests it."""
    on_part: Callable[[str], None] | None = None


async def check_client(options: ClientOptions) -> CheckReport:
    """Start the client once for each part and return the result of every rule.

    Raises StartError if it cannot be started, ClientNotStartedError if it did not start the agent or sent nothing to
    it, and FloodedError.
    """
    limit = asyncio.Semaphore(AT_ONCE)
    judges: list[Judge] = []
    judged: list[Version] = []
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
        async with Supervisor() as supervisor:
            for version in options.protocols or VERSIONS:
                if options.protocols is None and version == 2 and not any(map(_requests_v2, judges)):
                    break
                judged.append(version)
                selected = _select(options, version)
                judges += await _all([_play(options, supervisor, part, Path(directory), limit) for part in selected])
    if not any(each.sender == "client" and each.line for judge in judges for each in judge.conversation.entries):
        raise ClientNotStartedError(
            f"{options.command[0]} sent nothing to the agent that it started, so there is nothing to judge"
        )
    return make_report(judges, "client", judged)


def _select(options: ClientOptions, version: Version) -> list[str]:
    names = [each.name for each in PARTS.values() if (each.version == 2) == (version == 2)]
    return [each for each in names if options.parts is None or each in options.parts]


def _requests_v2(judge: Judge) -> bool:
    """Return whether the client requested version 2, even if it received another one."""
    asked = judge.state.agreement.initialize
    version = asked.params.get("protocolVersion") if asked is not None else None
    return isinstance(version, int) and version >= 2


async def _all(plays: Sequence[Coroutine[Any, Any, Judge]]) -> list[Judge]:
    """Wait for all. The first failure cancels the others and is raised without a group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            playing = [tasks.create_task(play) for play in plays]
    except* DragomanError as failures:
        raise failures.exceptions[0] from None
    return [each.result() for each in playing]


def agent_command(part: str, directory: Path, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> list[str]:
    """Return the command that plays a part."""
    return [sys.executable, "-m", "dragoman.check.adversary", part, str(directory), f"{answer_timeout_s:g}"]


def fill_in(command: Sequence[str], agent: Sequence[str]) -> list[str]:
    """Replace `{agent}` in the client's command with the agent's command, or append it."""
    if not any(AGENT_PLACEHOLDER in word for word in command):
        return [*command, *agent]
    filled: list[str] = []
    for word in command:
        filled += agent if word == AGENT_PLACEHOLDER else [word.replace(AGENT_PLACEHOLDER, shlex.join(agent))]
    return filled


async def _play(
    options: ClientOptions, supervisor: Supervisor, part: str, directory: Path, limit: asyncio.Semaphore
) -> Judge:
    async with limit:
        if options.on_part is not None:
            options.on_part(part)
        agent = agent_command(part, directory, options.answer_timeout_s)
        child = await supervisor.start(fill_in(options.command, agent), inherit=EVERYTHING)
        os.close(child.stdin)
        child.stdin = -1
        event = await _wait_for_exit(child, part, directory, options.timeout_s)
        await child.stop(grace_s=0)
    recorded = _find_recordings(part, directory)
    if not recorded:
        stderr = f" Its stderr ends: {child.stderr_tail.strip()[-300:]}" if child.stderr_tail.strip() else ""
        raise ClientNotStartedError(
            f"{options.command[0]} did not start the agent. Put {AGENT_PLACEHOLDER} where its command line expects"
            f" the agent's command, for example: dragoman check client -- my-client --agent {AGENT_PLACEHOLDER}."
            f"{stderr}"
        )
    conversation = read_recording(recorded[0])
    return judge_client(conversation, event)


def judge_client(conversation: RecordedConversation, event: str = "") -> Judge:
    """Judge the messages of a client, and its exit if that is known."""
    judge = Judge(conversation, sides=("client",))
    if event:
        conversation.add("client", at_s=conversation.entries[-1].at_s, event=event)
    for entry in conversation.entries:
        judge.see(entry)
    judge.end()
    return judge


def _find_recordings(part: str, directory: Path) -> list[Path]:
    return sorted(directory.glob(f"{part}.*.ndjson"))


async def _wait_for_exit(child: Child, part: str, directory: Path, timeout_s: float) -> str:
    """Wait for the client to exit, read its output, and interrupt it in a part that is cancelled."""
    interrupting = asyncio.create_task(_interrupt(child, part, directory)) if part in CANCELLED else None
    draining = asyncio.create_task(_drain(child.stdout))
    extending: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(timeout_s) as limit:
            extending = asyncio.create_task(_extend(limit, part, directory, timeout_s))
            ended = await child.wait()
            status = ended.code if ended.signal is None else -ended.signal
            return "killed" if part in CANCELLED and status in INTERRUPTED else f"exited {status}"
    except TimeoutError:
        return f"waited {timeout_s:g}"
    finally:
        for task in (interrupting, draining, extending):
            if task is not None:
                task.cancel()


async def _extend(limit: asyncio.Timeout, part: str, directory: Path, timeout_s: float) -> None:
    """Restart the timeout with each message, because a machine may be slow to start both processes."""
    now = asyncio.get_running_loop().time
    last, latest = 0, now() + EXTENSIONS * timeout_s
    while now() < latest:
        size = sum(each.stat().st_size for each in _find_recordings(part, directory))
        if size != last:
            last = size
            limit.reschedule(now() + timeout_s)
        await asyncio.sleep(POLL_S)


async def _interrupt(child: Child, part: str, directory: Path) -> None:
    """Send Ctrl-C once the agent has sent its request."""
    while not any(INTERRUPT_ID in each.read_bytes() for each in _find_recordings(part, directory)):  # noqa: ASYNC110 -- the other process writes the file
        await asyncio.sleep(POLL_S)
    os.kill(child.pid, signal.SIGINT)


async def _drain(fd: int) -> None:
    """Read and drop the output of the client, so that it does not block."""
    lines = asyncio.StreamReader()
    pipe = os.fdopen(os.dup(fd), "rb", 0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), pipe)
    try:
        while await lines.read(65_536):
            pass
    finally:
        transport.close()


# ── clients that the user operates ──────────────────────────────────────────────────────────────


class TourAddress(msgspec.Struct, frozen=True):
    """A command and a URL of one adversary."""

    version: Version
    command: list[str]
    url: str


class Listening(msgspec.Struct):
    """The addresses for clients, one per version, and the directory of the recordings."""

    places: list[TourAddress]
    directory: Path
    protocols: tuple[Version, ...] | None

    @property
    def conversations(self) -> int:
        """The number of conversations so far."""
        return len(list(self.directory.glob("*.ndjson")))

    def report(self) -> CheckReport:
        """Judge all recordings so far. Raises FloodedError."""
        recordings = sorted(self.directory.glob("*.ndjson"))
        judges = [judge_client(read_recording(each)) for each in recordings]
        return make_report(judges, "client", self.protocols or ())


@asynccontextmanager
async def listen(
    directory: Path, port: int = 0, protocols: tuple[Version, ...] | None = None
) -> AsyncGenerator[Listening]:
    """Wait for clients until the context is left. Raises OSError if the port is in use.

    There is one address for each version of the protocol. None means one address that speaks the version a client
    requests.
    """
    versions = protocols or VERSIONS[-1:]
    # A client must know the path. Web pages in a browser do not.
    paths = {f"/{secrets.token_urlsafe(24)}": TOURS[version] for version in versions}

    def admit(connection: ServerConnection, request: Request) -> Response | None:
        if request.path not in paths or "Origin" in request.headers:
            return connection.respond(HTTPStatus.NOT_FOUND, "There is nothing here. Use the complete URL as printed.\n")
        return None

    async def play(connection: ServerConnection) -> None:
        tour = paths[connection.request.path if connection.request is not None else ""]
        recording = AdversaryRecording(directory / f"{tour.name}.{secrets.token_hex(4)}.ndjson")
        channel = WebSocketChannel(connection, recording)
        try:
            async with asyncio.TaskGroup() as tasks:
                channel.transport.start(channel.inbox, tasks)
                await Player(channel, tour).play()
                await channel.transport.close()
        except* FloodedError:
            pass  # the report mentions it
        finally:
            recording.close()

    async with serve(play, HOST, port, process_request=admit, max_size=MAX_FRAME_BYTES) as server:
        base = f"ws://{HOST}:{_port(server)}"
        places = [
            TourAddress(version, agent_command(tour.name, directory), f"{base}{path}")
            for version, (path, tour) in zip(versions, paths.items(), strict=True)
        ]
        yield Listening(places, directory, protocols)


def _port(server: Server) -> int:
    return next(iter(server.sockets)).getsockname()[1]
