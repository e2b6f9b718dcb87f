"""Checks before a request is sent: the protocol has to allow it, and the agent to have the capability."""

import os
import re
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from dragoman.client.problem import BadDirectory, MissingCapability
from dragoman.protocol import v1
from dragoman.protocol.methods import Method

StrPath = str | os.PathLike[str]
Prompt = str | Sequence[v1.ContentBlock | str]
"""What can be said to an agent: a text, or blocks of content."""

_ROOT = "agentCapabilities"
_PROMPT = f"{_ROOT}.promptCapabilities"
_SERVERS = f"{_ROOT}.mcpCapabilities"
_DIRECTORIES = f"{_ROOT}.sessionCapabilities.additionalDirectories"
_SYSTEM_PROMPT = f"{_ROOT}.sessionCapabilities.systemPrompt"
_BLOCKS: dict[type, tuple[str, str]] = {
    v1.ImageContent: (f"{_PROMPT}.image", "an image in a prompt"),
    v1.AudioContent: (f"{_PROMPT}.audio", "audio in a prompt"),
    v1.EmbeddedResource: (f"{_PROMPT}.embeddedContext", "an embedded resource in a prompt"),
}
_TRANSPORTS: dict[type, tuple[str, str]] = {
    v1.McpServerHttp: (f"{_SERVERS}.http", "over HTTP"),
    v1.McpServerSse: (f"{_SERVERS}.sse", "over SSE"),
    v1.McpServerAcp: (f"{_SERVERS}.acp", "over ACP"),
}


class CapabilityCheck:
    """Checks requests by the capabilities of one agent."""

    def __init__(self, capabilities: v1.AgentCapabilities, agent: str) -> None:
        self._capabilities = capabilities
        self._agent = agent

    def method(self, method: Method[Any, Any]) -> None:
        """Refuse a method that the agent does not have."""
        if method.capability is not None:
            self._require(method.capability, method.name)

    def has_method(self, method: Method[Any, Any]) -> bool:
        """Tell whether the agent has a method, as far as it said."""
        return method.capability is None or has(self._capabilities, method.capability)

    def servers(self, servers: Iterable[v1.McpServer]) -> list[v1.McpServer]:
        """Refuse MCP servers that the agent cannot reach."""
        checked = list(servers)
        for server in checked:
            if type(server) in _TRANSPORTS:
                capability, how = _TRANSPORTS[type(server)]
                self._require(capability, f"the MCP server {server.name} {how}")
        return checked

    def directories(self, directories: Iterable[StrPath]) -> list[str]:
        """Refuse further directories where the agent takes none."""
        checked = [absolute(directory) for directory in directories]
        if checked:
            self._require(_DIRECTORIES, "a session with additional directories")
        return checked

    def system_prompt(self, given: str | v1.SystemPrompt | None) -> v1.SystemPrompt | None:
        """Refuse instructions for the model where the agent takes none, or not in this mode."""
        if given is None:
            return None
        wanted = (
            v1.SystemPrompt(mode="append", content=[v1.TextContent(text=given)]) if isinstance(given, str) else given
        )
        self._require(_SYSTEM_PROMPT, "a session with a system prompt")
        if wanted.mode != "append":
            self._require(f"{_SYSTEM_PROMPT}.mode.{wanted.mode}", f"a system prompt in the mode {wanted.mode}")
        return wanted

    def prompt(self, prompt: Prompt) -> list[v1.ContentBlock]:
        """Refuse blocks that the agent cannot read."""
        given = [prompt] if isinstance(prompt, str) else prompt
        blocks = [v1.TextContent(text=block) if isinstance(block, str) else block for block in given]
        for block in blocks:
            if type(block) in _BLOCKS:
                self._require(*_BLOCKS[type(block)])
        return blocks

    def _require(self, capability: str, wanted: str) -> None:
        if not has(self._capabilities, capability):
            raise MissingCapability(capability, wanted, self._agent)


def has(capabilities: v1.AgentCapabilities, capability: str) -> bool:
    """Tell whether a capability was advertised, by its path in the protocol."""
    names = [_snake(name) for name in capability.removeprefix(f"{_ROOT}.").split(".")]
    found = reduce(lambda value, name: getattr(value, name, None), names, capabilities)
    return found is not None and found is not False


def absolute(directory: StrPath) -> str:
    """Return a directory as the protocol wants it: absolute.

    A relative one is taken from the current directory of this process, as `open` takes it, whatever the directory of
    the agent; an absolute one stays as it is. Raises BadDirectory for `~`, because the home of the agent may be another
    than ours, and for a text that is no path.
    """
    path = os.fspath(directory)
    if not path or path.startswith("~") or "\0" in path:
        raise BadDirectory(path)
    return path if Path(path).is_absolute() else os.path.abspath(path)  # noqa: PTH100 -- Path.absolute keeps `..`


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
