"""The tools of a session's servers, as offers to the context, under names that every model takes.

A name is `server__tool`, in the alphabet and length of every provider. It is made from the server's and the tool's
name alone, so that it is the same in every turn and after every load. A name that would not be unique, or too long,
ends in some letters of a hash.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence

from dragoman.assistant.context.candidates import ToolOffer
from dragoman.assistant.profile.servers import AgentServer
from dragoman.assistant.servers.host import SessionHost
from dragoman.assistant.servers.session_servers import SessionServer
from dragoman.assistant.tools.server_tool import Rules, ServerTool
from dragoman.mcp.info import ToolInfo

MAX_LENGTH = 64
"""The limit of the strictest provider."""

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]+")
_HASH_LETTERS = 6


def name_tools(tools: Iterable[tuple[str, str]], taken: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """Return a name of its own for each (server, tool), none of which is taken."""
    pairs = list(dict.fromkeys(tools))
    plain = {pair: _plain(*pair) for pair in pairs}
    counted: dict[str, int] = dict.fromkeys(taken, 1)
    for name in plain.values():
        counted[name] = counted.get(name, 0) + 1
    return {
        pair: _marked(name, pair) if counted[name] > 1 or len(name) > MAX_LENGTH else name
        for pair, name in plain.items()
    }


def _plain(server: str, tool: str) -> str:
    # A name has to begin with a letter for some of them.
    name = f"{_clean(server)}__{_clean(tool)}"
    return name if name[0].isalpha() else f"x{name}"


def _marked(name: str, pair: tuple[str, str]) -> str:
    mark = hashlib.sha256("\0".join(pair).encode()).hexdigest()[:_HASH_LETTERS]
    return f"{name[: MAX_LENGTH - _HASH_LETTERS - 1]}_{mark}"


def _clean(text: str) -> str:
    return _FOREIGN.sub("_", text).strip("_") or "x"


class ServerOffers:
    """Makes the offers anew only when a server's tools, or the servers themselves, have changed."""

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
