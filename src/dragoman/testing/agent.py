"""An agent that follows a script, for tests of clients.

In the same process, use `ScriptedAgent(transport, turns)`. For clients that start their agent, run it on stdio with
`python -m dragoman.testing 'JSON'`, with the JSON of `steps.dump_turns`.
"""

import asyncio
import os
import sys
import uuid
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dragoman import __version__
from dragoman.errors import ErrorCode, InvalidParamsError, RpcError
from dragoman.files.path import is_absolute
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import (
    INITIALIZE,
    SESSION_CANCEL,
    SESSION_NEW,
    SESSION_PROMPT,
    SESSION_REQUEST_PERMISSION,
    SESSION_UPDATE,
)
from dragoman.testing import steps
from dragoman.wire import IncomingRequest, Transport

if TYPE_CHECKING:
    from dragoman.testing.servers import UnusedServers


class ScriptedAgent:
    """Serves one client. Each prompt runs the next turn of the script, and the last turn is repeated.

    A test may register handlers in `routes`, which replace the default handlers.
    """

    def __init__(self, transport: Transport, turns: list[steps.TurnScript]) -> None:
        self.capabilities = v1.AgentCapabilities()
        self.sessions: dict[str, v1.NewSessionRequest] = {}
        self.prompts: list[v1.PromptRequest] = []
        self.routes = Routes("agent")
        self.routes.on_request(INITIALIZE, self._initialize)
        self.routes.on_request(SESSION_NEW, self._new_session)
        self.routes.on_incoming_request(SESSION_PROMPT, self._prompt)
        self.routes.on_notification(SESSION_CANCEL, self._cancel)
        self._transport = transport
        self._turns = turns
        self._cancels: dict[str, asyncio.Event] = {}
        self._stack: AsyncExitStack | None = None
        self._servers: UnusedServers | None = None
        self.connection = Connection(transport, self.routes)

    async def serve(self) -> None:
        """Serve until the client disconnects."""
        async with AsyncExitStack() as stack, self.connection:
            self._stack = stack
            await self.connection.wait_ended()

    async def _initialize(self, _params: v1.InitializeRequest) -> v1.InitializeResponse:
        return v1.InitializeResponse(
            protocol_version=1,
            agent_capabilities=self.capabilities,
            agent_info=v1.Implementation(name="dragoman-scripted-agent", version=__version__),
        )

    async def _new_session(self, params: v1.NewSessionRequest) -> v1.NewSessionResponse:
        check_directories(params)
        if params.mcp_servers:
            await self._connect_servers(params)
        session_id = str(uuid.uuid4())
        self.sessions[session_id] = params
        self._cancels[session_id] = asyncio.Event()
        return v1.NewSessionResponse(session_id=session_id)

    async def _connect_servers(self, params: v1.NewSessionRequest) -> None:
        if self._servers is None and self._stack is not None:
            from dragoman.testing.servers import UnusedServers

            self._servers = await self._stack.enter_async_context(UnusedServers())
        if self._servers is not None:
            self._servers.connect(params.mcp_servers, params.cwd)

    async def _prompt(self, params: v1.PromptRequest, request: IncomingRequest) -> v1.PromptResponse:
        if params.session_id not in self.sessions:
            raise RpcError(
                ErrorCode.RESOURCE_NOT_FOUND,
                {"sessionId": params.session_id, "problem": f"there is no session {params.session_id}"},
            )
        cancelled = self._cancels[params.session_id]
        cancelled.clear()
        request.on_cancel = cancelled.set
        self.prompts.append(params)
        script = self._turns[min(len(self.prompts), len(self._turns)) - 1]
        turn = _ScriptedTurn(self.connection, self._transport, params.session_id, cancelled)
        return v1.PromptResponse(stop_reason=cast("v1.StopReason", await turn.run(script)))

    def _cancel(self, params: v1.CancelNotification) -> None:
        if params.session_id in self._cancels:
            self._cancels[params.session_id].set()


def check_directories(params: v1.NewSessionRequest) -> None:
    """Check that cwd and the other directories are absolute and exist. Raises InvalidParamsError."""
    paths = {"cwd": params.cwd}
    paths |= {f"additionalDirectories[{n}]": path for n, path in enumerate(params.additional_directories)}
    for field, path in paths.items():
        if not is_absolute(path):
            raise InvalidParamsError(
                f"params.{field}", f"the path {path!r} is not absolute", expected="an absolute path"
            )
        if not Path(path).is_dir():
            raise InvalidParamsError(f"params.{field}", f"there is no directory {path!r}", expected="a directory")


class _ScriptedTurn:
    def __init__(self, connection: Connection, transport: Transport, session_id: str, cancelled: asyncio.Event) -> None:
        self._connection = connection
        self._transport = transport
        self._session_id = session_id
        self._cancelled = cancelled
        self._message_id = str(uuid.uuid4())

    async def run(self, script: steps.TurnScript) -> str:
        for step in script:
            reason = await self._run_step(step)
            if reason is not None:
                return reason
        return "end_turn"

    async def _run_step(self, step: steps.Step) -> str | None:
        match step:
            case steps.Say(text):
                await self._say(text)
            case steps.Think(text):
                await self._update(v1.AgentThoughtChunk(content=v1.TextContent(text=text)))
            case steps.Update(update):
                await self._connection.notify_extension(
                    SESSION_UPDATE.name, {"sessionId": self._session_id, "update": update}
                )
            case steps.AskPermission():
                return await self._request_permission(step)
            case steps.WaitForCancel():
                await self._cancelled.wait()
                return "cancelled"
            case steps.Send(line):
                self._transport.write(line.encode() + b"\n")
            case steps.Exit(code, stderr):
                await asyncio.sleep(0)  # sends the messages of earlier steps first
                print(stderr, file=sys.stderr, flush=True)  # noqa: T201 -- this step writes to stderr
                os._exit(code)
            case steps.Stop(reason):
                return reason
            case steps.Fail(code, data):
                raise RpcError(code, data)
        return None

    async def _request_permission(self, step: steps.AskPermission) -> str | None:
        call_id = f"call-{uuid.uuid4()}"
        await self._update(v1.ToolCall(tool_call_id=call_id, title=step.title, kind=step.kind, status="pending"))
        answer = await self._connection.call(
            SESSION_REQUEST_PERMISSION,
            v1.RequestPermissionRequest(
                session_id=self._session_id,
                tool_call=v1.ToolCallUpdate(tool_call_id=call_id, title=step.title, kind=step.kind),
                options=[
                    v1.PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
                    v1.PermissionOption(option_id="no", name="Reject", kind="reject_once"),
                ],
            ),
        )
        allowed = isinstance(answer.outcome, v1.SelectedPermissionOutcome) and answer.outcome.option_id == "yes"
        if allowed:
            await self._update(v1.ToolCallProgress(tool_call_id=call_id, status="in_progress"))
        status = "completed" if allowed else "failed"
        await self._update(v1.ToolCallProgress(tool_call_id=call_id, status=status))
        if not isinstance(answer.outcome, v1.SelectedPermissionOutcome):
            await self._say("outcome: cancelled")
            return "cancelled"
        await self._say(f"outcome: selected {answer.outcome.option_id}")
        return None

    async def _say(self, text: str) -> None:
        await self._update(v1.AgentMessageChunk(content=v1.TextContent(text=text), message_id=self._message_id))

    async def _update(self, update: v1.SessionUpdate) -> None:
        await self._connection.notify(
            SESSION_UPDATE, v1.SessionNotification(session_id=self._session_id, update=update)
        )
