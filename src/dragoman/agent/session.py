"""A live session: its directories, its settings, its servers, what it keeps, and the turn that is running."""

import asyncio
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from dragoman.agent.approvals import Approvals
from dragoman.agent.permission import Permission, Scope
from dragoman.agent.resources import AgentResources
from dragoman.agent.servers.session_mcp import SessionMcp
from dragoman.agent.session_memory import ClientChoices, SessionMemory
from dragoman.agent.settings import MODE, Mode, SessionOption, SessionSettings
from dragoman.agent.update_sender import UpdateSender
from dragoman.agent.usage import TokenUsage
from dragoman.errors import ConnectionClosed, ErrorCode, InvalidResult, RemoteError, RpcError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_REQUEST_PERMISSION
from dragoman.protocol.notice import CALLS, ECHO, TERMINALS, as_thought, takes_notices
from dragoman.store import Header, Log

if TYPE_CHECKING:
    from dragoman.agent.conversation import HistoryMessage
    from dragoman.agent.workspace.workspace import Workspace


class SessionClient(msgspec.Struct, frozen=True):
    """The client of a session, and what it can do."""

    capabilities: v1.ClientCapabilities
    info: v1.Implementation | None = None
    """Its name and version, if it told them."""

    @property
    def reads_files(self) -> bool:
        """Whether files are read through it, with changes that are not saved yet."""
        return bool(self.capabilities.fs.read_text_file)

    @property
    def writes_files(self) -> bool:
        """Whether files are written through it."""
        return bool(self.capabilities.fs.write_text_file)

    @property
    def runs_commands(self) -> bool:
        """Whether commands run in its terminals."""
        return bool(self.capabilities.terminal)

    @property
    def asks_forms(self) -> bool:
        """Whether it can ask the person to fill in a form: `Turn.ask`."""
        return self.capabilities.elicitation is not None and self.capabilities.elicitation.form is not None

    @property
    def shows_notices(self) -> bool:
        """Whether it shows notices apart from the answer."""
        return takes_notices(self.capabilities)

    @property
    def shows_compaction(self) -> bool:
        """Whether it shows that a conversation is summed up: `Turn.compaction`."""
        return self.capabilities.session is not None and self.capabilities.session.compaction is not None

    @property
    def shows_subagents(self) -> bool:
        """Whether it shows the sessions of subagents, and the messages between them."""
        return self.capabilities.subagents is not None

    @property
    def wants_echo(self) -> bool:
        """Whether it wants its own prompts told back."""
        return (self.capabilities.meta or {}).get(ECHO) is True

    @property
    def cancels_calls(self) -> bool:
        """Whether it offers the person to end one tool call."""
        return CALLS in (self.capabilities.meta or {})

    @property
    def cancels_terminals(self) -> bool:
        """Whether it offers the person to end one command."""
        return TERMINALS in (self.capabilities.meta or {})

    @property
    def knows_boolean_options(self) -> bool:
        """Whether it knows options that are on or off."""
        options = self.capabilities.session and self.capabilities.session.config_options
        return bool(options and options.boolean is not None)


class RunningTurn(Protocol):
    """A turn, as its session knows it."""

    def cancel(self) -> None:
        """Stop it."""
        ...

    def cancel_call(self, tool_call_id: str) -> bool:
        """Stop one tool call of it, and return whether it runs and can be stopped alone."""
        ...

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a server's question to the model."""
        ...


class TurnSlot:
    """The place of the one turn that a session can have."""

    def __init__(self) -> None:
        self.turn: RunningTurn | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def hold(self, session_id: str, turn: RunningTurn) -> Generator[None]:
        """Be busy with a turn; raises RpcError when another one is running."""
        if self.turn is not None:
            raise RpcError(
                ErrorCode.INVALID_REQUEST,
                f"session {session_id} is busy with a turn; wait for its answer or send session/cancel first",
            )
        self.turn = turn
        self._idle.clear()
        try:
            yield
        finally:
            self.turn = None
            self._idle.set()

    async def wait_idle(self) -> None:
        """Wait until no turn is running."""
        await self._idle.wait()


class Session:
    """One conversation in one working directory; one turn at a time."""

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
        """The client, and what it can do."""
        self.extra: Any = None
        """The program's own object for this session; it is not saved."""
        self.memory = SessionMemory()
        self.settings = settings
        self.updates = updates
        self._header = header
        self._resources = resources
        self._workspace: Workspace | None = None
        self._notices: list[str] = []
        self.slot = TurnSlot()
        approvals = Approvals(resources.find_approvals(header.cwd))
        self.permission = Permission(
            lambda: self.settings.mode, approvals, self._request_permission, timeout_s=timeout_s, remember=remember
        )
        self.mcp = SessionMcp(self, header.cwd, resources)

    def __repr__(self) -> str:
        return f"Session({self.id!r} in {self.cwd!r})"

    # ── its facts ───────────────────────────────────────────────────────────────────────────────

    @property
    def id(self) -> str:
        """The id, which is unique and works in any process."""
        return self._header.id

    @property
    def cwd(self) -> str:
        """The working directory: the base of relative paths."""
        return self._header.cwd

    @property
    def additional_directories(self) -> Sequence[str]:
        """The directories beside the working directory that the session may work in."""
        return self._header.additional_directories

    @property
    def roots(self) -> list[str]:
        """All directories of the session, the working directory first."""
        return [self.cwd, *self.additional_directories]

    @property
    def header(self) -> Header:
        """The header of its log, with the directories that it has now."""
        return self._header

    @property
    def capabilities(self) -> v1.ClientCapabilities:
        """The capabilities of the client."""
        return self.client.capabilities

    @property
    def log(self) -> Log:
        """The log."""
        return self.updates.log

    @property
    def state(self) -> dict[str, Any]:
        """The program's own data, as JSON: saved when a turn ends, there again after load, resume and fork."""
        return self.memory.state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self.memory.state = state

    @property
    def title(self) -> str | None:
        """The title: that of the client, else that of `Turn.title`, else the beginning of the first prompt."""
        return self.memory.title

    @property
    def system_prompt(self) -> v1.SystemPrompt | None:
        """The instructions of the client for the model, if it gave some; `instructions` puts them to your own."""
        return self.memory.choices.system_prompt

    def instructions(self, own: str) -> str:
        """Return the program's own instructions for a model with those of the client: added, or in their place."""
        given = self.system_prompt
        if given is None:
            return own
        words = "\n\n".join(block.text for block in given.content if isinstance(block, v1.TextContent))
        return words if given.mode == "override" else f"{own}\n\n{words}".strip()

    @property
    def usage(self) -> TokenUsage:
        """The tokens of all turns so far."""
        return self.memory.usage

    @property
    def workspace(self) -> "Workspace":
        """Its files and commands: the client's or ours, inside the boundary. Raises PathError."""
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

    async def history(self) -> "list[HistoryMessage]":
        """Return what was said before the running turn, in order, from the log; raises LogFailed."""
        from dragoman.agent.conversation import read_conversation  # its decoder takes 10 ms

        return await read_conversation(self.log, without_running_turn=self.is_busy)

    async def set_directories(self, directories: Sequence[str]) -> None:
        """Change the directories beside the cwd; raises PathError."""
        if list(directories) == list(self.additional_directories):
            return
        self._header = msgspec.structs.replace(self._header, additional_directories=list(directories))
        if self._workspace is not None:
            self._workspace.set_directories(directories)
        await self.mcp.servers.tell_roots()

    # ── its turn ────────────────────────────────────────────────────────────────────────────────

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self.slot.turn is not None

    def cancel(self) -> None:
        """Stop the running turn, if there is one."""
        if self.slot.turn is not None:
            self.slot.turn.cancel()

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a server's question to the model; raises RpcError and ServerFailure."""
        if self.slot.turn is None:
            # Without a turn the person could not cancel the request, and in some modes would not be asked.
            raise RpcError(ErrorCode.INVALID_REQUEST, "no turn is running in this session, so no model can be asked")
        return await self.slot.turn.sample(server, params)

    async def ask_permission(self, call: v1.ToolCallUpdate, options: list[v1.PermissionOption]) -> str | None:
        """Ask the person about a call, and return the id of the option; None when there is no answer."""
        try:
            answer = await self._request_permission(call, options)
        except (ConnectionClosed, RemoteError, InvalidResult):
            return None
        return answer.outcome.option_id if isinstance(answer.outcome, v1.SelectedPermissionOutcome) else None

    async def _request_permission(
        self, call: v1.ToolCallUpdate, options: list[v1.PermissionOption]
    ) -> v1.RequestPermissionResponse:
        request = v1.RequestPermissionRequest(session_id=self.id, tool_call=call, options=options)
        return await self.updates.call(SESSION_REQUEST_PERMISSION, request)

    # ── its settings ────────────────────────────────────────────────────────────────────────────

    @property
    def mode(self) -> str | None:
        """The id of the mode; None for a program without modes."""
        return self.settings.mode.id if self.settings.modes else None

    @property
    def options(self) -> Mapping[str, Any]:
        """The values of all options, by id."""
        return self.settings.all()

    def declare(
        self, *, modes: Sequence[Mode], options: Sequence[SessionOption] = (), default_mode: str | None = None
    ) -> None:
        """Give this session other modes and options than the agent's; `show_settings` tells a client of later changes.

        Raises ValueError.
        """
        self.settings.declare(modes, options, default_mode=default_mode)

    async def set_mode(self, mode: str) -> None:
        """Set a mode, log it and tell the client; raises InvalidParams when there is none with this id."""
        await self.set_option(MODE, self.settings.check_mode(mode, "mode"))

    async def set_option(self, option: str, value: str | bool) -> None:
        """Set an option, log it and tell the client; a value that is not offered is possible here."""
        self.settings.values[option] = value
        self.show_settings()
        await self.updates.flow()

    def show_settings(self) -> None:
        """Log the settings, and tell the client."""
        self.updates.record("config", self.settings.encode())
        for update in self.settings.updates():
            self.updates.put(update)

    # ── what it tells and keeps ─────────────────────────────────────────────────────────────────

    def notice(self, text: str, severity: Literal["info", "warning", "error"] = "info") -> None:
        """Tell the person something about the conversation now: it is no part of the answer, nor of the log.

        The first line of the text can stand alone; the rest is the detail.
        """
        title, _, description = text.strip().partition("\n")
        notice = v1.Notice(severity=severity, title=title.rstrip(":"), description=description or None)
        self.updates.send_unlogged(notice if self.client.shows_notices else as_thought(notice))

    def notice_later(self, text: str) -> None:
        """Tell the person something with the next prompt, or at the end of a load."""
        self._notices.append(text)

    def show_notices(self) -> None:
        """Show the notices that have come up, each once."""
        notices = [*self._notices, *self.mcp.servers.take_notices()]
        self._notices.clear()
        for notice in notices:
            self.notice(notice, "warning")

    def record(self, value: Any) -> None:
        """Log a JSON value that the client is not sent; `Agent.on_record` gets it back. Raises LogFailed."""
        self.updates.record("model", msgspec.json.encode(value))

    async def set_title(self, title: str) -> None:
        """Give the session its title, and tell the client. Raises LogFailed."""
        self.memory.title = title
        self.updates.record("title", msgspec.json.encode(title))
        await self.updates.send(v1.SessionInfoUpdate(title=title))

    async def choose(self, choices: ClientChoices) -> None:
        """Log the choices of the client about the session, and have them on the disk. Raises LogFailed."""
        self.memory.choices = choices
        self.log.title, self.log.message_count = self.memory.title, self.memory.message_count
        self.log.is_archived = choices.archived
        self.updates.record("client", msgspec.json.encode(choices))
        self.updates.flush()
        await self.log.sync()

    def absolute(self, path: str) -> str:
        """Return a path from the working directory as an absolute one; links are not followed."""
        return os.path.normpath(os.path.join(self.cwd, path))  # noqa: PTH118 -- a text
