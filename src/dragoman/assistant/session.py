"""A session of our agent: its agent file, its model, the model's memory and the model's context."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, aclosing

import msgspec

from dragoman.agent.model_operation import ModelOperation
from dragoman.agent.session import Session
from dragoman.agent.turn import Turn
from dragoman.assistant.context import ModelContext, ToolOffer
from dragoman.assistant.context.candidates import ServerOffers, ServerTool
from dragoman.assistant.instructions import words_of_servers
from dragoman.assistant.models.message import Message, SummaryMessage, UserMessage
from dragoman.assistant.models.model import (
    Model,
    ModelConversation,
    ModelRequest,
    ReplyRetry,
    ReplyStop,
    ReplyText,
    TokenUsage,
)
from dragoman.assistant.options import GUIDE, MODEL, THOUGHT_LEVEL, modes_of, options_of
from dragoman.assistant.profile import FoundProfile, Profile, ProfileChoice
from dragoman.assistant.setup import AgentSetup
from dragoman.assistant.tools.tool import Tool
from dragoman.errors import DragomanError
from dragoman.protocol.unions import decode_hook

INCLUDED = "included"
"""The key of the session's state for the person's additions to the model's context."""

_NAMED_BY_FILE = ("script", "local")

_decode_message = msgspec.json.Decoder(Message, dec_hook=decode_hook).decode


class ModelMemory:
    """The conversation as the model remembers it; each message is a record of the session's log."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.messages: list[Message] = []
        self.context_used = 0

    def learn(self, message: Message) -> None:
        """Add a message to the conversation of the model."""
        if isinstance(message, SummaryMessage):
            self.messages[:] = [message, UserMessage(message.prompt)] if message.prompt else [message]
            self.context_used = 0
        else:
            self.messages.append(message)

    def remember(self, message: Message) -> None:
        """Add a message to the conversation of the model, and to the log."""
        self.learn(message)
        self._session.record(message)

    def restore(self, data: bytes) -> None:
        """Add a message of the log."""
        self.learn(_decode_message(data))

    def forget(self) -> None:
        """Forget everything, so that the log can restore it."""
        self.messages.clear()
        self.context_used = 0


class AssistantSession:
    """What our agent has for a session, beside what the kit has."""

    def __init__(self, session: Session, setup: AgentSetup, choice: ProfileChoice, model: Model) -> None:
        self.session = session
        self.setup = setup
        self.pending = choice.pending
        """The agent file of the project that waits for the person's agreement."""
        self.pending_changes = choice.changes
        self.memory = ModelMemory(session)
        self.context = ModelContext(setup.home, self.offers, lambda: self.profile)
        self._server_offers = ServerOffers()
        self._chosen: str | None = None
        """The model that the person chose while this session was open."""
        if choice.notice and choice.pending is None:
            session.notice_later(choice.notice)
        self._take_profile(choice.found.profile, model)

    def offers(self) -> list[ToolOffer]:
        """Return the tools that may be put in front of the model now."""
        from dragoman.assistant.tools.builtin import builtin_tools
        from dragoman.assistant.tools.mcp_resources import resource_tools

        permissions, limits = self.profile.permissions, self.profile.limits
        tools = builtin_tools(
            self.session.workspace,
            self.session.updates.send,
            ask_outside_reads=permissions.ask_outside_reads,
            command_timeout_s=limits.command_timeout_s or math.inf,
        )
        tools += resource_tools(self.session.mcp)
        own = [ToolOffer(f"builtin/{tool.definition.name}", tool, "builtin") for tool in tools]
        names = [tool.definition.name for tool in tools]
        return [*own, *self._server_offers.all(self.session.mcp.tools(names))]

    def server_words(self, given: Iterable[Tool]) -> str:
        """Return the instructions of the servers whose tools a model is given, and of those that have no tools."""
        used = {tool.server for tool in given if isinstance(tool, ServerTool)}
        servers = [member.server for member in self.session.mcp.servers.members()]
        return words_of_servers(
            {each.name: each.instructions for each in servers if each.name in used or not each.tools}
        )

    @property
    def offered_models(self) -> list[str]:
        """The names of the models that the client is offered, the configured one first."""
        return list(dict.fromkeys(filter(None, [self._configured.name, self._chosen, GUIDE])))

    def forget(self) -> None:
        """Forget the conversation, so that the log can restore it."""
        self.memory.forget()
        self.conversation = self.model.start()

    async def ask(
        self, turn: Turn, request: ModelRequest, hear: Callable[[str], Awaitable[None]] | None = None
    ) -> tuple[str, str | None]:
        """Ask the model beside the conversation, and return its words and the reason why it stopped short, if it did.

        `hear` gets each piece, also those before the model starts over. Raises ModelFailure.
        """
        said: list[str] = []
        stop: str | None = None
        with self.trace_request(turn):
            async with aclosing(self.conversation.reply(request)) as parts:
                async for part in parts:
                    match part:
                        case ReplyText(words):
                            said.append(words)
                            if hear is not None:
                                await hear(words)
                        case TokenUsage():
                            turn.count(part)
                        case ReplyRetry():
                            said.clear()
                            await turn.notice(part.words())
                        case ReplyStop(reason):
                            stop = reason
                        case _:
                            pass
        return "".join(said), stop

    def trace_request(self, turn: Turn) -> AbstractContextManager[ModelOperation]:
        """Have a request to the model in the trace; a script or a file of a model is named by its kind alone."""
        kind, _, name = self.model.name.partition(":")
        return turn.model_request(kind if kind in _NAMED_BY_FILE or not name else name, provider=kind)

    # ── its settings ────────────────────────────────────────────────────────────────────────────

    async def use_profile(self, found: FoundProfile) -> None:
        """Let an agent file count from now on; raises UnknownModel, ModelFailure and MissingVariable."""
        model = await asyncio.to_thread(self.setup.model_for, found.profile)
        self.session.settings.values.pop(MODEL, None)
        self.session.settings.values.pop("mode", None)
        self._take_profile(found.profile, model)
        self.session.mcp.use_own_servers(found.profile.servers)
        self.session.show_settings()

    async def restore_settings(self) -> None:
        """Take up the settings of the log, as far as they are still possible."""
        values = self.session.settings.values
        name = values.get(MODEL)
        if name is not None:
            try:
                self._use_model(await asyncio.to_thread(self.setup.find, name))
            except DragomanError as error:
                self.session.notice_later(f"{name} cannot be used any more, so this is {self.model.name}: {error}")
                del values[MODEL]
        # Logs of earlier versions have the additions among the settings.
        self.context.included[:] = self.session.state.get(INCLUDED) or values.get(INCLUDED) or []

    async def take_model(self, name: str) -> None:
        """Talk with this model from now on; raises UnknownModel and ModelFailure."""
        model = await asyncio.to_thread(self.setup.find, name)
        self.session.settings.values.pop(THOUGHT_LEVEL, None)
        self._use_model(model)

    def offer_model(self, name: str) -> None:
        """Offer the client one more model to choose from."""
        self._chosen = name
        self._declare()
        self.session.show_settings()

    def keep_included(self) -> None:
        """Keep the person's additions to the model's context."""
        self.session.settings.values.pop(INCLUDED, None)
        self.session.state[INCLUDED] = list(self.context.included)

    def show_notices(self) -> None:
        """Show the notices that have come up, each once."""
        self.session.show_notices()
        notices = list(self.context.notices)
        self.context.notices.clear()
        for notice in notices:
            self.session.notice(notice, "warning")

    def _take_profile(self, profile: Profile, model: Model) -> None:
        session = self.session
        self.profile = profile
        self._configured = model
        session.permission.timeout_s = profile.permissions.timeout_s
        session.permission.remember = profile.permissions.remember
        session.mcp.own_servers = profile.servers
        session.mcp.wait_s = profile.limits.mcp_wait_s
        session.mcp.call_timeout_s = profile.limits.mcp_call_timeout_s
        session.settings.values.pop(THOUGHT_LEVEL, None)
        self._use_model(model)

    def _use_model(self, model: Model) -> None:
        self.model = model
        self.conversation: ModelConversation = model.start()
        self._declare()

    def _declare(self) -> None:
        self.session.declare(
            modes=modes_of(self.profile),
            options=options_of(self.offered_models, self.model),
            default_mode=self.profile.permissions.mode,
        )
