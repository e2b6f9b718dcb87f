"""The tools of a session's MCP servers, as programs and models use them.

The name for a model is `server__tool`, in the alphabet and length of every provider. It is made from the server's and
the tool's name alone, so that it is the same in every turn and after every load. A name that would not be unique, or
too long, ends in some letters of a hash.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.agent.prepared_call import Action, PreparedCall, ShowProgress, ToolFailure, ToolOutcome, code
from dragoman.agent.servers.client_requests import Include
from dragoman.agent.servers.host import SessionHost, answering
from dragoman.agent.servers.session_servers import ClientServer, SessionServer, Verdict
from dragoman.errors import ServerFailure
from dragoman.mcp.definition import identity
from dragoman.mcp.info import CallResult, ToolInfo
from dragoman.protocol import v1
from dragoman.text import one_line, visible

if TYPE_CHECKING:
    from dragoman.mcp.server import ServerConnection

MAX_MODEL_CHARACTERS = 200_000
"""Of a result that the model is given: more would fill its context; the client and the log have all of it."""

MAX_TITLE = 100
"""Letters of a tool's name, and of its title, that a person is shown."""

MAX_PROGRESS = 500
"""Letters of a message about progress."""

MANY_STEPS = 100
"""Steps of progress that are all shown; of more, one in `STEP_PAUSE_S`: each is logged and sent."""

STEP_PAUSE_S = 0.1

MAX_DESCRIPTION = 8_000
"""Of a tool: it is part of every request."""


class ToolRules(msgspec.Struct, frozen=True):
    """The agent's settings for a tool."""

    permission: Verdict | None = None
    trusted: bool = False
    """Whether the server's word that the tool only reads is believed."""
    timeout_s: float | None = None

    @property
    def let_it_read(self) -> bool:
        """Whether it runs unasked when it says that it only reads, unless the agent says ask or deny."""
        return self.trusted and self.permission in (None, "allow")


class McpTool:
    """A tool of an MCP server of the session: the client's, or the agent's own."""

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
        """Its name for models: unique in the session, in the alphabet of every provider."""
        self.title = _title(server.name, info)
        """Its title for people: the server's name and the tool's."""
        self.is_agents = is_agents
        """Whether it is of the agent's own servers, and not of the client's."""
        self.include: Include = include
        # Some clients let a `read` pass unasked, so it has to be true.
        self.kind: v1.ToolKind = "read" if info.reads_only and rules.trusted else "other"

    @property
    def server(self) -> str:
        """The name of its server."""
        return self._server.name

    @property
    def description(self) -> str:
        """Its description for models."""
        return _describe(self.info)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return _parameters(self.info)

    def __repr__(self) -> str:
        return f"McpTool({self.name!r} of {self.server!r})"

    async def call(self, arguments: dict[str, Any]) -> ToolOutcome:
        """Call it, unannounced and unasked; raises ToolFailure. `Turn.call_tool` announces it and asks first."""
        return await self._run(arguments, _show_nothing)

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Show the server, the tool and its arguments; only the server knows what the call would do."""
        info = self.info
        return PreparedCall(
            title=self.title,
            kind=self.kind,
            run=lambda progress: self._run(arguments, progress),
            reads_only=info.reads_only and self._rules.let_it_read,
            action=Action("tool", info.name, identity(self._server.definition)),
            verdict=self._rules.permission,
            content=[code(visible(_show(arguments), lines=True))] if arguments else (),
        )

    async def _run(self, arguments: dict[str, Any], show: ShowProgress) -> ToolOutcome:
        steps, last = 0, 0.0

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            nonlocal steps, last
            steps, now = steps + 1, asyncio.get_running_loop().time()
            if steps <= MANY_STEPS or now - last >= STEP_PAUSE_S:
                last = now
                await show([v1.Content(content=v1.TextContent(text=_progress(progress, total, message)))])

        limit_s = self._rules.timeout_s
        try:
            async with asyncio.timeout(limit_s) as limit, answering(self._host, limit) as host:
                result = await self._server.call(self.info.name, arguments, progress=tell, host=host)
        except TimeoutError:
            raise ToolFailure(
                f"{self._server.name} did not answer within {limit_s:g} s; the call was cancelled"
            ) from None
        except ServerFailure as failure:
            raise ToolFailure(str(failure)) from None
        return outcome(result, self.server if self._server.has_resources else "")


async def _show_nothing(content: Sequence[v1.ToolCallContent]) -> None:
    del content


class McpToolList:
    """The tools of a session's servers, made anew only when a server's tools, or the servers themselves, changed."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._made_of: list[object] = []
        self._made_for: tuple[Sequence[str], float | None] = ((), None)
        self._tools: Sequence[McpTool] = ()

    def all(self, members: Sequence[SessionServer], taken: Iterable[str], timeout_s: float | None) -> Sequence[McpTool]:
        """Return every tool; the names in `taken` belong to others."""
        # By identity, without looking into lists of thousands of tools: they are replaced and never changed.
        made_of: list[object] = [part for member in members for part in (member, member.server.tools)]
        made_for = (list(taken), timeout_s)
        if made_for != self._made_for or [*map(id, made_of)] != [*map(id, self._made_of)]:
            self._made_of, self._made_for = made_of, made_for
            self._tools = self._make(members, *made_for)
        return self._tools

    def _make(
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
    """Return a result for the model and the client: everything to the client, to the model the kinds that it takes.

    The `server` is named beside its links where it has resources, so that a model knows where to read them.
    """
    text = "\n".join(_words(result.content, server))
    if result.structured is not None and not text:
        text = msgspec.json.encode(result.structured).decode()
    if len(text) > MAX_MODEL_CHARACTERS:
        text = f"{text[:MAX_MODEL_CHARACTERS]}\n[… {len(text) - MAX_MODEL_CHARACTERS:,} characters more were cut]"
    return ToolOutcome(
        text or "[no output]",
        content=[v1.Content(content=block) for block in result.content],
        raw_output=result.structured,
        failed=result.failed,
        attachments=[block for block in result.content if not isinstance(block, v1.TextContent)],
    )


def _words(blocks: Sequence[v1.ContentBlock], server: str) -> list[str]:
    words: list[str] = []
    for block in blocks:
        match block:
            case v1.TextContent(text=text):
                words.append(text)
            case v1.ImageContent(mime_type=kind) | v1.AudioContent(mime_type=kind):
                words.append(f"[{kind}]")
            case v1.ResourceLink():
                of_server = f" (a resource of {server})" if server else ""
                words.append(f"[{block.title or block.name}]({block.uri}){of_server}")
            case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
                words.append(f'<resource uri="{uri}">\n{text}\n</resource>')
            case v1.EmbeddedResource(resource=resource):
                words.append(f"[{resource.uri}]")
            case _:
                words.append("[something of an unknown kind]")
    return words


def _title(server: str, info: ToolInfo) -> str:
    """Name the server and the tool, whatever title the server gives the tool."""
    title = f"{server}: {one_line(info.name, MAX_TITLE)}"
    return f"{title} ({one_line(info.title, MAX_TITLE)})" if info.title and info.title != info.name else title


def _show(arguments: dict[str, Any]) -> str:
    """Write down the arguments of the call: not every client shows the raw input of a call."""
    return msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()


def _describe(info: ToolInfo) -> str:
    return (info.description.strip() or info.title or re.sub(r"[_-]+", " ", info.name))[:MAX_DESCRIPTION]


def _parameters(info: ToolInfo) -> dict[str, Any]:
    return info.parameters if info.parameters.get("type") == "object" else {**info.parameters, "type": "object"}


def _progress(done: float, total: float | None, message: str | None) -> str:
    amount = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{amount}: {one_line(message, MAX_PROGRESS)}" if message else amount


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
