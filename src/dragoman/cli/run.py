"""`dragoman run`: give an agent one prompt and print its answer as it streams."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dragoman import __version__
from dragoman.cli.command import split_command
from dragoman.cli.loop import Stopped, run
from dragoman.client import launch
from dragoman.errors import DragomanError, InvalidResult
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.methods import (
    INITIALIZE,
    SESSION_NEW,
    SESSION_PROMPT,
    SESSION_REQUEST_PERMISSION,
    SESSION_UPDATE,
)
from dragoman.protocol.routes import Routes
from dragoman.wire import IncomingRequest

PROTOCOL_VERSION = 1

EXIT_CODES = {"end_turn": 0, "max_tokens": 3, "max_turn_requests": 3, "refusal": 4, "cancelled": 5}
"""What the shell sees of a stop reason; 1 is a failure of the agent, 2 a wrong command line."""


def main(argv: Sequence[str]) -> int:
    """Run one prompt and return the exit code for its stop reason."""
    own, command = split_command(argv)
    parser = _parser()
    options = parser.parse_args(own)
    if not command:
        parser.error("there is no command after --; name an agent, or leave -- out to use dragoman's own")
    logging.basicConfig(stream=sys.stderr, level=os.environ.get("DRAGOMAN_LOG", "ERROR").upper())
    try:
        return EXIT_CODES[run(_run(options.prompt, command))]
    except DragomanError as error:
        print(f"dragoman run: {error}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        return 128 + stopped.signal_number


async def _run(prompt: str, command: Sequence[str]) -> v1.StopReason:
    screen = _Screen()
    routes = Routes("client")
    routes.on_notification(SESSION_UPDATE, screen.show)
    routes.on_request(SESSION_REQUEST_PERMISSION, screen.deny)
    async with launch(command, routes) as agent:
        await _initialize(agent)
        session = await agent.call(SESSION_NEW, v1.NewSessionRequest(cwd=str(Path.cwd()), mcp_servers=[]))
        answer = await agent.call(
            SESSION_PROMPT,
            v1.PromptRequest(session_id=session.session_id, prompt=[v1.TextContent(text=prompt)]),
        )
        screen.finish()
        return answer.stop_reason


async def _initialize(agent: Connection) -> None:
    answer = await agent.call(
        INITIALIZE,
        v1.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_info=v1.Implementation(name="dragoman", title="Dragoman", version=__version__),
        ),
    )
    if answer.protocol_version != PROTOCOL_VERSION:
        raise InvalidResult(
            INITIALIZE.name,
            f"the agent speaks version {answer.protocol_version} of the protocol and we speak {PROTOCOL_VERSION}",
        )


class _Screen:
    """The answer on stdout; what happens beside it on stderr."""

    def __init__(self) -> None:
        self._dim, self._plain = ("\x1b[2m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
        self._last = "\n"

    def show(self, notification: v1.SessionNotification) -> None:
        match notification.update:
            case v1.AgentMessageChunk(content=v1.TextContent(text=text)):
                self._last = text or self._last
                print(text, end="", flush=True)
            case v1.ToolCall(title=title):
                self._aside(f"[{title}]")
            case _:
                pass

    async def deny(self, params: v1.RequestPermissionRequest, request: IncomingRequest) -> v1.RequestPermissionResponse:
        """Refuse: nobody is asked here, so nobody has agreed."""
        del request
        self._aside(f"[denied: {params.tool_call.title or params.tool_call.tool_call_id}]")
        for option in params.options:
            if option.kind in ("reject_once", "reject_always"):
                return v1.RequestPermissionResponse(outcome=v1.SelectedPermissionOutcome(option_id=option.option_id))
        return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())

    def finish(self) -> None:
        if not self._last.endswith("\n"):
            print(flush=True)

    def _aside(self, text: str) -> None:
        print(f"{self._dim}{text}{self._plain}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman run",
        usage="%(prog)s [-h] PROMPT [-- CMD ...]",
        description="Start an agent, give it one prompt and print its answer as it streams. "
        "CMD is any ACP agent; without it, dragoman's own is used.",
        epilog="Exit codes: 0 done, 1 the agent failed, 2 usage, 3 stopped at a limit, 4 refused, 5 cancelled.",
    )
    parser.add_argument("prompt", metavar="PROMPT", help="what to say to the agent")
    return parser
