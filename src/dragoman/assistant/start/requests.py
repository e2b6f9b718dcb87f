"""The extension requests for onboarding, announced in `_meta["dragoman/start"]` of our capabilities.

    introduce    {cwd, sessionId?}                                        → Introduction
    offers       {}                                                       → Offers
    connect      {provider, model?, apiKey?, baseUrl?, cwd?, sessionId?}   → Connected and `countsBefore`, or `problem`
    chooseAgent  {agent: NAME or null}                                    → {}

Only `connect` has a secret, and `protocol.secrecy` redacts its params in all shown messages. The session that is named
switches to the new model at once. New sessions use it as well, unless `countsBefore` names the setting that overrides
it.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.assistant.models.model import Model
from dragoman.assistant.options import GUIDE, MODEL
from dragoman.assistant.preferences import PreferenceFile
from dragoman.assistant.session import AssistantSession
from dragoman.assistant.setup import AgentSetup
from dragoman.assistant.start.connecting import ModelConnectError, Wish, connect_model
from dragoman.assistant.start.example_prompts import example_prompts
from dragoman.assistant.start.offers import find_offers
from dragoman.errors import DragomanError, ErrorCode, InvalidParamsError, RpcError


class Introduction(msgspec.Struct, frozen=True, rename="camel"):
    """The model and prompts to try in the directory, for an empty conversation."""

    model: str
    is_language_model: bool
    words: str
    """One sentence about the model."""
    prompts: list[str]
    takes: list[str]
    """The content types that the model accepts besides text."""


class _Place(msgspec.Struct, rename="camel"):
    cwd: str = ""
    session_id: str = ""


class _Agent(msgspec.Struct):
    agent: str | None


class StartRequests:
    """Answers the requests of one client."""

    def __init__(self, setup: AgentSetup, sessions: Mapping[str, AssistantSession]) -> None:
        self._setup = setup
        self._sessions = sessions

    async def answer(self, name: str, params: dict[str, Any]) -> Any:
        """Answer a request. Raises RpcError."""
        answers = {
            "introduce": self._introduce,
            "offers": self._find_offers,
            "connect": self._connect,
            "chooseAgent": self._choose_agent,
        }
        try:
            return await answers[name](params)
        except msgspec.ValidationError as error:
            raise InvalidParamsError("params", str(error)) from None
        except DragomanError as error:
            if isinstance(error, RpcError):
                raise
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error)) from error

    async def _introduce(self, params: dict[str, Any]) -> Any:
        place = msgspec.convert(params, _Place)
        session = self._sessions.get(place.session_id)
        if session is not None:
            return await asyncio.to_thread(_introduce, session.model, Path(session.session.cwd))
        if not place.cwd:
            raise InvalidParamsError(
                "params.cwd", "the directory does not exist", expected="a directory, or a sessionId"
            )
        _, model = await asyncio.to_thread(self._setup.choose, place.cwd)
        return await asyncio.to_thread(_introduce, model, Path(place.cwd))

    async def _find_offers(self, _params: dict[str, Any]) -> Any:
        return await find_offers(self._setup.home)

    async def _connect(self, params: dict[str, Any]) -> Any:
        wish, place = msgspec.convert(params, Wish), msgspec.convert(params, _Place)
        try:
            connected = await connect_model(wish, self._setup.home)
        except ModelConnectError as error:
            return {"problem": str(error)}
        named = self._sessions.get(place.session_id)
        for session in list(self._sessions.values()):
            session.offer_model(connected.model)
        if named is not None:
            await named.use_model(connected.model)
            await named.session.set_option(MODEL, connected.model)
        cwd = named.session.cwd if named is not None else place.cwd
        reason = await asyncio.to_thread(self._setup.find_override, cwd) if cwd else None
        return {**msgspec.to_builtins(connected), "countsBefore": reason}

    async def _choose_agent(self, params: dict[str, Any]) -> Any:
        chosen = msgspec.convert(params, _Agent).agent
        await asyncio.to_thread(PreferenceFile(self._setup.home).choose_agent, chosen)
        return {}


def _introduce(model: Model, directory: Path) -> Introduction:
    """Describe a conversation that has not begun. Reads the directory, so call it in a thread."""
    kind = model.name.partition(":")[0]
    return Introduction(
        model.name,
        kind not in (GUIDE, "script"),
        _introduction(model.name, kind),
        example_prompts(directory, for_guide=kind in (GUIDE, "script")),
        sorted(model.content_types),
    )


def _introduction(name: str, kind: str) -> str:
    if kind == GUIDE:
        return "No language model is connected. The built-in guide needs no key and follows simple requests."
    if kind == "script":
        return f"{name} plays a script. It is not a language model."
    return f"The model is {name}."
