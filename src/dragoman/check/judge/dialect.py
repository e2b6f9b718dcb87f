"""The names that differ between the protocol versions, so that one observer can judge both.

The types of version 2 are loaded only when a conversation uses it, because most do not.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from dragoman.check.rule import Version
from dragoman.protocol import methods
from dragoman.protocol.methods import Method

PathTable = Mapping[str, str]
MethodTable = Mapping[str, Method[Any, Any]]


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """A protocol version: its methods, and its names for features of both versions."""

    version: Version
    requests: MethodTable
    notifications: MethodTable
    methods: MethodTable
    client_capabilities: str
    """The field of `initialize` with the client's capabilities."""
    agent_capabilities: str
    method_id: str
    """The field with the id of an auth method."""
    login: str
    logout: str
    option_id: str
    """The field with the id of a config option."""
    baseline: frozenset[str]
    """Methods that every agent has, or in version 2 every agent with sessions."""
    paths: PathTable = {}
    """Paths of agent capabilities that differ from those of version 1."""

    def path(self, capability: str) -> str:
        """Return the path of an agent capability that is named as in version 1."""
        return self.paths.get(capability, capability)

    def find_method(self, kind: str, name: str) -> Method[Any, Any] | None:
        """Return the method of a request or notification, if the version has it."""
        return (self.notifications if kind == "notification" else self.requests).get(name)


_PATHS_OF_V2 = {
    "loadSession": "session",
    "sessionCapabilities.list": "session",
    "sessionCapabilities.resume": "session",
    "sessionCapabilities.close": "session",
    "sessionCapabilities.delete": "session.delete",
    "sessionCapabilities.additionalDirectories": "session.additionalDirectories",
    "promptCapabilities.image": "session.prompt.image",
    "promptCapabilities.audio": "session.prompt.audio",
    "promptCapabilities.embeddedContext": "session.prompt.embeddedContext",
    "mcpCapabilities.stdio": "session.mcp.stdio",
    "mcpCapabilities.http": "session.mcp.http",
}


@cache
def dialect_of(version: Version) -> Dialect:
    """Return the dialect of a version."""
    if version == 1:
        return Dialect(
            version=1,
            requests=methods.REQUESTS,
            notifications=methods.NOTIFICATIONS,
            methods=methods.METHODS,
            client_capabilities="clientCapabilities",
            agent_capabilities="agentCapabilities",
            method_id="id",
            login="authenticate",
            logout="logout",
            option_id="id",
            baseline=frozenset({"session/new", "session/prompt"}),
        )
    from dragoman.protocol import methods_v2

    return Dialect(
        version=2,
        requests=methods_v2.REQUESTS,
        notifications=methods_v2.NOTIFICATIONS,
        methods=methods_v2.METHODS,
        client_capabilities="capabilities",
        agent_capabilities="capabilities",
        method_id="methodId",
        login="auth/login",
        logout="auth/logout",
        option_id="configId",
        baseline=frozenset({"session/new", "session/list", "session/resume", "session/close", "session/prompt"}),
        paths=_PATHS_OF_V2,
    )
