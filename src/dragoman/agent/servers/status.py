"""The states of a session's MCP servers, told to its client whenever one has changed."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.agent.update_sender import UpdateSender
from dragoman.mcp.info import PromptInfo, ServerStatus
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.agent.servers.session_servers import SessionServers

SERVERS_KEY = "dragoman/mcp"
"""Under this key of a `_meta` stands how the MCP servers of a session are."""


class ServerStatusSender:
    """Sends the states of the servers, and the commands when the servers' prompts have changed, once a tick.

    It is quiet until `open`, because the first states are part of the answer that introduces the session.
    """

    def __init__(self, updates: UpdateSender) -> None:
        self._updates = updates
        self._servers: SessionServers | None = None
        self._send_commands: Callable[[], None] | None = None
        self._told: list[ServerStatus] = []
        self._told_prompts: list[tuple[str, PromptInfo]] = []
        self._scheduled = False

    def open(self, servers: "SessionServers", send_commands: Callable[[], None]) -> None:
        """Tell of these servers from now on."""
        self._servers = servers
        self._send_commands = send_commands

    def close(self) -> None:
        """Tell nothing more."""
        self._servers = None

    def meta(self) -> dict[str, Any] | None:
        """Return the states for the `_meta` of an answer, which then counts as told; None without servers."""
        self._told = [] if self._servers is None else self._servers.statuses()
        return {SERVERS_KEY: msgspec.to_builtins(self._told)} if self._told else None

    def changed(self) -> None:
        """Take note that a server has changed."""
        if self._servers is not None and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._servers is None:
            return
        told = self._told
        meta = self.meta()
        if self._told != told:
            self._updates.send_unlogged(v1.SessionInfoUpdate(meta=meta or {SERVERS_KEY: []}))
        prompts = [(member.name, prompt) for member in self._servers.members() for prompt in member.server.prompts]
        if prompts != self._told_prompts and self._send_commands is not None:
            self._told_prompts = prompts
            self._send_commands()
