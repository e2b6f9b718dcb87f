"""A session of our agent: its agent file, its model, and the model's memory and context."""

import asyncio
import math
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, aclosing
from typing import TYPE_CHECKING

import msgspec

from dragoman.agent.sessions.session import Session
from dragoman.agent.turns.model_request import ModelRequest
from dragoman.agent.turns.turn import Turn
from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.command_list import COMMAND_NAMES
from dragoman.assistant.context import ModelContext, ToolOffer
from dragoman.assistant.context.candidates import ServerOffers, ServerTool
from dragoman.assistant.instructions import instructions_of_servers
from dragoman.assistant.models.message import Message, SummaryMessage, UserMessage
from dragoman.assistant.models.model import (
    Model,
    ModelConversation,
    ReplyRequest,
    ReplyRetry,
    ReplyStop,
    ReplyText,
)
from dragoman.assistant.options import GUIDE, MODEL, SANDBOX, THOUGHT_LEVEL, modes_of, options_of
from dragoman.assistant.profile import FoundProfile, ProfileChoice
from dragoman.assistant.setup import AgentSetup
from dragoman.assistant.skill_commands import skill_commands
from dragoman.assistant.tools.tool import Tool
from dragoman.errors import DragomanError
from dragoman.protocol.unions import decode_hook
from dragoman.sandbox import SANDBOX_MODES, SandboxMode

if TYPE_CHECKING:
    from dragoman.assistant.tools.run_command import CommandSandbox

INCLUDED = "included"
"""The key in the session's state for the user's additions to the context."""

_decode_message = msgspec.json.Decoder(Message, dec_hook=decode_hook).decode


class ModelMemory:
    """The conversation as the model remembers it. Each message is a record of the session log."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.messages: list[Message] = []
        self.context_used = 0

    def learn(self, message: Message) -> None:
        """Add a message to the model's conversation."""
        if isinstance(message, SummaryMessage):
            self.messages[:] = [message, UserMessage(message.prompt)] if message.prompt else [message]
            self.context_used = 0
        else:
            self.messages.append(message)

    def remember(self, message: Message) -> None:
        """Add a message to the model's conversation and to the log."""
        self.learn(message)
        self._session.record(message)

    def restore(self, data: bytes) -> None:
        """Add a message from the log."""
        self.learn(_decode_message(data))

    def forget(self) -> None:
        """Forget everything, so that the log can be restored."""
        self.messages.clear()
        self.context_used = 0


class AssistantSession:
    """The part of a session that belongs to our agent and not to the kit."""

    def __init__(self, session: Session, setup: AgentSetup, choice: ProfileChoice, model: Model) -> None:
        self.session = session
        self.setup = setup
        self.pending = choice.pending
        """The project's agent file that waits for the user's approval."""
        self.pending_changes = choice.changes
        self.memory = ModelMemory(session)
        self.context = ModelContext(self.offers, lambda: self.profile)
        self._server_offers = ServerOffers()
        self._has_warned = False
        self._chosen: str | None = None
        """The model that the user chose while this session was open."""
        if choice.notice and choice.pending is None:
            session.notice_later(choice.notice)
        self._problems: Sequence[str] = ()
        self._apply_profile(choice.found, model)

    def offers(self) -> list[ToolOffer]:
        """Return the tools that may be sent to the model now."""
        from dragoman.assistant.tools.builtin import builtin_tools
        from dragoman.assistant.tools.mcp_resources import resource_tools
        from dragoman.assistant.tools.read_skill import skill_tools

        permissions, limits = self.profile.permissions, self.profile.limits
        tools = builtin_tools(
            self.session.workspace,
            self.session.updates.send,
            ask_outside_reads=permissions.ask_outside_reads,
            command_timeout_s=limits.command_timeout_s or math.inf,
            sandbox=self._sandbox(),
        )
        tools += skill_tools(self.profile.skills)
        tools += resource_tools(self.session.mcp)
        own = [ToolOffer(f"builtin/{tool.definition.name}", tool, "builtin") for tool in tools]
        names = [tool.definition.name for tool in tools]
        return [*own, *self._server_offers.all(self.session.mcp.tools(names))]

    def _sandbox(self) -> "CommandSandbox | None":
        from dragoman.assistant.tools.run_command import CommandSandbox

        chosen = self.session.options[SANDBOX]
        # A setting from a log may no longer be a value. Commands then stay in a sandbox.
        mode: SandboxMode = chosen if chosen in SANDBOX_MODES else "workspace"
        return None if mode == "off" else CommandSandbox(mode, self.profile.sandbox.writable, self._warn_of_sandbox)

    def _warn_of_sandbox(self, problem: str) -> None:
        """Tell the user once why commands do not run in the sandbox."""
        if not self._has_warned:
            self._has_warned = True
            self.session.notice(f"Commands run outside the sandbox and ask first.\n{problem}", "warning")

    def server_instructions(self, tools: Iterable[Tool]) -> str:
        """Return the instructions of servers that provide one of these tools, or that have no tools at all."""
        used = {tool.server for tool in tools if isinstance(tool, ServerTool)}
        servers = [member.server for member in self.session.mcp.servers.members()]
        return instructions_of_servers(
            {each.name: each.instructions for each in servers if each.name in used or not each.tools}
        )

    @property
    def offered_models(self) -> list[str]:
        """The model names offered to the client. The configured one is first."""
        return list(dict.fromkeys(filter(None, [self._configured.name, self._chosen, GUIDE])))

    def forget(self) -> None:
        """Forget the conversation, so that the log can be restored."""
        self.memory.forget()
        self.conversation = self.model.start()

    async def ask(
        self, turn: Turn, request: ReplyRequest, on_text: Callable[[str], Awaitable[None]] | None = None
    ) -> tuple[str, str | None]:
        """Ask the model outside of the conversation. Return its text, and why it stopped early or None.

        `on_text` receives each piece, including pieces from before a retry. Raises ModelError.
        """
        pieces: list[str] = []
        stop: str | None = None
        retries_id = str(uuid.uuid4())
        with self.trace_request(turn):
            async with aclosing(self.conversation.reply(request)) as parts:
                async for part in parts:
                    match part:
                        case ReplyText(words):
                            pieces.append(words)
                            if on_text is not None:
                                await on_text(words)
                        case TokenUsage():
                            turn.count(part)
                        case ReplyRetry():
                            pieces.clear()
                            await turn.notice(part.message(), key=retries_id)
                        case ReplyStop(reason):
                            stop = reason
                        case _:
                            pass
        return "".join(pieces), stop

    def trace_request(self, turn: Turn) -> AbstractContextManager[ModelRequest]:
        """Trace a request to the model. A script, or a model without a provider, is named only by its kind."""
        kind, _, name = self.model.name.partition(":")
        return turn.model_request(kind if kind == "script" or not name else name, provider=kind)

    # ── its settings ────────────────────────────────────────────────────────────────────────────

    async def use_profile(self, found: FoundProfile) -> None:
        """Apply an agent file from now on. Raises UnknownModelError, ModelError or MissingVariableError."""
        model = await asyncio.to_thread(self.setup.model_for, found.profile)
        self.session.settings.values.pop(MODEL, None)
        self.session.settings.values.pop("mode", None)
        self.session.settings.values.pop(SANDBOX, None)
        self._apply_profile(found, model)
        self.session.show_commands()
        self.session.mcp.use_own_servers(found.profile.servers)
        self.session.show_settings()

    async def restore_settings(self) -> None:
        """Restore the settings in the log, as far as they are still possible."""
        values = self.session.settings.values
        name = values.get(MODEL)
        if name is not None:
            try:
                self._set_model(await asyncio.to_thread(self.setup.find, name))
            except DragomanError as error:
                self.session.notice_later(
                    f"{name} can no longer be used, so this session uses {self.model.name}: {error}"
                )
                del values[MODEL]
        self.context.included[:] = self.session.state.get(INCLUDED) or []

    async def use_model(self, name: str) -> None:
        """Use this model from now on. Raises UnknownModelError or ModelError."""
        model = await asyncio.to_thread(self.setup.find, name)
        self.session.settings.values.pop(THOUGHT_LEVEL, None)
        self._set_model(model)

    def offer_model(self, name: str) -> None:
        """Offer the client one more model to choose."""
        self._chosen = name
        self._declare()
        self.session.show_settings()

    def save_included(self) -> None:
        """Save the user's additions to the context in the session's state."""
        self.session.settings.values.pop(INCLUDED, None)
        self.session.state[INCLUDED] = list(self.context.included)

    def show_notices(self) -> None:
        """Show each pending notice once."""
        self.session.show_notices()
        notices = list(self.context.notices)
        self.context.notices.clear()
        for notice in notices:
            self.session.notice(notice, "warning")

    def _apply_profile(self, found: FoundProfile, model: Model) -> None:
        session, profile = self.session, found.profile
        self.profile = profile
        self.skill_commands = skill_commands(profile.skills, COMMAND_NAMES)
        for problem in found.problems:
            if problem not in self._problems:
                session.notice_later(problem)
        self._problems = found.problems
        self._configured = model
        session.permission.timeout_s = profile.permissions.timeout_s
        session.permission.remember = profile.permissions.remember
        session.mcp.own_servers = profile.servers
        session.mcp.wait_s = profile.limits.mcp_wait_s
        session.mcp.call_timeout_s = profile.limits.mcp_call_timeout_s
        session.settings.values.pop(THOUGHT_LEVEL, None)
        self._set_model(model)

    def _set_model(self, model: Model) -> None:
        self.model = model
        self.conversation: ModelConversation = model.start()
        self._declare()

    def _declare(self) -> None:
        self.session.declare(
            modes=modes_of(self.profile),
            options=options_of(self.offered_models, self.model, self.setup.sandbox or self.profile.sandbox.chosen),
            default_mode=self.profile.permissions.mode,
        )
