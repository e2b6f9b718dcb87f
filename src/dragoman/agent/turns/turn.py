"""A turn, as the program's function sees it: the prompt, and everything that can be sent and done until its end."""

import asyncio
import shlex
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, overload

import msgspec

from dragoman.agent.turns.model_request import ModelRequest, TurnTokens
from dragoman.agent.turns.prepared_call import TargetChangedError, ToolError, ToolOutcome
from dragoman.agent.turns.unawaited import must_await
from dragoman.agent.turns.usage import TokenUsage
from dragoman.errors import ConnectionClosedError, DragomanError, InvalidResultError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_CREATE
from dragoman.protocol.unions import decode_hook
from dragoman.sandbox import SANDBOX_MODES, SandboxMode

if TYPE_CHECKING:
    from dragoman.agent.servers.mcp_tool import McpTool
    from dragoman.agent.sessions.session import Session
    from dragoman.agent.turns.compaction import Compaction
    from dragoman.agent.turns.prepared_call import PreparedCall
    from dragoman.agent.turns.subagent import Subagent
    from dragoman.agent.turns.tool_call import Prepare, ToolCallHandle, ToolLocation
    from dragoman.agent.workspace.shell import CommandResult
    from dragoman.mcp.info import PromptText

COMMAND_TIMEOUT_S = 600.0
"""Long enough for most builds and test runs. It ends commands that wait for input."""

YIELD_INTERVAL_S = 0.02
"""How long a function that never waits may block the event loop before `flow` yields to it."""

D = TypeVar("D")

_PLAN_STATUSES = get_args(v1.PlanEntryStatus)

_RAISE: Any = object()
"""The default of `read_text`, which means none."""

_AS_SHOWN: Any = object()
"""The default of `write_text`, which means the text that an open call has shown, if any."""


class TurnEndedError(DragomanError):
    """The turn has ended, so nothing more can be sent or done in it."""


class Turn:
    """One prompt that is being answered. After `session/cancel`, every call raises `asyncio.CancelledError`."""

    def __init__(self, session: "Session", prompt: Sequence[v1.ContentBlock]) -> None:
        from dragoman.agent.turns.tool_call import (
            OpenToolCalls,  # not at the top, because every program imports this module at its start
        )

        self.session = session
        """The session of the prompt."""
        self.prompt = list(prompt)
        """The content blocks of the prompt."""
        self.command: str | None = None
        """The name of the prompt's slash command, if it is one."""
        self.arguments = ""
        """The text after the name of a slash command."""
        self.mcp_prompt: list[PromptText] | None = None
        """The messages of an MCP server's prompt that the user chose by its slash command."""
        self.is_cancelled = False
        """Whether the turn was cancelled."""
        self.calls = OpenToolCalls(self._check)
        """The tool calls that have not ended."""
        self.unawaited = session.unawaited
        self._updates = session.updates
        self._open_message: tuple[str, str] = ("", "")
        self._tokens = TurnTokens()
        self._is_over = False
        self._yield_at = 0.0

    def __repr__(self) -> str:
        return f"Turn({self.text[:40]!r} in {self.session!r})"

    @property
    def text(self) -> str:
        """The user's text, without attachments and without the elements that some editors add."""
        from dragoman.agent.turns.prompt_words import unwrap

        return "\n".join(block.text for block in unwrap(self.prompt) if isinstance(block, v1.TextContent))

    @property
    def spent(self) -> TokenUsage:
        """The tokens of this turn so far."""
        return self._tokens.spent

    # ── messages ────────────────────────────────────────────────────────────────────────────────

    @must_await
    async def say(self, content: str | v1.ContentBlock) -> None:
        """Send a piece of the answer: text as Markdown, or any content block."""
        block = _as_block(content)
        if block is not None and self.put(v1.AgentMessageChunk(content=block, message_id=self._message_id("agent"))):
            await self.flow()

    @must_await
    async def think(self, content: str | v1.ContentBlock) -> None:
        """Send a piece of the reasoning, which clients show separately from the answer."""
        block = _as_block(content)
        if block is not None and self.put(v1.AgentThoughtChunk(content=block, message_id=self._message_id("thought"))):
            await self.flow()

    def new_message(self) -> None:
        """Begin a new message with the next piece. A tool call does this as well."""
        self._open_message = ("", "")

    @must_await
    async def plan(self, entries: Sequence[str | tuple[str, v1.PlanEntryStatus] | v1.PlanEntry]) -> None:
        """Show the plan, in place of the previous one. A step is text, or text and its status."""
        await self.send(v1.Plan(entries=[_as_entry(entry) for entry in entries]))

    @must_await
    async def usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        thought_tokens: int = 0,
        cached_read_tokens: int = 0,
        cached_write_tokens: int = 0,
        cost_usd: float | None = None,
        context_used: int | None = None,
        context_size: int | None = None,
    ) -> None:
        """Add to the tokens of the turn and the session. With the context's size, clients show how full it is."""
        self._check()
        self.count(
            TokenUsage(input_tokens, output_tokens, cost_usd, cached_read_tokens, cached_write_tokens, thought_tokens)
        )
        if context_used is not None and context_size is not None:
            cost = self.session.usage.cost_usd
            shown = None if cost is None else v1.Cost(amount=cost, currency="USD")
            await self.send(v1.UsageUpdate(used=context_used, size=context_size, cost=shown))

    def count(self, usage: TokenUsage) -> None:
        """Add to the tokens of the turn and the session. The client receives them with the response."""
        self._tokens.add(usage)
        self.session.memory.usage += usage

    def model_request(self, model: str, *, provider: str = "") -> AbstractContextManager[ModelRequest]:
        """Trace a model request. The tokens that are counted inside the `with` belong to it.

        The client sees nothing of this. Libraries that trace their own requests do not need it.
        """
        return self._tokens.request(ModelRequest(provider, model, self.session.id))

    @must_await
    async def title(self, title: str) -> None:
        """Set the title of the session. A title from the client is kept, except in a slash command."""
        self._check()
        if self.command is not None or not self.session.memory.choices.titled:
            await self.session.set_title(title)

    @must_await
    async def notice(
        self, text: str, severity: Literal["info", "warning", "error"] = "info", *, key: str | None = None
    ) -> None:
        """Show the user a notice about the turn. It is not part of the answer and not replayed.

        A later notice with the same `key`, which is unique in the session, replaces this one.
        """
        self._check()
        self.session.notice(text, severity, key=key)

    def subagent(self, title: str, *, description: str | None = None) -> "Subagent":
        """Show part of the work as a separate session if the client supports this, or else as a tool call.

        `async with` announces it and ends it. `instruct`, `report` and `say` show its messages.
        """
        from dragoman.agent.turns.subagent import Subagent

        self._check()
        self.new_message()
        return Subagent(self.session, title, description)

    def compaction(self, *, messages: int | None = None) -> "Compaction":
        """Show a compaction of the conversation. `async with` shows its start and end, and `say` shows the summary.

        `messages` is the number of compacted messages.
        """
        from dragoman.agent.turns.compaction import Compaction

        self._check()
        return Compaction(self.session, messages=messages, asked=self.command is not None)

    @must_await
    async def send(self, update: v1.SessionUpdate) -> None:
        """Log and send any update of the protocol. Wait only while the client does not keep up."""
        if self.put(update):
            await self.flow()

    def put(self, update: v1.SessionUpdate) -> bool:
        """Log and send an update. Return whether to await `flow` before the next one."""
        if self._is_over or self.is_cancelled:
            self._check()
        return self._updates.put(update)

    async def flow(self) -> None:
        """Wait while the client does not keep up."""
        await self._updates.flow()
        now = time.monotonic()
        if now > self._yield_at:  # a function that only sends must let the event loop read a cancel
            self._yield_at = now + YIELD_INTERVAL_S
            await asyncio.sleep(0)
        self._check()

    # ── tools ───────────────────────────────────────────────────────────────────────────────────

    def tool(
        self,
        title: str,
        *,
        kind: v1.ToolKind = "other",
        name: str | None = None,
        raw_input: Any = None,
        locations: "Sequence[ToolLocation]" = (),
        asks: bool | None = None,
        call_id: str | None = None,
    ) -> "ToolCallHandle":
        """Create a tool call. `async with` announces it, and ends it as completed, or as failed on an exception.

        A location is a path, or a path and a line. `asks` says whether the call stays `pending` until `allowed`.
        """
        from dragoman.agent.turns.tool_call import ToolCallHandle, new_call

        self._check()
        self.new_message()
        call = new_call(
            self.session,
            title,
            kind=kind,
            name=name,
            raw_input=raw_input,
            locations=locations,
            asks=asks,
            call_id=call_id,
        )
        return ToolCallHandle(self.session, self.calls, call)

    async def mcp_tools(self) -> "Sequence[McpTool]":
        """Return the tools of all MCP servers of the session, after a bounded wait for connecting servers."""
        self._check()
        await self.session.mcp.wait(self.session.notice)
        return self.session.mcp.tools()

    async def call_tool(self, tool: "McpTool", arguments: dict[str, Any]) -> ToolOutcome:
        """Announce a call of an MCP tool, ask if necessary, run it, and show and return its outcome.

        An outcome has `text`, `content`, `raw_output`, `attachments` and `failed`. A failed or denied call does not
        raise, because the model must receive the outcome.
        """
        return await self.run_call(
            lambda: tool.prepare(arguments), name=tool.name, title=tool.title, kind=tool.kind, raw_input=arguments
        )

    async def run_call(
        self, prepare: "Prepare", *, name: str, title: str, kind: v1.ToolKind, raw_input: dict[str, Any]
    ) -> ToolOutcome:
        """Prepare, announce, approve, run and end a call."""
        call = self.tool(title, kind=kind, name=name, raw_input=raw_input, asks=True)
        try:
            prepared: PreparedCall = await prepare()
        except ToolError as failure:
            return await call.end(ToolOutcome(str(failure), failed=True))
        await call.propose(prepared)
        return await call.run(prepared, again=prepare)

    # ── the user, files and commands ────────────────────────────────────────────────────────────

    async def ask_user(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Ask the user to fill in a form. Return None if they decline or the client cannot ask.

        `schema` is a JSON schema of an object whose properties have simple types, as the protocol allows, or only the
        properties. Raises ValueError for any other schema.
        """
        self._check()
        if not self.session.client.supports_forms:
            return None
        request = v1.FormElicitationForSession(
            session_id=self.session.id, message=message, requested_schema=_as_schema(schema)
        )
        try:
            answer = await self._updates.call(ELICITATION_CREATE, request)
        except (ConnectionClosedError, RemoteError, InvalidResultError):
            return None
        return (answer.content or {}) if isinstance(answer, v1.ElicitationAcceptAction) else None

    @overload
    async def read_text(self, path: str) -> str: ...
    @overload
    async def read_text(self, path: str, *, default: D) -> str | D: ...

    async def read_text(self, path: str, *, default: Any = _RAISE) -> Any:
        """Return the text of a file inside the session's directories, from the client if it supports this.

        Raises ToolError if the file cannot be read or is outside. `default` is returned for a missing file.
        """
        self._check()
        workspace = self.session.workspace
        target = await workspace.find(path)
        if not target.inside:
            raise ToolError(f"{path} is outside the session's directories ({', '.join(workspace.roots)})")
        if default is _RAISE:
            return await workspace.read_text(target)
        text = await workspace.read_text_or_none(target)
        return default if text is None else text

    @must_await
    async def write_text(self, path: str, text: str, *, expected: str | None = _AS_SHOWN) -> None:
        """Write a file inside the session's directories, through the client if it supports this. Raises ToolError.

        This does not ask for permission. Use `ToolCallHandle.allowed` for that. `expected` is the whole text that the
        file must still have, or None for a missing or empty file. Otherwise nothing is written. By default it is the
        `old` of `ToolCallHandle.show_diff` for this path in an open call. Without one, the file may have any text.
        """
        self._check()
        workspace = self.session.workspace
        target = await workspace.find(path)
        place = self.session.absolute(path)
        if expected is _AS_SHOWN:
            expected = self.calls.find_shown(place, _AS_SHOWN)
        try:
            if not target.inside or expected is _AS_SHOWN:
                expected = await workspace.read_text_or_none(target) if target.inside else None
            else:
                await workspace.check_text(target, expected=expected)
            await workspace.write_text(target, text, expected=expected)
        except TargetChangedError as change:
            raise ToolError(f"{change}, so nothing was written. Read the file again and show the new change") from None
        self.calls.forget_shown(place)

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float = COMMAND_TIMEOUT_S,
        call: "ToolCallHandle | None" = None,
        sandbox: SandboxMode = "off",
        writable: Sequence[str] = (),
    ) -> "CommandResult":
        """Run a command in the working directory, in a terminal of the client if it has them.

        A string is a shell command. A list is a program and its arguments. `call` shows the output as it arrives. The
        result has `output`, `exit_code`, `signal`, `timed_out` and `cancelled`. A client of version 2 may cancel one
        command. Raises ToolError if the command cannot be started. This does not ask for permission. Use
        `ToolCallHandle.allowed` for that.

        With `sandbox`, the operating system keeps the command inside the session's directories and, if listed, the
        `writable` ones. It then never runs in the client's terminal. Without a sandbox here, it is not run, and
        ToolError has the reason.
        """
        self._check()
        if sandbox not in SANDBOX_MODES:
            raise ValueError(f"{sandbox!r} is not a sandbox; expected one of {', '.join(SANDBOX_MODES)}")
        text = command if isinstance(command, str) else shlex.join(command)

        async def show(content: Sequence[v1.ToolCallContent]) -> None:
            if call is not None:
                await call.progress(*content)

        workspace = self.session.workspace
        if sandbox != "off" and (problem := await workspace.find_sandbox_problem()) is not None:
            raise ToolError(f"the command was not run, because there is no sandbox: {problem}")
        own = None if sandbox == "off" else workspace.make_sandbox(sandbox, writable)
        end = await workspace.run(text, show, timeout_s=timeout_s, sandbox=own)
        if call is not None:
            await call.show(*end.content)
        return end

    # ── the end of the turn ─────────────────────────────────────────────────────────────────────

    def finish(self, reason: str) -> None:
        """End the open calls. After that, nothing can be sent. Raises LogError."""
        try:
            self.calls.end(reason)
        finally:
            self._is_over = True

    def _check(self) -> None:
        if self._is_over:
            raise TurnEndedError("the turn has ended; send text before the function returns")
        if self.is_cancelled:
            raise asyncio.CancelledError("the turn was cancelled")

    def _message_id(self, role: str) -> str:
        if self._open_message[0] != role:
            self._open_message = (role, str(uuid.uuid4()))
            if role == "agent" and (self.command is None or self.mcp_prompt is not None):
                self.session.memory.message_count += 1
        return self._open_message[1]


def _as_block(content: str | v1.ContentBlock) -> v1.ContentBlock | None:
    if isinstance(content, str):
        return v1.TextContent(text=content) if content else None
    if not isinstance(content, msgspec.Struct):
        raise TypeError(f"an answer consists of text and content blocks, not {type(content).__name__}")
    return content


def _as_entry(entry: str | tuple[str, v1.PlanEntryStatus] | v1.PlanEntry) -> v1.PlanEntry:
    if isinstance(entry, v1.PlanEntry):
        return entry
    content, status = (entry, "pending") if isinstance(entry, str) else entry
    if status not in _PLAN_STATUSES:
        raise ValueError(f"{status!r} is not a step status; expected one of {', '.join(_PLAN_STATUSES)}")
    return v1.PlanEntry(content=content, priority="medium", status=status)


def _as_schema(schema: Mapping[str, Any]) -> v1.ElicitationSchema:
    whole = schema if "properties" in schema else {"type": "object", "properties": dict(schema)}
    try:
        return msgspec.convert(whole, v1.ElicitationSchema, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise ValueError(f"this schema cannot be used for a form: {error}") from None
