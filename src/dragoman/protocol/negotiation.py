"""The ACP version of one connection. It is agreed at `initialize`, and version 2 is translated.

Our code speaks version 1 on both ends (see `translate`). A `NegotiatedTransport` is between our code and the transport:

    phase       lines of both sides
    OPEN        are inspected until `initialize` settles the version
    SAME        pass unchanged, because both sides speak version 1
    TRANSLATED  are translated, because the other side speaks version 2

The types of version 2 and the translation are imported only when a connection becomes TRANSLATED.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec
from msgspec import UNSET

from dragoman.errors import ErrorCode
from dragoman.wire import LayeredTransport, Malformed, Message, Oversized, Transport, parse
from dragoman.wire.message import parse_error

if TYPE_CHECKING:
    from dragoman.protocol.translate.lines import LineTranslation

V2_VARIABLE = "DRAGOMAN_ACP_V2"
"""The environment variable that turns version 2 off, with the value 0."""

_MAX_VERSION = 0xFFFF
_SECOND_ID = 0
"""The id of a client's second `initialize`. The ids of its peer start at 1."""

_log = logging.getLogger("dragoman.protocol")
_encode = msgspec.json.Encoder().encode


class VersionPhase(Enum):
    """How far a connection has settled its version."""

    OPEN = auto()
    SAME = auto()
    TRANSLATED = auto()


_OPEN, _SAME, _TRANSLATED = VersionPhase.OPEN, VersionPhase.SAME, VersionPhase.TRANSLATED


def speaks_v2() -> bool:
    """Return whether this process may speak version 2. The environment can turn it off."""
    return os.environ.get(V2_VARIABLE) != "0"


class NegotiatedTransport(LayeredTransport):
    """A transport to a side that speaks either version, for a peer that speaks version 1."""

    def __init__(self, transport: Transport, far_side: Literal["client", "agent"]) -> None:
        super().__init__(transport)
        self.phase = _OPEN
        self._far_side: Literal["client", "agent"] = far_side
        self._translation: LineTranslation | None = None

    @property
    def version(self) -> int:
        """The version that the other side speaks, or 1 until it is settled."""
        return 2 if self.phase is _TRANSLATED else 1

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Receive lines from the transport."""
        if self.phase is _SAME:
            self._receiver.lines_received(lines)
        elif self._translation is not None:
            self._translate_received(lines, self._translation)
        else:
            self._negotiate(lines)

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        if self._translation is None:
            self._transport.write(lines)
        else:
            self._translate_written(lines, self._translation)

    def _negotiate(self, lines: Sequence[bytes | Oversized]) -> None:
        """Handle lines in the phase OPEN."""
        raise NotImplementedError

    def _make_translation(self) -> "LineTranslation":
        from dragoman.protocol.translate.lines import LineTranslation

        return LineTranslation(self._far_side)

    def _translate_received(self, lines: Sequence[bytes | Oversized], translation: "LineTranslation") -> None:
        near: list[bytes | Oversized] = []
        far: list[bytes] = []
        for line in lines:
            to_v1, to_v2 = translation.from_v2(line)
            near += to_v1
            far += to_v2
        self._send(far)
        if near:
            self._receiver.lines_received(near)

    def _translate_written(self, lines: bytes | bytearray | memoryview, translation: "LineTranslation") -> None:
        near: list[bytes | Oversized] = []
        far: list[bytes] = []
        for line in _split(lines):
            to_v1, to_v2 = translation.from_v1(line)
            near += to_v1
            far += to_v2
        self._send(far)
        if near:  # later, because the peer is currently writing
            asyncio.get_running_loop().call_soon(self._receiver.lines_received, near)

    def _send(self, lines: Sequence[bytes]) -> None:
        if lines:
            self._transport.write(b"".join(b"%b\n" % line for line in lines))


class AnsweringTransport(NegotiatedTransport):
    """The transport of an agent. It answers with the requested version, or the highest that it supports."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "client")

    def _negotiate(self, lines: Sequence[bytes | Oversized]) -> None:
        for position, line in enumerate(lines):
            asked = _requested_version(line)
            if asked is None:
                self._receiver.lines_received([line])
                continue
            if asked < 2:
                self.phase = _SAME
                self._receiver.lines_received(lines[position:])
                return
            translation = self._make_translation()
            near, far = translation.from_v2(line if asked == 2 else _downgrade(line))
            self._send(far)
            if near:  # otherwise it was refused, and the client may try again
                self.phase, self._translation = _TRANSLATED, translation
                self._receiver.lines_received(near)
                self.lines_received(lines[position + 1 :])
                return


class AskingTransport(NegotiatedTransport):
    """The transport of a client. It requests version 2, accepts version 1, and requests version 1 if 2 is refused.

    The same `initialize` also contains the fields of version 1. An agent that answers 2 without `info`, which version 2
    requires, only echoed the number. It is treated as an agent of version 1.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "agent")
        self._request: dict[str, Any] = {}
        self._is_second = False
        self._refusal = b""
        """The response that refused version 2."""

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        if self.phase is not _OPEN:
            super().write(lines)
            return
        for line in _split(lines):
            self._send([line if self._request else self._make_initialize(line)])

    def _make_initialize(self, line: bytes) -> bytes:
        """Return an `initialize` for agents of both versions."""
        from dragoman.protocol.translate.setup import initialize_to_v2

        self._request = msgspec.json.decode(line)
        params = self._request["params"]
        return _encode({**self._request, "params": {**params, **initialize_to_v2(params)}})

    def _negotiate(self, lines: Sequence[bytes | Oversized]) -> None:
        for position, line in enumerate(lines):
            answer = self._answer_in(line)
            if answer is None:
                self._receiver.lines_received([line])
                continue
            if answer.error is not UNSET and not self._is_second:
                self._is_second, self._refusal = True, cast("bytes", line)
                _log.info("the agent refused version 2 of ACP, so version 1 is tried")
                self._send([_encode({**self._request, "id": _SECOND_ID})])
                continue
            self._settle(cast("bytes", line), answer)
            self.lines_received(lines[position + 1 :])
            return

    def _answer_in(self, line: bytes | Oversized) -> Message | None:
        """Return the response to `initialize` if the line contains it."""
        message = parse(line)
        if isinstance(message, Malformed) or message.method is not None or message.id is UNSET:
            return None
        request_id = _SECOND_ID if self._is_second else self._request.get("id")
        return message if bytes(message.id) == _encode(request_id) else None

    def _settle(self, line: bytes, answer: Message) -> None:
        fields = _fields_of({} if answer.result is UNSET else msgspec.json.decode(answer.result))
        if fields.get("protocolVersion") == 2 and not self._is_second and isinstance(fields.get("info"), dict):
            self.phase, self._translation = _TRANSLATED, self._make_translation()
            self._translation.from_v1(_encode(self._request))  # already sent, in a form for both versions
            self.lines_received([line])
            return
        self.phase = _SAME
        if fields.get("protocolVersion") == 2:
            _log.warning("the agent answered with version 2 of ACP, but in the form of version 1, so version 1 is used")
            fields["protocolVersion"] = 1
            line = _encode({"jsonrpc": "2.0", "id": self._request["id"], "result": fields})
        elif answer.error is not UNSET and parse_error(answer.error).code == ErrorCode.UNSUPPORTED_VERSION:
            line = self._refusal  # the agent speaks version 2, so it refused for another reason
        elif self._is_second:
            line = _encode({**msgspec.json.decode(line), "id": self._request["id"]})
        self._receiver.lines_received([line])


def _split(lines: bytes | bytearray | memoryview) -> list[bytes]:
    return bytes(lines).removesuffix(b"\n").split(b"\n")


def _fields_of(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class _VersionRequest(msgspec.Struct, rename="camel"):
    protocol_version: int


def _requested_version(line: bytes | Oversized) -> int | None:
    """Return the version that an `initialize` requests, or None for other lines."""
    message = parse(line)
    if isinstance(message, Malformed) or message.method != "initialize" or message.id is UNSET:
        return None
    try:
        asked = msgspec.json.decode(message.params, type=_VersionRequest).protocol_version
    except msgspec.DecodeError:
        return None
    return asked if 0 <= asked <= _MAX_VERSION else None


def _downgrade(line: bytes | Oversized) -> bytes:
    """Return an `initialize` for an unknown later version as one for version 2, with a valid `info`."""
    message = msgspec.json.decode(cast("bytes", line))
    params = message["params"]
    info = _fields_of(params.get("info"))
    is_named = all(isinstance(info.get(name), str) for name in ("name", "version"))
    unnamed = {} if is_named else {"info": {"name": "unknown", "version": "0"}}
    return _encode({**message, "params": {**params, **unnamed, "protocolVersion": 2}})
