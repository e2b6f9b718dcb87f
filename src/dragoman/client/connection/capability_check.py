"""Checks before a request is sent: the agent must have advertised the capabilities that the request needs."""

import os
import re
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from dragoman.client.problem import InvalidDirectoryError, MissingCapabilityError
from dragoman.protocol import v1
from dragoman.protocol.methods import Method

StrPath = str | os.PathLike[str]
Prompt = str | Sequence[v1.ContentBlock | str]
"""The content of a prompt: a text, or content blocks."""

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
    """Checks requests against the capabilities of one agent.

    Every check raises MissingCapabilityError. Some also return the checked value in the form that the protocol sends.
    """

    def __init__(self, capabilities: v1.AgentCapabilities, agent: str) -> None:
        self._capabilities = capabilities
        self._agent = agent

    def method(self, method: Method[Any, Any]) -> None:
        """Check that the agent supports a method."""
        if method.capability is not None:
            self._require(method.capability, method.name)

    def has_method(self, method: Method[Any, Any]) -> bool:
        """Return whether the agent advertises a method, or the method needs no capability."""
        return method.capability is None or has(self._capabilities, method.capability)

    def servers(self, servers: Iterable[v1.McpServer]) -> list[v1.McpServer]:
        """Check that the agent supports the transports of these MCP servers."""
        checked = list(servers)
        for server in checked:
            if type(server) in _TRANSPORTS:
                capability, how = _TRANSPORTS[type(server)]
                self._require(capability, f"the MCP server {server.name} {how}")
        return checked

    def directories(self, directories: Iterable[StrPath]) -> list[str]:
        """Check that the agent supports additional directories, and make them absolute."""
        checked = [absolute(directory) for directory in directories]
        if checked:
            self._require(_DIRECTORIES, "a session with additional directories")
        return checked

    def system_prompt(self, system_prompt: str | v1.SystemPrompt | None) -> v1.SystemPrompt | None:
        """Check that the agent supports a system prompt, and its mode."""
        if system_prompt is None:
            return None
        prompt = (
            v1.SystemPrompt(mode="append", content=[v1.TextContent(text=system_prompt)])
            if isinstance(system_prompt, str)
            else system_prompt
        )
        self._require(_SYSTEM_PROMPT, "a session with a system prompt")
        if prompt.mode != "append":
            self._require(f"{_SYSTEM_PROMPT}.mode.{prompt.mode}", f"a system prompt in the mode {prompt.mode}")
        return prompt

    def prompt(self, prompt: Prompt) -> list[v1.ContentBlock]:
        """Check that the agent supports the content blocks of a prompt, and return them."""
        content = [prompt] if isinstance(prompt, str) else prompt
        blocks = [v1.TextContent(text=block) if isinstance(block, str) else block for block in content]
        for block in blocks:
            if type(block) in _BLOCKS:
                self._require(*_BLOCKS[type(block)])
        return blocks

    def _require(self, capability: str, wanted: str) -> None:
        if not has(self._capabilities, capability):
            raise MissingCapabilityError(capability, wanted, self._agent)


def has(capabilities: v1.AgentCapabilities, capability: str) -> bool:
    """Return whether a capability, named by its path in the protocol, was advertised."""
    names = [_snake(name) for name in capability.removeprefix(f"{_ROOT}.").split(".")]
    found = reduce(lambda value, name: getattr(value, name, None), names, capabilities)
    return found is not None and found is not False


def absolute(directory: StrPath) -> str:
    """Return the absolute path of a directory, as the protocol requires.

    A relative path is relative to the current directory of this process, not the agent's. An absolute path is returned
    unchanged. Raises InvalidDirectoryError for an invalid path, and for `~`, because the agent may have another home.
    """
    path = os.fspath(directory)
    if not path or path.startswith("~") or "\0" in path:
        raise InvalidDirectoryError(path)
    return path if Path(path).is_absolute() else os.path.abspath(path)  # noqa: PTH100 -- Path.absolute keeps `..`


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
