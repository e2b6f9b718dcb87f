"""The resources of a session's MCP servers: listed, completed, read, and then watched for changes."""

import re
from collections import OrderedDict
from collections.abc import Sequence

from dragoman.agent.servers.session_servers import SessionServers
from dragoman.errors import McpServerError
from dragoman.mcp.info import ResourceInfo, ResourceTemplate
from dragoman.mcp.server import ServerConnection
from dragoman.protocol import v1
from dragoman.text.match import closest

READ_TIMEOUT_S = 60.0
"""How long a server may take for a list, a completion or a resource."""

MAX_COMPLETIONS = 100
"""The most addresses per completion, the same as in one response of a server."""

MAX_READ = 200
"""The resources that are watched for changes. The least recently read one is dropped first."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_PLAIN_VARIABLE = re.compile(r"[+#]?(\w[\w.]*)")


class SessionResources:
    """The resources of one session's servers. All methods that call a server raise McpServerError."""

    def __init__(self, servers: SessionServers) -> None:
        self._servers = servers
        self._read: OrderedDict[tuple[str, str], int] = OrderedDict()

    def servers(self) -> list[str]:
        """Return the names of the servers that have resources."""
        return [member.name for member in self._servers.members() if member.server.has_resources]

    async def list(self, server: str) -> Sequence[ResourceInfo]:
        """List the resources of a server."""
        return await self._find(server).resources(timeout_s=READ_TIMEOUT_S)

    async def templates(self, server: str) -> Sequence[ResourceTemplate]:
        """List the templates of the resources of a server."""
        return await self._find(server).templates(timeout_s=READ_TIMEOUT_S)

    async def complete(self, server: str, beginning: str) -> Sequence[str]:
        """Return the addresses that begin with a text: listed ones, and completions of templates by the server.

        If nothing of a template was typed yet, the template itself is returned.
        """
        found = [each.uri for each in await self.list(server) if each.uri.startswith(beginning)]
        for template in await self.templates(server):
            found += await _complete_template(self._find(server), template.uri_template, beginning)
        return list(dict.fromkeys(found))[:MAX_COMPLETIONS]

    async def read(self, server: str, uri: str) -> Sequence[v1.EmbeddedResource]:
        """Read a resource by its address or its listed name, and watch it for changes."""
        connection = self._find(server)
        uri = await self._resolve(connection, uri)
        parts = await connection.read(uri, timeout_s=READ_TIMEOUT_S)
        connection.watch(uri)
        self._read[server, uri] = connection.changes(uri)
        self._read.move_to_end((server, uri))
        while len(self._read) > MAX_READ:
            self._read.popitem(last=False)
        return parts

    def is_offered(self, server: str, uri: str) -> bool:
        """Return whether a server has listed or linked a resource."""
        return self._find(server).is_offered(uri)

    def pop_changed(self) -> Sequence[tuple[str, str]]:
        """Return server and address of each resource that may have changed since the last read or report."""
        there = {member.name: member.server for member in self._servers.members()}
        changed = [
            (name, uri)
            for (name, uri), seen in self._read.items()
            if name in there and there[name].changes(uri) != seen
        ]
        for name, uri in changed:
            self._read[name, uri] = there[name].changes(uri)
        return changed

    def _find(self, server: str) -> ServerConnection:
        connection = self._servers.find(server).server
        if connection.state == "ready" and not connection.has_resources:
            others = ", ".join(self.servers()) or "none"
            raise McpServerError(f"the MCP server {server} has no resources; servers with resources: {others}")
        return connection

    async def _resolve(self, server: ServerConnection, what: str) -> str:
        """Return the address of a resource that is given by its address or its name."""
        # An offered address or a URL is used as it is. Anything else may be a name, which must be unique.
        if server.is_offered(what) or "://" in what:
            return what
        listed = await server.resources(timeout_s=READ_TIMEOUT_S)
        if any(each.uri == what for each in listed):
            return what
        named = [each.uri for each in listed if what in (each.name, each.title)]
        if len(named) == 1:
            return named[0]
        if named:
            raise McpServerError(
                f"several resources of {server.name} have the name {what!r:.100}; use the address of one"
            )
        if ":" in what:
            return what
        near = closest(what, [each.name for each in listed])
        hint = f"; did you mean {near!r:.100}?" if near else ""
        raise McpServerError(f"{server.name} has no resource {what!r:.100}; expected an address or a listed name{hint}")


async def _complete_template(server: ServerConnection, template: str, beginning: str) -> list[str]:
    """Return the addresses that match a template and begin with a text.

    The text is matched against the template. Literal parts must match, a variable takes the text up to the next literal
    part, and the server completes the variable in which the text ends.
    """
    known: dict[str, str] = {}
    done, rest = "", beginning
    parts = _VARIABLE.split(template)
    for literal, expression, following in zip(parts[::2], [*parts[1::2], ""], [*parts[2::2], ""], strict=True):
        if not rest.startswith(literal):
            return [template] if literal.startswith(rest) and not known else []
        done, rest = done + literal, rest[len(literal) :]
        variable = _PLAIN_VARIABLE.fullmatch(expression)
        if variable is None:  # the end, or an expression whose value cannot be recognised in the text
            return [] if rest or not known else [done]
        value, found, later = rest.partition(following) if following else (rest, "", "")
        if not found:
            reference = {"type": "ref/resource", "uri": template}
            values = await server.complete(reference, variable[1], rest, known=known, timeout_s=READ_TIMEOUT_S)
            return [f"{done}{each}{following}" for each in values] or ([template] if not rest and not known else [])
        known[variable[1]] = value
        done, rest = done + value, following + later
    return []
