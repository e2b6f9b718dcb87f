"""A client that sends prompts and records all messages of the agent, for tests of agents."""

import asyncio
from collections.abc import Callable
from typing import Literal, Self

from dragoman import __version__
from dragoman.errors import InvalidParams
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
from dragoman.protocol.notice import words_of
from dragoman.protocol.permission_options import find_default
from dragoman.wire import IncomingRequest, Transport

Decision = Literal["allow", "reject", "cancel", "wait"]


class ScriptedClient:
    """Drives one agent; use it as an async context manager.

    `decide` answers permission requests; with `wait` a request stays open until its turn is cancelled.
    Without `capabilities` it offers nothing but to take notices.
    `routes` takes the handlers of other requests that a test wants to answer.
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
        self.routes.on_notification(SESSION_UPDATE, self._take_update)
        self.routes.on_request(SESSION_REQUEST_PERMISSION, self._take_permission)
        self.connection = Connection(transport, self.routes)
        self._decide = decide
        self._capabilities = capabilities or v1.ClientCapabilities(
            session=v1.ClientSessionCapabilities(notices=v1.NoticeCapabilities())
        )
        self._cancelled = asyncio.Event()
        self._news = asyncio.Event()

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
        """Open a session and return its id."""
        request = v1.NewSessionRequest(cwd=cwd, mcp_servers=mcp_servers or [])
        return (await self.connection.call(SESSION_NEW, request)).session_id

    async def prompt(self, session_id: str, text: str) -> v1.PromptResponse:
        """Send a prompt and wait for its end."""
        self._cancelled.clear()
        request = v1.PromptRequest(session_id=session_id, prompt=[v1.TextContent(text=text)])
        return await self.connection.call(SESSION_PROMPT, request)

    async def cancel(self, session_id: str) -> None:
        """Cancel the running turn, and with it the permission requests that wait."""
        await self.connection.notify(SESSION_CANCEL, v1.CancelNotification(session_id=session_id))
        self._cancelled.set()

    async def wait_for(self, condition: Callable[[Self], bool]) -> None:
        """Wait until `condition` holds, looking again whenever something came from the agent."""
        while not condition(self):
            self._news.clear()
            await self._news.wait()

    def conversation(self, session_id: str | None = None) -> list[v1.SessionUpdate]:
        """Return the updates that are part of a conversation: all but notices, and the commands on offer."""
        return [
            notification.update
            for notification in self.updates
            if session_id in (None, notification.session_id)
            and not isinstance(notification.update, v1.AvailableCommandsUpdate | v1.Notice)
        ]

    def text(self, session_id: str | None = None) -> str:
        """Return the text of the agent, all chunks joined."""
        return "".join(
            update.update.content.text
            for update in self.updates
            if session_id in (None, update.session_id)
            and isinstance(update.update, v1.AgentMessageChunk)
            and isinstance(update.update.content, v1.TextContent)
        )

    def notices(self, session_id: str | None = None) -> list[str]:
        """Return the notices of the agent, each with its title and its description."""
        return [
            words_of(update.update)
            for update in self.updates
            if session_id in (None, update.session_id) and isinstance(update.update, v1.Notice)
        ]

    def _take_update(self, notification: v1.SessionNotification) -> None:
        self.updates.append(notification)
        self._news.set()

    async def _take_permission(
        self, params: v1.RequestPermissionRequest, request: IncomingRequest
    ) -> v1.RequestPermissionResponse:
        del request
        self.permissions.append(params)
        self._news.set()
        decision = self._decide(params)
        if decision == "wait":
            await self._cancelled.wait()
            decision = "cancel"
        if decision == "cancel":
            return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())
        position = find_default([option.kind for option in params.options], decision)
        if position is None:
            raise InvalidParams(
                "params.options", f"there is no option to {decision} it with", expected=f"{decision}_once"
            )
        option_id = params.options[position].option_id
        return v1.RequestPermissionResponse(outcome=v1.SelectedPermissionOutcome(option_id=option_id))
