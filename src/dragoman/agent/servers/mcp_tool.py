"""The tools of a session's MCP servers, as programs and models use them.

A model sees the name `server__tool`, in the alphabet and length that every provider accepts. The name depends only on
the server's and the tool's name, so it is the same in every turn and after every load. A name that is too long or not
unique ends in a short hash.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.agent.servers.client_requests import Include
from dragoman.agent.servers.host import SessionHost, answering
from dragoman.agent.servers.session_servers import ClientServer, SessionServer, Verdict
from dragoman.agent.turns.prepared_call import Action, PreparedCall, ShowProgress, ToolError, ToolOutcome, code
from dragoman.errors import McpServerError
from dragoman.mcp.definition import identity
from dragoman.mcp.info import CallResult, ToolInfo
from dragoman.protocol import v1
from dragoman.text import one_line, visible

if TYPE_CHECKING:
    from dragoman.mcp.server import ServerConnection

MAX_MODEL_CHARACTERS = 200_000
"""The characters of a result that the model receives, so that its context does not fill up. The log has all of it."""

MAX_TITLE = 100
"""The characters of a tool's name and of its title that the user sees."""

MAX_PROGRESS = 500
"""The characters of a progress message."""

MANY_STEPS = 100
"""Progress steps that are all shown. After that, one per `STEP_PAUSE_S` is shown, because each is logged and sent."""

STEP_PAUSE_S = 0.1

MAX_DESCRIPTION = 8_000
"""The characters of a tool's description, which is part of every model request."""


class ToolRules(msgspec.Struct, frozen=True):
    """The agent's settings for a tool."""

    permission: Verdict | None = None
    trusted: bool = False
    """Whether to believe the server that a tool is read-only."""
    timeout_s: float | None = None

    @property
    def trusts_reads(self) -> bool:
        """Whether a tool that is marked as read-only runs without asking. The agent's ask or deny takes precedence."""
        return self.trusted and self.permission in (None, "allow")


class McpTool:
    """A tool of one of the session's MCP servers: the client's or the agent's own."""

    def __init__(
        self,
        server: "ServerConnection",
        info: ToolInfo,
        name: str,
        host: SessionHost,
        rules: ToolRules,
        *,
        is_agents: bool = False,
        include: Include = "always",
    ) -> None:
        self._server = server
        self._host = host
        self._rules = rules
        self.info = info
        """The tool as the server describes it."""
        self.name = name
        """The name for models: unique in the session, in the alphabet of every provider."""
        self.title = _title(server.name, info)
        """The title for users: the server's name and the tool's name."""
        self.is_agents = is_agents
        """Whether the tool belongs to one of the agent's own servers."""
        self.include: Include = include
        # Some clients allow a `read` without asking, so the kind must be true.
        self.kind: v1.ToolKind = "read" if info.reads_only and rules.trusted else "other"

    @property
    def server(self) -> str:
        """The name of the server."""
        return self._server.name

    @property
    def description(self) -> str:
        """The description for models."""
        return _describe(self.info)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return _parameters(self.info)

    def __repr__(self) -> str:
        return f"McpTool({self.name!r} of {self.server!r})"

    async def call(self, arguments: dict[str, Any]) -> ToolOutcome:
        """Call the tool without showing the call or asking. Raises ToolError. `Turn.call_tool` does both."""
        return await self._run(arguments, _show_nothing)

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare a call that shows the server, the tool and its arguments. Only the server knows its effect."""
        info = self.info
        return PreparedCall(
            title=self.title,
            kind=self.kind,
            run=lambda progress: self._run(arguments, progress),
            reads_only=info.reads_only and self._rules.trusts_reads,
            action=Action("tool", info.name, f"{identity(self._server.definition)} {_digest(info)}"),
            verdict=self._rules.permission,
            content=[code(visible(_show(arguments), lines=True))] if arguments else (),
        )

    async def _run(self, arguments: dict[str, Any], show: ShowProgress) -> ToolOutcome:
        steps, last = 0, 0.0

        async def show_step(progress: float, total: float | None, message: str | None) -> None:
            nonlocal steps, last
            steps, now = steps + 1, asyncio.get_running_loop().time()
            if steps <= MANY_STEPS or now - last >= STEP_PAUSE_S:
                last = now
                await show([v1.Content(content=v1.TextContent(text=_progress(progress, total, message)))])

        limit_s = self._rules.timeout_s
        try:
            async with asyncio.timeout(limit_s) as limit, answering(self._host, limit) as host:
                result = await self._server.call(self.info.name, arguments, progress=show_step, host=host)
        except TimeoutError:
            raise ToolError(
                f"{self._server.name} did not answer within {limit_s:g} s; the call was cancelled"
            ) from None
        except McpServerError as failure:
            raise ToolError(str(failure)) from None
        return outcome(result, self.server if self._server.has_resources else "")


async def _show_nothing(_content: Sequence[v1.ToolCallContent]) -> None:
    return


class McpToolList:
    """The tools of a session's servers. The list is rebuilt only when the servers or their tools have changed."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._made_of: list[object] = []
        self._made_for: tuple[Sequence[str], float | None] = ((), None)
        self._tools: Sequence[McpTool] = ()

    def all(self, members: Sequence[SessionServer], taken: Iterable[str], timeout_s: float | None) -> Sequence[McpTool]:
        """Return every tool. The names in `taken` are already in use."""
        # Compare by identity, which is fast for lists of thousands of tools. Lists are replaced and never changed.
        made_of: list[object] = [part for member in members for part in (member, member.server.tools)]
        made_for = (list(taken), timeout_s)
        if made_for != self._made_for or [*map(id, made_of)] != [*map(id, self._made_of)]:
            self._made_of, self._made_for = made_of, made_for
            self._tools = self._build(members, *made_for)
        return self._tools

    def _build(
        self, members: Sequence[SessionServer], taken: Iterable[str], timeout_s: float | None
    ) -> Sequence[McpTool]:
        pairs = [(member, tool) for member in members for tool in member.server.tools]
        names = name_tools(((member.name, tool.name) for member, tool in pairs), taken)
        return [self._tool(member, tool, names[member.name, tool.name], timeout_s) for member, tool in pairs]

    def _tool(self, member: SessionServer, info: ToolInfo, name: str, timeout_s: float | None) -> McpTool:
        origin = member.origin
        rules = ToolRules(timeout_s=timeout_s)
        if not isinstance(origin, ClientServer):
            rules = ToolRules(origin.permission_of(info.name), origin.trust, timeout_s)
        include = member.include(info.name)
        return McpTool(member.server, info, name, self._host, rules, is_agents=member.is_agents, include=include)


def outcome(result: CallResult, server: str = "") -> ToolOutcome:
    """Convert a result. The client receives everything, and the model receives text and attachments.

    If the `server` has resources, its name is added to links, so that a model knows where to read them.
    """
    text = "\n".join(_list_texts(result.content, server))
    if result.structured is not None and not text:
        text = msgspec.json.encode(result.structured).decode()
    if len(text) > MAX_MODEL_CHARACTERS:
        text = f"{text[:MAX_MODEL_CHARACTERS]}\n[… {len(text) - MAX_MODEL_CHARACTERS:,} more characters were cut]"
    return ToolOutcome(
        text or "[no output]",
        content=[v1.Content(content=block) for block in result.content],
        raw_output=result.structured,
        failed=result.failed,
        attachments=[block for block in result.content if not isinstance(block, v1.TextContent)],
    )


def _list_texts(blocks: Sequence[v1.ContentBlock], server: str) -> list[str]:
    texts: list[str] = []
    for block in blocks:
        match block:
            case v1.TextContent(text=text):
                texts.append(text)
            case v1.ImageContent(mime_type=kind) | v1.AudioContent(mime_type=kind):
                texts.append(f"[{kind}]")
            case v1.ResourceLink():
                of_server = f" (a resource of {server})" if server else ""
                texts.append(f"[{block.title or block.name}]({block.uri}){of_server}")
            case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
                texts.append(f'<resource uri="{uri}">\n{text}\n</resource>')
            case v1.EmbeddedResource(resource=resource):
                texts.append(f"[{resource.uri}]")
            case _:
                texts.append("[content of an unknown type]")
    return texts


def _title(server: str, info: ToolInfo) -> str:
    """Return the server's and the tool's name, followed by the title that the server chose."""
    title = f"{server}: {one_line(info.name, MAX_TITLE)}"
    return f"{title} ({one_line(info.title, MAX_TITLE)})" if info.title and info.title != info.name else title


def _show(arguments: dict[str, Any]) -> str:
    """Format the arguments of the call, because not every client shows its raw input."""
    return msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()


def _digest(info: ToolInfo) -> str:
    """Return a hash of the server's description of a tool. A permanent approval ends when any of it changes."""
    return hashlib.sha256(msgspec.json.encode(info, order="deterministic")).hexdigest()


def _describe(info: ToolInfo) -> str:
    return (info.description.strip() or info.title or re.sub(r"[_-]+", " ", info.name))[:MAX_DESCRIPTION]


def _parameters(info: ToolInfo) -> dict[str, Any]:
    return info.parameters if info.parameters.get("type") == "object" else {**info.parameters, "type": "object"}


def _progress(done: float, total: float | None, message: str | None) -> str:
    amount = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{amount}: {one_line(message, MAX_PROGRESS)}" if message else amount


MAX_LENGTH = 64
"""The length limit of the strictest provider."""

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]+")
_HASH_LETTERS = 6


def name_tools(tools: Iterable[tuple[str, str]], taken: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """Return a unique name for each (server, tool) that is not in `taken`."""
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
    # Some providers require that a name begins with a letter.
    name = f"{_clean(server)}__{_clean(tool)}"
    return name if name[0].isalpha() else f"x{name}"


def _marked(name: str, pair: tuple[str, str]) -> str:
    mark = hashlib.sha256("\0".join(pair).encode()).hexdigest()[:_HASH_LETTERS]
    return f"{name[: MAX_LENGTH - _HASH_LETTERS - 1]}_{mark}"


def _clean(text: str) -> str:
    return _FOREIGN.sub("_", text).strip("_") or "x"
