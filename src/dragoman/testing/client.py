"""A client that sends prompts and records all messages of the agent, for tests of agents."""

import asyncio
from collections.abc import Callable
from typing import Literal, Self

from dragoman import __version__
from dragoman.errors import InvalidParamsError
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
from dragoman.protocol.notice import notice_text
from dragoman.protocol.permission_options import find_default
from dragoman.wire import Transport

Decision = Literal["allow", "reject", "cancel", "wait"]


class ScriptedClient:
    """Drives one agent. Use it as an async context manager.

    `decide` answers permission requests. With `wait`, a request stays open until its turn is cancelled. Without
    `capabilities`, the client only supports notices. A test may register handlers of other requests in `routes`.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        decide: Callable[[v1.RequestPermissionRequest], Decision] = lambda _: "reject",
        capabilities: v1.ClientCapabilities | None = None,
    ) -> None:
        self.updates: list[v1.SessionNotification] = []
        self.permissions: list[v1.RequestPermissionRequest] = []
        self.routes = Routes("client")
        self.routes.on_notification(SESSION_UPDATE, self._record_update)
        self.routes.on_request(SESSION_REQUEST_PERMISSION, self._answer_permission)
        self.connection = Connection(transport, self.routes)
        self._decide = decide
        self._capabilities = capabilities or v1.ClientCapabilities(
            session=v1.ClientSessionCapabilities(notices=v1.NoticeCapabilities())
        )
        self._cancelled = asyncio.Event()
        self._received = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.connection.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.connection.__aexit__(*exc_info)

    async def initialize(self) -> v1.InitializeResponse:
        """Agree on a protocol version."""
        return await self.connection.call(
            INITIALIZE,
            v1.InitializeRequest(
                protocol_version=1,
                client_capabilities=self._capabilities,
                client_info=v1.Implementation(name="dragoman-scripted-client", version=__version__),
            ),
        )

    async def new_session(self, cwd: str, mcp_servers: list[v1.McpServer] | None = None) -> str:
        """Create a session and return its ID."""
        request = v1.NewSessionRequest(cwd=cwd, mcp_servers=mcp_servers or [])
        return (await self.connection.call(SESSION_NEW, request)).session_id

    async def prompt(self, session_id: str, text: str) -> v1.PromptResponse:
        """Send a prompt and wait for its response."""
        self._cancelled.clear()
        request = v1.PromptRequest(session_id=session_id, prompt=[v1.TextContent(text=text)])
        return await self.connection.call(SESSION_PROMPT, request)

    async def cancel(self, session_id: str) -> None:
        """Cancel the running turn and its open permission requests."""
        await self.connection.notify(SESSION_CANCEL, v1.CancelNotification(session_id=session_id))
        self._cancelled.set()

    async def wait_for(self, condition: Callable[[Self], bool]) -> None:
        """Wait until `condition` holds. Check it whenever a message arrives from the agent."""
        while not condition(self):
            self._received.clear()
            await self._received.wait()

    def conversation(self, session_id: str | None = None) -> list[v1.SessionUpdate]:
        """Return the updates that belong to a conversation: all except notices and available commands."""
        return [
            notification.update
            for notification in self.updates
            if session_id in (None, notification.session_id)
            and not isinstance(notification.update, v1.AvailableCommandsUpdate | v1.Notice)
        ]

    def text(self, session_id: str | None = None) -> str:
        """Return the text of the agent with all chunks joined."""
        return "".join(
            update.update.content.text
            for update in self.updates
            if session_id in (None, update.session_id)
            and isinstance(update.update, v1.AgentMessageChunk)
            and isinstance(update.update.content, v1.TextContent)
        )

    def notices(self, session_id: str | None = None) -> list[str]:
        """Return the notices of the agent, each as its title and description."""
        return [
            notice_text(update.update)
            for update in self.updates
            if session_id in (None, update.session_id) and isinstance(update.update, v1.Notice)
        ]

    def _record_update(self, notification: v1.SessionNotification) -> None:
        self.updates.append(notification)
        self._received.set()

    async def _answer_permission(self, params: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        self.permissions.append(params)
        self._received.set()
        decision = self._decide(params)
        if decision == "wait":
            await self._cancelled.wait()
            decision = "cancel"
        if decision == "cancel":
            return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())
        position = find_default([option.kind for option in params.options], decision)
        if position is None:
            raise InvalidParamsError(
                "params.options", f"the request has no option to {decision} it", expected=f"{decision}_once"
            )
        option_id = params.options[position].option_id
        return v1.RequestPermissionResponse(outcome=v1.SelectedPermissionOutcome(option_id=option_id))
