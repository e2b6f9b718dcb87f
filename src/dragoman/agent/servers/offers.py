"""The tools of a session's servers, as offers to the context."""

from collections.abc import Iterable, Sequence

from dragoman.agent.context.offer import ToolOffer
from dragoman.agent.profile.servers import AgentServer
from dragoman.agent.servers.host import SessionHost
from dragoman.agent.servers.names import name_tools
from dragoman.agent.servers.session_servers import SessionServer
from dragoman.agent.tools.server_tool import Rules, ServerTool
from dragoman.mcp.info import ToolInfo


class ServerOffers:
    """Makes the offers anew only when a server's tools, or the servers themselves, are other ones."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._made_of: list[object] = []
        self._timeout_s: float | None = None
        self._offers: list[ToolOffer] = []

    def all(
        self, members: Sequence[SessionServer], taken: Iterable[str], timeout_s: float | None
    ) -> Sequence[ToolOffer]:
        """Return an offer for every tool; the names in `taken` belong to others."""
        # By identity, without looking into lists of thousands of tools: they are replaced and never changed.
        made_of: list[object] = [part for member in members for part in (member, member.server.tools)]
        if timeout_s != self._timeout_s or [*map(id, made_of)] != [*map(id, self._made_of)]:
            self._made_of, self._timeout_s = made_of, timeout_s
            self._offers = self._make(members, taken, timeout_s)
        return self._offers

    def _make(self, members: Sequence[SessionServer], taken: Iterable[str], timeout_s: float | None) -> list[ToolOffer]:
        pairs = [(member, tool) for member in members for tool in member.server.tools]
        names = name_tools(((member.name, tool.name) for member, tool in pairs), taken)
        return [self._offer(member, tool, names[member.name, tool.name], timeout_s) for member, tool in pairs]

    def _offer(self, member: SessionServer, tool: ToolInfo, name: str, timeout_s: float | None) -> ToolOffer:
        origin = member.origin
        rules = Rules(timeout_s=timeout_s)
        if isinstance(origin, AgentServer):
            rules = Rules(origin.permission_of(tool.name), origin.trust, timeout_s)
        return ToolOffer(
            key=f"{member.name}/{tool.name}",
            tool=ServerTool(member.server, tool, name, self._host, rules),
            origin="agent" if member.is_agents else "session",
            include=member.include(tool.name),
            server=member.name,
            title=tool.title,
            description=tool.description,
        )
