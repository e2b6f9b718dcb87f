"""The extension requests of the first minute, which clients find in `_meta["dragoman/start"]` of our capabilities.

    introduce    {cwd, sessionId?}                                        → Introduction
    offers       {}                                                       → Offers
    connect      {provider, model?, apiKey?, baseUrl?, cwd?, sessionId?}   → Connected and `countsBefore`, or `problem`
    chooseAgent  {agent: NAME or null}                                    → {}

`connect` is the one that takes a secret: `protocol.secrecy` hides its params wherever messages are shown. A session
that is named takes the new model at once; sessions after it begin with it, unless `countsBefore` says why not.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.assistant.options import MODEL
from dragoman.assistant.preferences import PreferenceFile
from dragoman.assistant.session import AssistantSession
from dragoman.assistant.setup import AgentSetup
from dragoman.assistant.start.connecting import NotConnected, Wish, connect_model
from dragoman.assistant.start.introduction import introduce
from dragoman.assistant.start.offers import find_offers
from dragoman.errors import DragomanError, ErrorCode, InvalidParams, RpcError


class _Place(msgspec.Struct, rename="camel"):
    cwd: str = ""
    session_id: str = ""


class _Agent(msgspec.Struct):
    agent: str | None


class StartRequests:
    """Answers them, for one client."""

    def __init__(self, setup: AgentSetup, sessions: Mapping[str, AssistantSession]) -> None:
        self._setup = setup
        self._sessions = sessions

    async def answer(self, name: str, params: dict[str, Any]) -> Any:
        """Answer a request; raises RpcError."""
        answers = {
            "introduce": self._introduce,
            "offers": self._find_offers,
            "connect": self._connect,
            "chooseAgent": self._choose_agent,
        }
        try:
            return await answers[name](params)
        except msgspec.ValidationError as error:
            raise InvalidParams("params", str(error)) from None
        except DragomanError as error:
            if isinstance(error, RpcError):
                raise
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error)) from error

    async def _introduce(self, params: dict[str, Any]) -> Any:
        place = msgspec.convert(params, _Place)
        session = self._sessions.get(place.session_id)
        if session is not None:
            return await asyncio.to_thread(introduce, session.model, Path(session.session.cwd))
        if not place.cwd:
            raise InvalidParams("params.cwd", "there is no directory", expected="a directory, or a sessionId")
        _, model = await asyncio.to_thread(self._setup.choose, place.cwd)
        return await asyncio.to_thread(introduce, model, Path(place.cwd))

    async def _find_offers(self, params: dict[str, Any]) -> Any:
        del params
        return await find_offers(self._setup.home)

    async def _connect(self, params: dict[str, Any]) -> Any:
        wish, place = msgspec.convert(params, Wish), msgspec.convert(params, _Place)
        try:
            connected = await connect_model(wish, self._setup.home)
        except NotConnected as error:
            return {"problem": str(error)}
        named = self._sessions.get(place.session_id)
        for session in list(self._sessions.values()):
            session.offer_model(connected.model)
        if named is not None:
            await named.take_model(connected.model)
            await named.session.set_option(MODEL, connected.model)
        cwd = named.session.cwd if named is not None else place.cwd
        reason = await asyncio.to_thread(self._setup.reason_against_choice, cwd) if cwd else None
        return {**msgspec.to_builtins(connected), "countsBefore": reason}

    async def _choose_agent(self, params: dict[str, Any]) -> Any:
        chosen = msgspec.convert(params, _Agent).agent
        await asyncio.to_thread(PreferenceFile(self._setup.home).choose_agent, chosen)
        return {}
