"""A tool of an MCP server, as the turn uses it."""

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.servers.host import SessionHost, answering
from dragoman.assistant.tools.tool import Action, PreparedCall, ShowProgress, ToolFailure, ToolOutcome, code
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


class Rules(msgspec.Struct, frozen=True):
    """The agent file's settings for a tool."""

    permission: Literal["ask", "allow", "deny"] | None = None
    trusted: bool = False
    """Whether the server's word that the tool only reads is believed."""
    timeout_s: float | None = None

    @property
    def let_it_read(self) -> bool:
        """Whether it runs unasked when it says that it only reads, unless the agent file says ask or deny."""
        return self.trusted and self.permission in (None, "allow")


class ServerTool:
    """Calls a tool of a server, and shows and passes on all that comes back."""

    def __init__(self, server: "ServerConnection", info: ToolInfo, name: str, host: SessionHost, rules: Rules) -> None:
        self._server = server
        self._info = info
        self._host = host
        self._rules = rules
        self.title = _title(server.name, info)
        self.definition = ToolDefinition(name, _describe(info), _parameters(info), self.title)
        # Some clients let a `read` pass unasked, so it has to be true.
        self.kind: v1.ToolKind = "read" if info.reads_only and rules.trusted else "other"

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Show the server, the tool and its arguments; only the server knows what the call would do."""
        info = self._info
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
                result = await self._server.call(self._info.name, arguments, progress=tell, host=host)
        except TimeoutError:
            raise ToolFailure(
                f"{self._server.name} did not answer within {limit_s:g} s; the call was cancelled"
            ) from None
        except ServerFailure as failure:
            raise ToolFailure(str(failure)) from None
        return outcome(result)


def outcome(result: CallResult) -> ToolOutcome:
    """Return a result for the model and the client: everything to the client, to the model the kinds that it takes."""
    text = "\n".join(_words(result.content))
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


def _words(blocks: Sequence[v1.ContentBlock]) -> list[str]:
    words: list[str] = []
    for block in blocks:
        match block:
            case v1.TextContent(text=text):
                words.append(text)
            case v1.ImageContent(mime_type=kind) | v1.AudioContent(mime_type=kind):
                words.append(f"[{kind}]")
            case v1.ResourceLink():
                words.append(f"[{block.title or block.name}]({block.uri})")
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
