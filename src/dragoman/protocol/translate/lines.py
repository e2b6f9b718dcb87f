"""Translation of whole lines between a side that speaks version 1 and one that speaks version 2.

Messages of version 2 are decoded with its types before they are translated, so that a mistake is explained in the words
of the version that its sender speaks: a request is refused, a notification is ignored. A client's parameters are taken
strictly; messages of an agent leniently, where the schema says so, and what was mended goes on in its mended form.
Lines that are no messages go to the side of version 1 as they are, and the answer to them comes back as it is.
"""

import logging
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import ErrorCode, InvalidParams, InvalidResult, RpcError
from dragoman.protocol import methods, methods_v2
from dragoman.protocol.decode import ENCODER, decode_params, decode_result, params_decoder, result_decoder
from dragoman.protocol.methods import Method
from dragoman.protocol.notice import CALLS, ECHO, TERMINALS
from dragoman.protocol.translate.envelope import Json, Object, as_object, key_of
from dragoman.protocol.translate.for_v1_client import TranslatorForV1Client
from dragoman.protocol.translate.for_v2_client import TranslatorForV2Client
from dragoman.wire import Malformed, Message, Oversized, error_object, parse
from dragoman.wire.message import BAD_JSON, parse_error, replace_lone_surrogates

_UNCHECKED = frozenset({"mcp/message"})
"""Methods that are the same in both versions, whose params the other side checks."""

_IN_PLACE_OF = {
    "session/load": 'session/resume with replayFrom: {"type": "start"}',
    "session/set_mode": "session/set_config_option with the option of the category mode",
    "authenticate": "auth/login",
    "logout": "auth/logout",
}
"""Methods of version 1, with those of version 2 that do the same."""

_log = logging.getLogger("dragoman.protocol")
_decode = msgspec.json.decode


class TranslatedLines(NamedTuple):
    """The lines to send to each side in place of one that came, without their newlines, in order."""

    to_v1: list[bytes | Oversized]
    to_v2: list[bytes]


class LineTranslation:
    """Translates the lines of one connection; `v2_side` says which of its sides speaks version 2."""

    def __init__(self, v2_side: Literal["client", "agent"]) -> None:
        self._is_strict = v2_side == "client"
        if v2_side == "client":
            for_v2 = TranslatorForV2Client()
            self._take_v1, self._take_v2 = for_v2.from_agent, for_v2.from_client
        else:
            for_v1 = TranslatorForV1Client()
            self._take_v1, self._take_v2 = for_v1.from_client, for_v1.from_agent
        self._asked: dict[bytes, Method[Any, Any]] = {}
        """The requests that the side of version 2 has not answered, by their ids."""
        self._is_initialized = False

    def from_v1(self, line: bytes) -> TranslatedLines:
        """Take a message of the side that speaks version 1."""
        return self._lines_of(*self._take_v1(_decode(line)))

    def from_v2(self, line: bytes | Oversized) -> TranslatedLines:
        """Take a line of the side that speaks version 2."""
        message = parse(line)
        if isinstance(message, Malformed) and isinstance(line, bytes) and (mended := replace_lone_surrogates(line)):
            message = parse(mended)
        if isinstance(message, Malformed):
            return TranslatedLines([line], [])
        try:
            checked = self._check(message)
        except RpcError as refusal:
            if message.id is UNSET:
                _log.warning("a %s was ignored: %s", message.method, refusal)
                return TranslatedLines([], [])
            return TranslatedLines([], [_refuse(message.id, refusal)])
        translated = self._take_v2(checked)
        if message.method == "initialize" and self._is_strict:
            _add_wishes(translated.to_agent)
        return self._lines_of(*translated)

    def _lines_of(self, to_client: Iterable[Object], to_agent: Iterable[Object]) -> TranslatedLines:
        to_v1, to_v2 = (to_agent, to_client) if self._is_strict else (to_client, to_agent)
        told: list[bytes] = []
        for message in to_v2:
            method = methods_v2.REQUESTS.get(message["method"]) if "id" in message and "method" in message else None
            if method is not None and method.name not in _UNCHECKED:
                self._asked[key_of(message["id"])] = method
            told.append(ENCODER.encode(message))
        return TranslatedLines([ENCODER.encode(message) for message in to_v1], told)

    def _check(self, message: Message) -> Object:
        """Return a message of version 2 as parsed JSON that fits its types; raises RpcError."""
        if message.id is UNSET:
            method = methods_v2.NOTIFICATIONS.get(str(message.method))
            return {"jsonrpc": "2.0", "method": message.method, "params": self._params(method, message.params)}
        request_id = _decode(message.id)
        if message.method is None:
            return {"jsonrpc": "2.0", "id": request_id, **self._outcome(request_id, message)}
        if not isinstance(request_id, str | int):
            raise RpcError(ErrorCode.INVALID_REQUEST, "id: expected a string or an integer, as ACP 2 demands")
        params = self._params(self._method_of(message), message.params)
        if message.method == "initialize":
            self._is_initialized = True
        return {"jsonrpc": "2.0", "id": request_id, "method": message.method, "params": params}

    def _method_of(self, message: Message) -> Method[Any, Any] | None:
        name = str(message.method)
        if name in methods_v2.REQUESTS:
            if name == "initialize" and self._is_initialized:
                _check_repeated(message.params)
            return methods_v2.REQUESTS[name]
        if name not in methods.REQUESTS:
            return None
        hint = f"; send {_IN_PLACE_OF[name]}" if name in _IN_PLACE_OF else ""
        raise RpcError(ErrorCode.METHOD_NOT_FOUND, {"method": name}, sentence=f"ACP 2 has no {name}{hint}")

    def _params(self, method: Method[Any, Any] | None, params: Raw) -> Json:
        if method is not None and method.name in _UNCHECKED:
            method = None
        try:
            if method is not None:
                params_decoder(method).decode(params)
            return _decode(params)
        except BAD_JSON as bad:
            if method is None:
                raise InvalidParams("params", str(bad)) from None
        return _decode(ENCODER.encode(decode_params(method, params, lenient=not self._is_strict)))

    def _outcome(self, request_id: Json, message: Message) -> Object:
        """Return the member of a response that has its result or error; a result that does not fit is an error."""
        method = self._asked.pop(key_of(request_id), None)
        if message.error is not UNSET:
            return {"error": msgspec.to_builtins(parse_error(message.error))}
        given = Raw(b"null") if message.result is UNSET else message.result
        try:
            if method is not None:
                result_decoder(method).decode(given)
            return {"result": _decode(given)}
        except BAD_JSON as bad:
            if method is None:
                return _failure(str(bad))
        try:
            return {"result": _decode(ENCODER.encode(decode_result(method, given)))}
        except InvalidResult as bad:
            return _failure(str(bad))


def _add_wishes(messages: Iterable[Object]) -> None:
    """Say in the `initialize` of version 1 what every client of version 2 takes, in our own words for it."""
    for message in messages:
        capabilities = message["params"]["clientCapabilities"]
        wishes = {ECHO: True, CALLS: {"cancel": True}, TERMINALS: {"cancel": True}}
        meta = {**as_object(capabilities.get("_meta")), **wishes}
        message["params"]["clientCapabilities"] = {**capabilities, "_meta": meta}


def _check_repeated(params: Raw) -> None:
    """Refuse a second `initialize` for a lower version, because the first has settled it; raises RpcError."""
    asked = as_object(_decode(params)).get("protocolVersion")
    if isinstance(asked, int) and asked < 2:
        raise RpcError(
            ErrorCode.INVALID_REQUEST, f"this connection speaks ACP 2 already; open another one for version {asked}"
        )


def _refuse(request_id: Raw, refusal: RpcError) -> bytes:
    return ENCODER.encode({"jsonrpc": "2.0", "id": request_id, "error": error_object(refusal)})


def _failure(problem: str) -> Object:
    return {"error": {"code": int(ErrorCode.INTERNAL_ERROR), "message": f"Internal error: {problem}"}}
