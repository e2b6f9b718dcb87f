"""A live session: its directories, its conversation, its settings, and the turn that is running."""

import asyncio
import math
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.assistant.context import ModelContext, ToolOffer
from dragoman.assistant.models.message import AssistantMessage, Message, SummaryMessage, UserMessage
from dragoman.assistant.models.model import Model, ModelConversation, TokenUsage
from dragoman.assistant.permission import Approvals, Permission
from dragoman.assistant.profile import FoundProfile, Profile, ProfileChoice, TrustStore
from dragoman.assistant.servers.host import SessionHost
from dragoman.assistant.servers.offers import ServerOffers
from dragoman.assistant.servers.session_servers import ClientServer, SessionServers
from dragoman.assistant.settings import MODE, MODEL, SessionSettings, SettingChoices
from dragoman.assistant.setup import GUIDE, AgentSetup
from dragoman.assistant.update_sender import UpdateSender
from dragoman.errors import DragomanError, ErrorCode, InvalidParams, RpcError
from dragoman.mcp.channel import McpMessageRouter
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.info import PromptInfo, ServerStatus
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_REQUEST_PERMISSION
from dragoman.protocol.notice import as_thought, takes_notices
from dragoman.store import Header, Log

if TYPE_CHECKING:
    from dragoman.assistant.workspace.workspace import Workspace

SERVERS_KEY = "dragoman/mcp"
"""Under this key of a `_meta` stands how the MCP servers of a session are."""


class Session:
    """One conversation in one working directory; one turn at a time."""

    def __init__(
        self,
        header: Header,
        updates: UpdateSender,
        setup: AgentSetup,
        client: v1.ClientCapabilities,
        *,
        mcp_router: McpMessageRouter,
        choice: ProfileChoice,
        model: Model,
    ) -> None:
        self.header = header
        self.additional_directories: Sequence[str] = header.additional_directories
        self.updates = updates
        self.messages: list[Message] = []
        self.message_count = 0
        """The number of messages of the person and of the model, also of those that were summed up since."""
        self.title: str | None = None
        self.spent = TokenUsage(0, 0)
        self.context_used = 0
        self.notices: list[str] = []
        self._setup = setup
        self.client = client
        self._approvals = Approvals(setup.home, header.cwd)
        self._workspace: Workspace | None = None
        self._cancel_turn: Callable[[], None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        host = SessionHost(self)
        environment = ServerEnvironment(header.cwd, setup.supervise, updates.connection, mcp_router)
        self.servers = SessionServers(environment, host, setup.pool, self._tell_of_servers)
        self.on_commands: Callable[[], None] | None = None
        """Is called when the commands have changed."""
        self._server_offers = ServerOffers(host)
        self._told: list[ServerStatus] = []
        self._told_prompts: list[tuple[str, PromptInfo]] = []
        self._telling = False
        self._has_servers = False
        self.context = ModelContext(setup.home, self.offers, lambda: self.profile)
        self.settings = SessionSettings()
        self.choices = SettingChoices()
        self.pending = choice.pending
        self.pending_changes = choice.changes
        if choice.notice and choice.pending is None:
            self.notices.append(choice.notice)
        self._take_profile(choice.found.profile, model)

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def log(self) -> Log:
        return self.updates.log

    @property
    def trust(self) -> TrustStore:
        return self._setup.trust

    @property
    def workspace(self) -> "Workspace":
        """Where its tools work; opened when the first one needs it. Raises PathError."""
        from dragoman.assistant.workspace.workspace import Workspace

        if self._workspace is None:
            self._workspace = Workspace(
                self.header.cwd,
                self.additional_directories,
                session_id=self.id,
                connection=self.updates.connection,
                capabilities=self.client,
                supervise=self._setup.supervise,
                active_files=self._setup.active_files(),
            )
        return self._workspace

    def offers(self) -> list[ToolOffer]:
        """Return the tools that may be put in front of the model now."""
        from dragoman.assistant.tools.builtin import builtin_tools

        permissions, limits = self.profile.permissions, self.profile.limits
        tools = builtin_tools(
            self.workspace,
            self.updates.send,
            ask_outside_reads=permissions.ask_outside_reads,
            command_timeout_s=limits.command_timeout_s or math.inf,
        )
        own = [ToolOffer(f"builtin/{tool.definition.name}", tool, "builtin") for tool in tools]
        names = [tool.definition.name for tool in tools]
        return [*own, *self._server_offers.all(self.servers.members(), names, limits.mcp_call_timeout_s)]

    def permission(self) -> Permission:
        """Return the object that decides on the calls of tools."""
        permissions = self.profile.permissions
        return Permission(
            lambda: self.settings.mode,
            self._approvals,
            self.ask_permission,
            timeout_s=permissions.timeout_s,
            remember=permissions.remember,
        )

    async def ask_permission(
        self, call: v1.ToolCallUpdate, options: list[v1.PermissionOption]
    ) -> v1.RequestPermissionResponse:
        """Ask the person; raises as `Connection.call` does."""
        request = v1.RequestPermissionRequest(session_id=self.id, tool_call=call, options=options)
        return await self.updates.call(SESSION_REQUEST_PERMISSION, request)

    @contextmanager
    def turn(self, cancel: Callable[[], None]) -> Generator[None]:
        """Be busy with a turn that `cancel` stops; raises RpcError when another one is running."""
        if self._cancel_turn is not None:
            raise RpcError(
                ErrorCode.INVALID_REQUEST,
                f"session {self.id} is busy with a turn; wait for its answer or send session/cancel first",
            )
        self._cancel_turn = cancel
        self._idle.clear()
        try:
            yield
        finally:
            self._cancel_turn = None
            self._idle.set()

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self._cancel_turn is not None

    def cancel(self) -> None:
        """Stop the running turn, if there is one."""
        if self._cancel_turn is not None:
            self._cancel_turn()

    async def wait_idle(self) -> None:
        """Wait until no turn is running."""
        await self._idle.wait()

    async def set_directories(self, directories: Sequence[str]) -> None:
        """Change the directories beside the cwd; raises PathError."""
        if list(directories) == list(self.additional_directories):
            return
        self.additional_directories = directories
        if self._workspace is not None:
            self._workspace.set_directories(directories)
        await self.servers.tell_roots()

    # ── its servers ─────────────────────────────────────────────────────────────────────────────

    def use_servers(self, given: Sequence[ClientServer]) -> None:
        """Have these servers of the client, and those of the agent file; they connect from now on."""
        self._has_servers = True
        self.servers.use_clients(given)
        self.servers.use_agents(self.profile.servers)

    def server_meta(self) -> dict[str, Any] | None:
        """Return the states of its servers, for the `_meta` of an answer; None without servers."""
        self._told = self.servers.statuses()
        return {SERVERS_KEY: msgspec.to_builtins(self._told)} if self._told else None

    def _tell_of_servers(self) -> None:
        """Tell the client the changes, once a tick."""
        if self._has_servers and not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell_now)

    def _tell_now(self) -> None:
        self._telling = False
        told = self._told
        meta = self.server_meta()
        if self._told != told:
            self.updates.send_unlogged(v1.SessionInfoUpdate(meta=meta or {SERVERS_KEY: []}))
        prompts = [(member.name, prompt) for member in self.servers.members() for prompt in member.server.prompts]
        if prompts != self._told_prompts and self.on_commands is not None:
            self._told_prompts = prompts
            self.on_commands()

    # ── its conversation ───────────────────────────────────────────────────────────────────────

    def learn(self, message: Message) -> None:
        """Add a message to the conversation of the model."""
        if isinstance(message, SummaryMessage):
            self.messages[:] = [message, UserMessage(message.prompt)] if message.prompt else [message]
            self.context_used = 0
        else:
            self.messages.append(message)
            self.message_count += isinstance(message, UserMessage | AssistantMessage)

    def forget(self) -> None:
        """Forget the conversation, so that the log can restore it."""
        self.messages.clear()
        self.message_count = self.context_used = 0
        self.title = None
        self.spent = TokenUsage(0, 0)
        self.conversation = self.model.start()

    def count(self, usage: TokenUsage) -> None:
        """Add to the tokens of the conversation."""
        self.spent += usage

    def remember(self, message: Message) -> None:
        """Add a message to the conversation of the model, and to the log."""
        self.learn(message)
        self.updates.record("model", msgspec.json.encode(message))

    async def set_title(self, title: str) -> None:
        """Give the session its title, and tell the client."""
        self.title = title
        self.updates.record("title", msgspec.json.encode(title))
        await self.updates.send(v1.SessionInfoUpdate(title=title))

    def show_notices(self) -> None:
        """Show the notices that have come up, each once."""
        notices = [*self.notices, *self.servers.take_notices(), *self.context.notices]
        self.notices.clear()
        self.context.notices.clear()
        for notice in notices:
            self.notify(notice, "warning")

    def notify(self, text: str, severity: v1.NoticeSeverity = "info") -> None:
        """Tell the person something about the conversation: it is no part of the answer, nor of the log.

        The first line of the text can stand alone; the rest is the detail.
        """
        title, _, description = text.strip().partition("\n")
        notice = v1.Notice(severity=severity, title=title.rstrip(":"), description=description or None)
        self.updates.send_unlogged(notice if takes_notices(self.client) else as_thought(notice))

    # ── its settings ─────────────────────────────────────────────────────────────────────────────

    async def use_profile(self, found: FoundProfile) -> None:
        """Let an agent file count from now on; raises UnknownModel, ModelFailure and MissingVariable."""
        self._take_profile(found.profile, await asyncio.to_thread(self._setup.model_for, found.profile))
        self.servers.use_agents(found.profile.servers)
        self._show_settings()

    async def restore_settings(self, settings: SessionSettings) -> None:
        """Restore the settings of the log, as far as they are still allowed."""
        if settings.model is not None:
            try:
                self.use_model(await asyncio.to_thread(self._setup.find, settings.model))
            except DragomanError as error:
                self.notices.append(f"{settings.model} cannot be used any more, so this is {self.model.name}: {error}")
                settings.model = None
        if settings.mode not in self.choices.modes:
            settings.mode = self.profile.permissions.mode
        self.settings = settings
        self.context.included[:] = settings.included

    def keep_included(self) -> None:
        """Log the person's additions to the model's context."""
        self.settings.included = list(self.context.included)
        self.record_settings()

    async def set_option(self, option: str, value: str | bool) -> None:
        """Set a checked value, log it, and tell the client as mode and as option, whichever of them it used.

        Raises UnknownModel and ModelFailure.
        """
        if option == MODEL:
            self.use_model(await asyncio.to_thread(self._setup.find, str(value)))
        setattr(self.settings, option, value)
        self._show_settings()
        await self.updates.flow()

    def _show_settings(self) -> None:
        self.record_settings()
        self.updates.put(v1.CurrentModeUpdate(current_mode_id=self.settings.mode))
        self.updates.put(v1.ConfigOptionUpdate(config_options=self.choices.show(self.settings)))

    async def set_mode(self, mode: str) -> None:
        """Set a mode that was checked."""
        await self.set_option(MODE, mode)

    def use_model(self, model: Model) -> None:
        """Talk with this model from now on."""
        self.model = model
        self.conversation: ModelConversation = model.start()
        self.settings.thought_level = None
        self.choices.thought_levels = model.thought_levels

    def record_settings(self) -> None:
        """Log the settings."""
        self.updates.record("config", self.encoded_settings())

    def encoded_settings(self) -> bytes:
        """Return the settings, as the log has them."""
        return msgspec.json.encode(self.settings)

    def _take_profile(self, profile: Profile, model: Model) -> None:
        self.profile = profile
        modes = [mode for mode in ("ask", "code", "plan", "yolo") if mode != "yolo" or profile.permissions.allow_yolo]
        self.settings = SessionSettings(
            mode=profile.permissions.mode, thoughts=self.settings.thoughts, included=self.settings.included
        )
        boolean = bool(
            self.client.session
            and self.client.session.config_options
            and self.client.session.config_options.boolean is not None
        )
        self.choices = SettingChoices(modes, list(dict.fromkeys([model.name, GUIDE])), boolean=boolean)
        self.use_model(model)


def turn_end(session: Session, outcome: str) -> bytes:
    """Make the record that ends a turn, with a summary of the session for lists."""
    return msgspec.json.encode(
        {
            "event": "end",
            "stopReason": outcome,
            "title": session.title,
            "messages": session.message_count,
            "usage": session.spent,
        }
    )


def check_absolute(cwd: str, path: str = "params.cwd") -> None:
    """Check that a path is absolute; raises InvalidParams with an explanation."""
    if not os.path.isabs(cwd):  # noqa: PTH117 -- a Path would turn "" into "."
        hint = "; `~` is for shells, send the home directory itself" if cwd.startswith("~") else ""
        raise InvalidParams(
            path,
            f"{path.removeprefix('params.')} has to be an absolute path, got {cwd!r}{hint}",
            expected="an absolute path",
            got=cwd,
        )
    if "\0" in cwd:
        raise InvalidParams(path, "a path cannot hold a NUL character")


def check_cwd(cwd: str, path: str = "params.cwd") -> str:
    """Return the directory when a session can work in it; raises InvalidParams with an explanation."""
    check_absolute(cwd, path)
    if not os.path.isdir(cwd):  # noqa: PTH112 -- the path is passed on as it came
        there = "is not a directory" if os.path.exists(cwd) else "does not exist"  # noqa: PTH110 -- as above
        raise InvalidParams(path, f"{cwd} {there} here; send an existing directory", got=cwd)
    return cwd


def check_directories(directories: Sequence[str]) -> list[str]:
    """Return the additional directories when a session can work in them; raises InvalidParams with an explanation."""
    return [
        check_cwd(directory, f"params.additionalDirectories[{position}]")
        for position, directory in enumerate(directories)
    ]
