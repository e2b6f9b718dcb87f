"""Translation of whole lines between a side that speaks version 1 and one that speaks version 2.

Version 2 messages are decoded with their types before they are translated, so errors are explained in the sender's
version: a request is refused, a notification is ignored. A client's parameters are decoded strictly. An agent's
messages are decoded as leniently as the schema allows, and passed on repaired. Lines that are not messages are
passed unchanged to the version 1 side, and its response is returned unchanged.
"""

import logging
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import ErrorCode, InvalidParamsError, InvalidResultError, RpcError
from dragoman.protocol import methods, methods_v2
from dragoman.protocol.decode import ENCODER, decode_params, decode_result, params_decoder, result_decoder
from dragoman.protocol.extensions import CALLS, ECHO, TERMINALS
from dragoman.protocol.methods import Method
from dragoman.protocol.translate.envelope import Json, Object, as_object, key_of
from dragoman.protocol.translate.for_v1_client import TranslatorForV1Client
from dragoman.protocol.translate.for_v2_client import TranslatorForV2Client
from dragoman.wire import Malformed, Message, Oversized, error_object, parse
from dragoman.wire.message import BAD_JSON, parse_error, parse_mended

_UNCHECKED = frozenset({"mcp/message"})
"""Methods that are the same in both versions. The other side checks their params."""

_IN_PLACE_OF = {
    "session/load": 'session/resume with replayFrom: {"type": "start"}',
    "session/set_mode": "session/set_config_option with the option of the category mode",
    "authenticate": "auth/login",
    "logout": "auth/logout",
}
"""Methods of version 1, with the equivalent in version 2."""

_log = logging.getLogger("dragoman.protocol")
_decode = msgspec.json.decode


class TranslatedLines(NamedTuple):
    """The lines to send to each side in place of a received one, without their newlines, in order."""

    to_v1: list[bytes | Oversized]
    to_v2: list[bytes]


class LineTranslation:
    """Translates the lines of one connection. `v2_side` is the side that speaks version 2."""

    def __init__(self, v2_side: Literal["client", "agent"]) -> None:
        self._is_strict = v2_side == "client"
        if v2_side == "client":
            for_v2 = TranslatorForV2Client()
            self._translate_v1, self._translate_v2 = for_v2.from_agent, for_v2.from_client
        else:
            for_v1 = TranslatorForV1Client()
            self._translate_v1, self._translate_v2 = for_v1.from_client, for_v1.from_agent
        self._unanswered: dict[bytes, Method[Any, Any]] = {}
        """The unanswered requests to the version 2 side, by id."""
        self._is_initialized = False

    def from_v1(self, line: bytes) -> TranslatedLines:
        """Translate a message from the version 1 side."""
        return self._lines_of(*self._translate_v1(_decode(line)))

    def from_v2(self, line: bytes | Oversized) -> TranslatedLines:
        """Translate a line from the version 2 side."""
        message, _ = parse_mended(line) if isinstance(line, bytes) else (parse(line), line)
        if isinstance(message, Malformed):
            return TranslatedLines([line], [])
        try:
            checked = self._check(message)
        except RpcError as refusal:
            if message.id is UNSET:
                _log.warning("a %s was ignored: %s", message.method, refusal)
                return TranslatedLines([], [])
            return TranslatedLines([], [_refuse(message.id, refusal)])
        translated = self._translate_v2(checked)
        if message.method == "initialize" and self._is_strict:
            _request_extensions(translated.to_agent)
        return self._lines_of(*translated)

    def _lines_of(self, to_client: Iterable[Object], to_agent: Iterable[Object]) -> TranslatedLines:
        to_v1, to_v2 = (to_agent, to_client) if self._is_strict else (to_client, to_agent)
        lines: list[bytes] = []
        for message in to_v2:
            method = methods_v2.REQUESTS.get(message["method"]) if "id" in message and "method" in message else None
            if method is not None and method.name not in _UNCHECKED:
                self._unanswered[key_of(message["id"])] = method
            lines.append(ENCODER.encode(message))
        return TranslatedLines([ENCODER.encode(message) for message in to_v1], lines)

    def _check(self, message: Message) -> Object:
        """Return a version 2 message as parsed JSON that fits its types. Raises RpcError."""
        if message.id is UNSET:
            method = methods_v2.NOTIFICATIONS.get(str(message.method))
            return {"jsonrpc": "2.0", "method": message.method, "params": self._params(method, message.params)}
        request_id = _decode(message.id)
        if message.method is None:
            return {"jsonrpc": "2.0", "id": request_id, **self._outcome(request_id, message)}
        if not isinstance(request_id, str | int):
            raise RpcError(ErrorCode.INVALID_REQUEST, "id: expected a string or an integer, as ACP 2 requires")
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
                raise InvalidParamsError("params", str(bad)) from None
        return _decode(ENCODER.encode(decode_params(method, params, lenient=not self._is_strict)))

    def _outcome(self, request_id: Json, message: Message) -> Object:
        """Return the `result` or `error` of a response. A result of the wrong type becomes an error."""
        method = self._unanswered.pop(key_of(request_id), None)
        if message.error is not UNSET:
            return {"error": msgspec.to_builtins(parse_error(message.error))}
        result = Raw(b"null") if message.result is UNSET else message.result
        try:
            if method is not None:
                result_decoder(method).decode(result)
            return {"result": _decode(result)}
        except BAD_JSON as bad:
            if method is None:
                return _failure(str(bad))
        try:
            return {"result": _decode(ENCODER.encode(decode_result(method, result)))}
        except InvalidResultError as bad:
            return _failure(str(bad))


def _request_extensions(messages: Iterable[Object]) -> None:
    """Announce in a version 1 `initialize` the extensions that every version 2 client supports."""
    for message in messages:
        capabilities = message["params"]["clientCapabilities"]
        extensions = {ECHO: True, CALLS: {"cancel": True}, TERMINALS: {"cancel": True}}
        meta = {**as_object(capabilities.get("_meta")), **extensions}
        message["params"]["clientCapabilities"] = {**capabilities, "_meta": meta}


def _check_repeated(params: Raw) -> None:
    """Refuse a second `initialize` for a lower version, because the first one settled the version. Raises RpcError."""
    asked = as_object(_decode(params)).get("protocolVersion")
    if isinstance(asked, int) and asked < 2:
        raise RpcError(
            ErrorCode.INVALID_REQUEST, f"this connection already speaks ACP 2; open another one for version {asked}"
        )


def _refuse(request_id: Raw, refusal: RpcError) -> bytes:
    return ENCODER.encode({"jsonrpc": "2.0", "id": request_id, "error": error_object(refusal)})


def _failure(problem: str) -> Object:
    return {"error": {"code": int(ErrorCode.INTERNAL_ERROR), "message": f"Internal error: {problem}"}}
