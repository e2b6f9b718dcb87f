"""A live session: its directories, settings, MCP servers, saved state and running turn."""

import asyncio
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from dragoman.agent.connection.update_sender import UpdateSender
from dragoman.agent.servers.agent_resources import AgentResources
from dragoman.agent.servers.session_mcp import SessionMcp
from dragoman.agent.sessions.approvals import Approvals
from dragoman.agent.sessions.conversation import HistoryMessage, read_conversation
from dragoman.agent.sessions.permission import Permission, Scope
from dragoman.agent.sessions.session_memory import ClientChoices, SessionMemory
from dragoman.agent.sessions.settings import MODE, Mode, SessionOption, SessionSettings
from dragoman.agent.turns.unawaited import UnawaitedCalls
from dragoman.agent.turns.usage import TokenUsage
from dragoman.errors import ConnectionClosedError, ErrorCode, InvalidResultError, RemoteError, RpcError
from dragoman.protocol import v1
from dragoman.protocol.extensions import CALLS, ECHO, NOTICE
from dragoman.protocol.methods import SESSION_REQUEST_PERMISSION
from dragoman.protocol.notice import as_thought, supports_notices
from dragoman.store import Header, History

if TYPE_CHECKING:
    from dragoman.agent.workspace.workspace import Workspace


def _no_client_yet() -> None:
    """Do nothing. The commands are sent when the session is introduced to the client."""


class SessionClient(msgspec.Struct, frozen=True):
    """The client of a session and its capabilities."""

    capabilities: v1.ClientCapabilities
    info: v1.Implementation | None = None
    """Its name and version, if it sent them."""

    @property
    def supports_forms(self) -> bool:
        """Whether the client supports forms, for `Turn.ask_user`."""
        return self.capabilities.elicitation is not None and self.capabilities.elicitation.form is not None

    @property
    def shows_notices(self) -> bool:
        """Whether the client shows notices separately from the answer."""
        return supports_notices(self.capabilities)

    @property
    def shows_compaction(self) -> bool:
        """Whether the client shows that a conversation is compacted, see `Turn.compaction`."""
        return self.capabilities.session is not None and self.capabilities.session.compaction is not None

    @property
    def shows_subagents(self) -> bool:
        """Whether the client shows the sessions of subagents and the messages between them."""
        return self.capabilities.subagents is not None

    @property
    def wants_echo(self) -> bool:
        """Whether the client wants its own prompts echoed."""
        return (self.capabilities.meta or {}).get(ECHO) is True

    @property
    def cancels_calls(self) -> bool:
        """Whether the client lets the user cancel one tool call."""
        return CALLS in (self.capabilities.meta or {})

    @property
    def supports_boolean_options(self) -> bool:
        """Whether the client supports boolean options."""
        options = self.capabilities.session and self.capabilities.session.config_options
        return bool(options and options.boolean is not None)


class RunningTurn(Protocol):
    """A running turn, as its session sees it."""

    def cancel(self) -> None:
        """Cancel the turn."""
        ...

    def cancel_call(self, tool_call_id: str) -> bool:
        """Cancel one tool call. Return whether it is running and can be cancelled."""
        ...

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a server's model request."""
        ...


class TurnSlot:
    """Holds the running turn of a session, of which there is at most one."""

    def __init__(self) -> None:
        self.turn: RunningTurn | None = None
        self._idle: asyncio.Event | None = None
        """Set at the end of the turn. It exists only while it is awaited, because most sessions are idle."""

    @contextmanager
    def hold(self, session_id: str, turn: RunningTurn) -> Generator[None]:
        """Hold the slot during a turn. Raises RpcError if another turn is running."""
        if self.turn is not None:
            raise RpcError(
                ErrorCode.INVALID_REQUEST,
                f"session {session_id} is busy with a turn; wait for its answer or send session/cancel first",
            )
        self.turn = turn
        try:
            yield
        finally:
            self.turn = None
            if self._idle is not None:
                self._idle.set()
                self._idle = None

    async def wait_idle(self) -> None:
        """Wait until no turn is running."""
        if self.turn is not None:
            self._idle = self._idle or asyncio.Event()
            await self._idle.wait()


class Session:
    """One conversation in one working directory, with one turn at a time."""

    def __init__(
        self,
        header: Header,
        client: SessionClient,
        updates: UpdateSender,
        settings: SessionSettings,
        resources: AgentResources,
        *,
        timeout_s: float | None = None,
        remember: Scope = "session",
    ) -> None:
        self.client = client
        """The client and its capabilities."""
        self.extra: Any = None
        """The program's own object for this session. It is not saved."""
        self.memory = SessionMemory()
        self.settings = settings
        self.updates = updates
        self.unawaited = UnawaitedCalls()
        self.show_commands: Callable[[], None] = _no_client_yet
        """Sends the list of commands to the client, after it changed."""
        self._header = header
        self._resources = resources
        self._workspace: Workspace | None = None
        self._notices: list[str] = []
        self.slot = TurnSlot()
        approvals = Approvals(resources.find_approvals(header.cwd))
        self.permission = Permission(
            lambda: self.settings.mode,
            approvals,
            self._request_permission,
            timeout_s=timeout_s,
            remember=remember,
            cwd=header.cwd,
        )
        self.mcp = SessionMcp(self, header.cwd, resources)

    def __repr__(self) -> str:
        return f"Session({self.id!r} in {self.cwd!r})"

    # ── identity and state ──────────────────────────────────────────────────────────────────────

    @property
    def id(self) -> str:
        """The ID, which is unique and valid in any process."""
        return self._header.id

    @property
    def cwd(self) -> str:
        """The working directory, the base of relative paths."""
        return self._header.cwd

    @property
    def additional_directories(self) -> Sequence[str]:
        """The directories besides the working directory that the session may access."""
        return self._header.additional_directories

    @property
    def roots(self) -> list[str]:
        """All directories of the session, the working directory first."""
        return [self.cwd, *self.additional_directories]

    @property
    def header(self) -> Header:
        """The header of the log, with the current directories."""
        return self._header

    @property
    def capabilities(self) -> v1.ClientCapabilities:
        """The capabilities of the client."""
        return self.client.capabilities

    @property
    def log(self) -> History:
        """The session log."""
        return self.updates.log

    @property
    def state(self) -> dict[str, Any]:
        """The program's own JSON data. It is saved at the end of each turn, and restored by load, resume and fork."""
        return self.memory.state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self.memory.state = state

    @property
    def title(self) -> str | None:
        """The title: set by the client, by `Turn.title`, or else from the beginning of the first prompt."""
        return self.memory.title

    @property
    def system_prompt(self) -> v1.SystemPrompt | None:
        """The client's instructions for the model, if any. `instructions` combines them with the program's own."""
        return self.memory.choices.system_prompt

    def instructions(self, own: str) -> str:
        """Return the instructions for a model: the program's own, with the client's added or in their place."""
        prompt = self.system_prompt
        if prompt is None:
            return own
        text = "\n\n".join(block.text for block in prompt.content if isinstance(block, v1.TextContent))
        return text if prompt.mode == "override" else f"{own}\n\n{text}".strip()

    @property
    def usage(self) -> TokenUsage:
        """The tokens of all turns so far."""
        return self.memory.usage

    @property
    def workspace(self) -> "Workspace":
        """Access to files and commands inside the session's directories. Raises PathError."""
        from dragoman.agent.workspace.workspace import Workspace

        if self._workspace is None:
            self._workspace = Workspace(
                self.cwd,
                self.additional_directories,
                session_id=self.id,
                connection=self.updates.connection,
                capabilities=self.capabilities,
                supervise=self._resources.supervise,
                active_files=self._resources.active_files(),
            )
        return self._workspace

    def rest(self) -> None:
        """Close the session's directories until they are used again."""
        self._workspace = None

    async def history(self) -> list[HistoryMessage]:
        """Return the messages before the running turn from the log, in order. Raises LogError."""
        return await read_conversation(self.log, without_running_turn=self.is_busy)

    async def set_directories(self, directories: Sequence[str]) -> None:
        """Change the additional directories. Raises PathError."""
        if list(directories) == list(self.additional_directories):
            return
        self._header = msgspec.structs.replace(self._header, additional_directories=list(directories))
        if self._workspace is not None:
            self._workspace.set_directories(directories)
        await self.mcp.servers.notify_roots_changed()

    # ── the running turn ────────────────────────────────────────────────────────────────────────

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self.slot.turn is not None

    def cancel(self) -> None:
        """Cancel the running turn, if there is one."""
        if self.slot.turn is not None:
            self.slot.turn.cancel()

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a server's model request. Raises RpcError and McpServerError."""
        if self.slot.turn is None:
            # Without a turn the user could not cancel the request, and in some modes would not be asked.
            raise RpcError(ErrorCode.INVALID_REQUEST, "no turn is running in this session, so no model is available")
        return await self.slot.turn.sample(server, params)

    async def ask_permission(self, call: v1.ToolCallUpdate, options: list[v1.PermissionOption]) -> str | None:
        """Ask the user for permission and return the ID of the chosen option, or None without an answer."""
        try:
            answer = await self._request_permission(call, options)
        except (ConnectionClosedError, RemoteError, InvalidResultError):
            return None
        return answer.outcome.option_id if isinstance(answer.outcome, v1.SelectedPermissionOutcome) else None

    async def _request_permission(
        self, call: v1.ToolCallUpdate, options: list[v1.PermissionOption]
    ) -> v1.RequestPermissionResponse:
        request = v1.RequestPermissionRequest(session_id=self.id, tool_call=call, options=options)
        return await self.updates.call(SESSION_REQUEST_PERMISSION, request)

    # ── modes and options ───────────────────────────────────────────────────────────────────────

    @property
    def mode(self) -> str | None:
        """The ID of the mode. None for a program without modes."""
        return self.settings.mode.id if self.settings.modes else None

    @property
    def options(self) -> Mapping[str, Any]:
        """The values of all options, by ID."""
        return self.settings.all()

    def declare(
        self, *, modes: Sequence[Mode], options: Sequence[SessionOption] = (), default_mode: str | None = None
    ) -> None:
        """Replace the agent's modes and options in this session. `show_settings` sends later changes to the client.

        Raises ValueError.
        """
        self.settings.declare(modes, options, default_mode=default_mode)

    async def set_mode(self, mode: str) -> None:
        """Set a mode, log it and notify the client. Raises InvalidParamsError if no mode has this ID."""
        await self.set_option(MODE, self.settings.check_mode(mode, "mode"))

    async def set_option(self, option: str, value: str | bool) -> None:
        """Set an option, log it and notify the client. The value need not be one of the offered values."""
        self.settings.values[option] = value
        self.show_settings()
        await self.updates.flow()

    def show_settings(self) -> None:
        """Log the settings and send them to the client."""
        self.updates.record("config", self.settings.encode())
        for update in self.settings.updates():
            self.updates.put(update)

    # ── notices and records ─────────────────────────────────────────────────────────────────────

    def notice(
        self, text: str, severity: Literal["info", "warning", "error"] = "info", *, key: str | None = None
    ) -> None:
        """Show the user a notice about the conversation. It is not part of the answer or the log.

        The first line of the text must be understandable on its own. The rest is the detail. A later notice with the
        same `key` replaces this one. The key must be unique in the session.
        """
        title, _, description = text.strip().partition("\n")
        notice = v1.Notice(severity=severity, title=title.rstrip(":"), description=description or None)
        if key is not None:
            notice.meta = {NOTICE: key}
        self.updates.send_unlogged(notice if self.client.shows_notices else as_thought(notice))

    def notice_later(self, text: str) -> None:
        """Show the user a notice with the next prompt, or at the end of a load."""
        self._notices.append(text)

    def show_notices(self) -> None:
        """Show the pending notices, each once."""
        notices = [*self._notices, *self.mcp.servers.pop_notices()]
        self._notices.clear()
        for notice in notices:
            self.notice(notice, "warning")

    def record(self, value: Any) -> None:
        """Log a JSON value that is not sent to the client. `Agent.on_record` receives it. Raises LogError."""
        self.updates.record("model", msgspec.json.encode(value))

    async def set_title(self, title: str) -> None:
        """Set the title of the session and notify the client. Raises LogError."""
        self.memory.title = title
        self.updates.record("title", msgspec.json.encode(title))
        await self.updates.send(v1.SessionInfoUpdate(title=title))

    async def save_choices(self, choices: ClientChoices) -> None:
        """Log the client's choices about the session and write them to disk. Raises LogError."""
        self.memory.choices = choices
        self.log.facts.title, self.log.facts.message_count = self.memory.title, self.memory.message_count
        self.log.facts.is_archived = choices.archived
        self.updates.record("client", msgspec.json.encode(choices))
        self.updates.flush()
        await self.log.sync()

    def absolute(self, path: str) -> str:
        """Return a path as an absolute path, based on the working directory. Links are not followed."""
        return os.path.normpath(os.path.join(self.cwd, path))  # noqa: PTH118 -- paths are strings here
