"""What a server says and asks by itself."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import msgspec
from mcp.client.session import ClientRequestContext, IncomingMessage
from pydantic import BaseModel

from dragoman.errors import RpcError
from dragoman.mcp.host import Host

_log = logging.getLogger("dragoman.mcp")

_TROUBLE = frozenset(("warning", "error", "critical", "alert", "emergency"))


class Listener(msgspec.Struct, frozen=True):
    """Who is told what a server says of itself, and who answers it."""

    name: str
    host: Callable[[], Host]
    on_change: Callable[[], None]
    """The server's tools or prompts are other ones now."""
    clean: Callable[[str], str]
    """Hides the server's secrets in a text."""


class Ears:
    """The callbacks that the SDK wants, for a listener."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    async def hear(self, message: IncomingMessage) -> None:
        """Notice that a list has changed. It is not asked for here: the answer would wait behind this very message."""
        if isinstance(message, types.ToolListChangedNotification | types.PromptListChangedNotification):
            self._listener.on_change()

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Put what the server logs into our log."""
        level = logging.WARNING if params.level in _TROUBLE else logging.INFO
        _log.log(level, "%s: %s", self._listener.name, self._listener.clean(str(params.data)))

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Say where the server may work."""
        del context
        roots = [{"uri": Path(root).as_uri()} for root in self._listener.host().roots()]
        return types.ListRootsResult.model_validate({"roots": roots})

    async def elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Ask the person."""
        del context
        answer = await self._listener.host().elicit(self._listener.name, plain(params))
        return types.ElicitResult.model_validate(answer)

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask the model."""
        del context
        try:
            answer = await self._listener.host().sample(self._listener.name, plain(params))
        except RpcError as error:
            return types.ErrorData(code=error.code, message=error.message, data=error.data)
        return types.CreateMessageResult.model_validate(answer)


def plain(model: BaseModel) -> dict[str, Any]:
    """Return what the SDK parsed as the JSON that it was."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)
