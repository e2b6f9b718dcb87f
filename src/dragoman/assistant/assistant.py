"""dragoman's own agent: the functions that it registers with the kit.

`initialize` is answered before anything else is imported. Models, tools and the agent file come with the first session.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import msgspec

from dragoman import __version__
from dragoman.agent.agent import Agent
from dragoman.agent.program import CONTENT_KINDS, NoAuth
from dragoman.assistant.command_list import COMMANDS
from dragoman.errors import ErrorCode, InvalidParamsError, MissingKeyError, ModelError, RpcError
from dragoman.protocol import v1
from dragoman.protocol.extensions import CONNECT_MODEL

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.agent.sessions.session import Session
    from dragoman.agent.turns.turn import Turn
    from dragoman.assistant.auth import Auth
    from dragoman.assistant.session import AssistantSession
    from dragoman.assistant.setup import AgentSetup
    from dragoman.store import Store


START_METHODS = {
    "introduce": "_dragoman/introduce",
    "offers": "_dragoman/models/offers",
    "connect": CONNECT_MODEL,
    "chooseAgent": "_dragoman/agents/choose",
}
"""The extension requests for choosing a first model. `start/requests.py` implements them."""

_WITHOUT_LOGIN = "The configured model needs no login. `dragoman login` stores a provider's API key."


class ConfiguredModel(msgspec.Struct, frozen=True):
    """Facts about the default model that are known before the first session."""

    auth: "Auth | None" = None
    """The login that the model needs, if any."""
    content_types: frozenset[str] = frozenset()
    """The content types that the model accepts besides text, as in `Model.content_types`."""


def make_agent(
    open_store: "Callable[[], Store]",
    make_setup: "Callable[[], AgentSetup]",
    find_model: Callable[[], ConfiguredModel] = ConfiguredModel,
) -> Agent:
    """Create our agent. The store and the setup are created for the first session.

    `find_model` is called at `initialize`, so it must be quick and import nothing heavy. A project's agent file or the
    user may choose another model for a session. If that model does not accept the prompt's content, the prompt is
    refused.
    """
    assistant = _Assistant(make_setup, find_model)
    agent = Agent(
        "dragoman",
        version=__version__,
        title="Dragoman",
        auth=assistant.find_auth,
        content_types=assistant.find_content_types,
        system_prompt="override",
        store=open_store,
        home=assistant.find_home,
        protected_file=assistant.find_agent_file,
    )
    assistant.register(agent)
    return agent


class _Assistant:
    """The functions of our agent, and the setup that its sessions share."""

    def __init__(self, make_setup: "Callable[[], AgentSetup]", find_model: Callable[[], ConfiguredModel]) -> None:
        self._make_setup = make_setup
        self._find_model = find_model
        self._setup: AgentSetup | None = None
        self._configured = ConfiguredModel()
        self._sessions: WeakValueDictionary[str, AssistantSession] = WeakValueDictionary()

    @property
    def setup(self) -> "AgentSetup":
        if self._setup is None:
            self._setup = self._make_setup()
        return self._setup

    def register(self, agent: Agent) -> None:
        agent.on_open(self._open)
        agent.on_record(self._restore_record)
        agent.on_session(self._begin)
        agent.on_option(self._set_option)
        agent.check_prompt(self._check_prompt)
        agent.on_turn(self._ask_for_trust)
        agent.on_prompt(self._answer)
        agent.on_sample(self._sample)
        agent.on_shutdown(self._shut_down)
        for name, description, hint in COMMANDS:
            agent.command(name, description, hint=hint)(_run_command)
        agent.program.session_commands = lambda session: session.extra.skill_commands
        for name, method in START_METHODS.items():
            agent.on_extension(method)(partial(self._answer_start, name))
        agent.declare_meta("dragoman/start", START_METHODS)

    def find_auth(self) -> "Auth | NoAuth":
        self._configured = self._find_model()
        return self._configured.auth or NoAuth(_WITHOUT_LOGIN)

    def find_content_types(self) -> frozenset[str]:
        return self._configured.content_types & {"image", "audio"}  # documents are resources, which every agent accepts

    def find_home(self) -> "Path":
        return self.setup.home

    def find_agent_file(self) -> str | None:
        return self.setup.agent_file

    # ── sessions ────────────────────────────────────────────────────────────────────────────────

    async def _open(self, session: "Session") -> None:
        """Choose the agent file and the model. If the log is read again, forget the conversation instead.

        Raises ProfileError, UnknownModelError, ModelError or MissingVariableError.
        """
        from dragoman.assistant.session import AssistantSession

        if session.extra is not None:
            session.extra.forget()
            return
        choice, model = await asyncio.to_thread(self.setup.choose, session.cwd)
        session.extra = self._sessions[session.id] = AssistantSession(session, self.setup, choice, model)

    def _restore_record(self, session: "Session", data: bytes) -> None:
        session.extra.memory.restore(data)

    async def _begin(self, session: "Session", origin: str) -> None:
        if origin != "new":
            await session.extra.restore_settings()

    async def _set_option(self, session: "Session", option: str, value: str | bool) -> None:
        if option == "model":
            await session.extra.use_model(str(value))

    async def _answer_start(self, name: str, params: dict[str, Any]) -> Any:
        from dragoman.assistant.start.requests import StartRequests

        return await StartRequests(self.setup, self._sessions).answer(name, params)

    async def _shut_down(self) -> None:
        if self._setup is not None:
            await self._setup.close()

    # ── turns ───────────────────────────────────────────────────────────────────────────────────

    def _check_prompt(self, session: "Session", prompt: Sequence[v1.ContentBlock]) -> None:
        model = session.extra.model
        for position, block in enumerate(prompt):
            kind = CONTENT_KINDS.get(type(block))
            if kind is not None and kind not in model.content_types:
                raise InvalidParamsError(
                    f"params.prompt[{position}].type",
                    f"{model.name} does not accept {kind} content; leave it out or choose another model",
                    expected="content that the model accepts",
                )

    async def _ask_for_trust(self, turn: "Turn") -> None:
        if turn.session.extra.pending is None:
            return
        from dragoman.assistant.trust_question import ask_for_trust

        with self._model_errors(turn):
            await ask_for_trust(turn)

    async def _answer(self, turn: "Turn") -> v1.StopReason:
        from dragoman.assistant.turn import ModelTurn

        with self._model_errors(turn):
            return await ModelTurn(turn).run()

    async def _sample(self, turn: "Turn", params: dict[str, Any]) -> dict[str, Any]:
        from dragoman.assistant.sampling import sample

        return await sample(turn, params)

    def _model_errors(self, turn: "Turn") -> "_ModelErrors":
        return _ModelErrors(turn, self._configured.auth)


class _ModelErrors:
    """Turns a model's failure into the error of the prompt. Asks for a login if one would help."""

    def __init__(self, turn: "Turn", auth: "Auth | None") -> None:
        self._turn = turn
        self._auth = auth

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, ModelError):
            return
        self._turn.calls.end("the model failed")
        if not isinstance(error, MissingKeyError):
            raise RpcError(ErrorCode.INTERNAL_ERROR, f"the model failed: {error}") from error
        offered = self._auth.methods_for(self._turn.session.extra.model.name) if self._auth else []
        if not offered:
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error)) from error
        raise RpcError(ErrorCode.AUTH_REQUIRED, {"problem": str(error), "authMethods": offered}) from error


async def _run_command(turn: "Turn") -> None:
    from dragoman.assistant.commands import FUNCTIONS

    await turn.say(await FUNCTIONS[turn.command or ""](turn, turn.arguments))
