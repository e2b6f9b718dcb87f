"""The version of one connection: settled at `initialize`, and translated where the other side speaks version 2.

Our code speaks version 1 on both ends (see `translate`). A `NegotiatedTransport` stands between it and the transport:

    phase       lines of both sides
    OPEN        are looked at until `initialize` settles the version
    SAME        pass as they are: both sides speak version 1
    TRANSLATED  are translated: the other side speaks version 2

The types of version 2 and the translation are imported when a connection comes to TRANSLATED, and not before.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec
from msgspec import UNSET

from dragoman.wire import LayeredTransport, Malformed, Message, Oversized, Transport, parse
from dragoman.wire.message import parse_error

if TYPE_CHECKING:
    from dragoman.protocol.translate.lines import LineTranslation

SWITCH = "DRAGOMAN_ACP_V2"
"""The variable of the environment that turns version 2 off, with the value 0."""

_MAX_VERSION = 0xFFFF
_UNSUPPORTED_VERSION = -32022
_SECOND_ID = 0
"""The id under which a client asks a second time; those of its peer begin at 1."""

_log = logging.getLogger("dragoman.protocol")
_encode = msgspec.json.Encoder().encode


class VersionPhase(Enum):
    """The phase of a connection with respect to its version."""

    OPEN = auto()
    SAME = auto()
    TRANSLATED = auto()


_OPEN, _SAME, _TRANSLATED = VersionPhase.OPEN, VersionPhase.SAME, VersionPhase.TRANSLATED


def speaks_v2() -> bool:
    """Whether this process speaks version 2 where the other side does; the environment can turn it off."""
    return os.environ.get(SWITCH) != "0"


class NegotiatedTransport(LayeredTransport):
    """A transport to a side that speaks either version, for a peer that speaks version 1."""

    def __init__(self, transport: Transport, far_side: Literal["client", "agent"]) -> None:
        super().__init__(transport)
        self.phase = _OPEN
        self._far_side: Literal["client", "agent"] = far_side
        self._translation: LineTranslation | None = None

    @property
    def version(self) -> int:
        """The version that the other side speaks, as far as it is settled."""
        return 2 if self.phase is _TRANSLATED else 1

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, from the transport."""
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
        """Take lines in the phase OPEN."""
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
        if near:  # later, because the peer is in the middle of writing
            asyncio.get_running_loop().call_soon(self._receiver.lines_received, near)

    def _send(self, lines: Sequence[bytes]) -> None:
        if lines:
            self._transport.write(b"".join(b"%b\n" % line for line in lines))


class AnsweringTransport(NegotiatedTransport):
    """The transport of an agent: answers the version that the client asks for, or the one below it that we speak."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "client")

    def _negotiate(self, lines: Sequence[bytes | Oversized]) -> None:
        for position, line in enumerate(lines):
            asked = _asked_version(line)
            if asked is None:
                self._receiver.lines_received([line])
                continue
            if asked < 2:
                self.phase = _SAME
                self._receiver.lines_received(lines[position:])
                return
            translation = self._make_translation()
            near, far = translation.from_v2(line if asked == 2 else _lower(line))
            self._send(far)
            if near:  # else it was refused, and the client may ask again
                self.phase, self._translation = _TRANSLATED, translation
                self._receiver.lines_received(near)
                self.lines_received(lines[position + 1 :])
                return


class AskingTransport(NegotiatedTransport):
    """The transport of a client: asks for version 2, takes version 1, and asks for that where 2 is refused.

    An agent of version 1 finds its own fields in the same `initialize`. One that answers 2 without `info`, which
    version 2 demands, has only echoed the number: it is taken for what it is, an agent of version 1.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "agent")
        self._request: dict[str, Any] = {}
        self._is_second = False
        self._refusal = b""
        """The line with which version 2 was refused."""

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        if self.phase is not _OPEN:
            super().write(lines)
            return
        for line in _split(lines):
            self._send([line if self._request else self._ask(line)])

    def _ask(self, line: bytes) -> bytes:
        """Return the first message, `initialize`, for agents of both versions."""
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
                _log.info("the agent refused version 2 of ACP and is asked for version 1")
                self._send([_encode({**self._request, "id": _SECOND_ID})])
                continue
            self._settle(cast("bytes", line), answer)
            self.lines_received(lines[position + 1 :])
            return

    def _answer_in(self, line: bytes | Oversized) -> Message | None:
        """Return the answer to `initialize`, if a line is that."""
        message = parse(line)
        if isinstance(message, Malformed) or message.method is not None or message.id is UNSET:
            return None
        wanted = _SECOND_ID if self._is_second else self._request.get("id")
        return message if bytes(message.id) == _encode(wanted) else None

    def _settle(self, line: bytes, answer: Message) -> None:
        fields = _fields_of({} if answer.result is UNSET else msgspec.json.decode(answer.result))
        if fields.get("protocolVersion") == 2 and not self._is_second and isinstance(fields.get("info"), dict):
            self.phase, self._translation = _TRANSLATED, self._make_translation()
            self._translation.from_v1(_encode(self._request))  # was sent already, in a form for both versions
            self.lines_received([line])
            return
        self.phase = _SAME
        if fields.get("protocolVersion") == 2:
            _log.warning("the agent answers version 2 of ACP, but in the form of version 1, which is spoken with it")
            fields["protocolVersion"] = 1
            line = _encode({"jsonrpc": "2.0", "id": self._request["id"], "result": fields})
        elif answer.error is not UNSET and parse_error(answer.error).code == _UNSUPPORTED_VERSION:
            line = self._refusal  # it speaks version 2, so that the reason for the first refusal is another one
        elif self._is_second:
            line = _encode({**msgspec.json.decode(line), "id": self._request["id"]})
        self._receiver.lines_received([line])


def _split(lines: bytes | bytearray | memoryview) -> list[bytes]:
    return bytes(lines).removesuffix(b"\n").split(b"\n")


def _fields_of(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class _Asked(msgspec.Struct, rename="camel"):
    protocol_version: int


def _asked_version(line: bytes | Oversized) -> int | None:
    """Return the version that a line asks for, if it is an `initialize` with one."""
    message = parse(line)
    if isinstance(message, Malformed) or message.method != "initialize" or message.id is UNSET:
        return None
    try:
        asked = msgspec.json.decode(message.params, type=_Asked).protocol_version
    except msgspec.DecodeError:
        return None
    return asked if 0 <= asked <= _MAX_VERSION else None


def _lower(line: bytes | Oversized) -> bytes:
    """Return an `initialize` of a version that does not exist yet as one of version 2, with a name in any case."""
    message = msgspec.json.decode(cast("bytes", line))
    params = message["params"]
    info = _fields_of(params.get("info"))
    is_named = all(isinstance(info.get(name), str) for name in ("name", "version"))
    unnamed = {} if is_named else {"info": {"name": "unknown", "version": "0"}}
    return _encode({**message, "params": {**params, **unnamed, "protocolVersion": 2}})
