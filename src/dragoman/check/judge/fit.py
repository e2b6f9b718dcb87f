"""Whether a message is what the schema says, to the letter."""

from collections import Counter
from typing import Any

import msgspec

from dragoman.check.judge import strict
from dragoman.check.judge.extra import find_extra
from dragoman.check.judge.message import Json, Message
from dragoman.protocol import lenient
from dragoman.protocol.methods import NOTIFICATIONS, REQUESTS, Method
from dragoman.protocol.misfit import SECRET_FIELDS, Misfit, Place, quote

MAX_EXPLAINED = 100
"""How often the same refusal is looked into: by hand it costs a hundred times the decoder."""

_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ENVELOPES = {
    "request": frozenset({"jsonrpc", "id", "method", "params"}),
    "notification": frozenset({"jsonrpc", "method", "params"}),
    "result": frozenset({"jsonrpc", "id", "result", "error"}),
    "error": frozenset({"jsonrpc", "id", "result", "error"}),
}
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _StrictPlace(Place):
    """A place where nothing is mended: what only informs a peer has to be right, too."""

    def key(self, name: str) -> Place:
        step = f".{name}" if name.isidentifier() else f"[{quote(name)}]"
        return _StrictPlace(self.path + step, lenient=False, secret=self.secret or name in SECRET_FIELDS)

    def item(self, index: int) -> Place:
        return _StrictPlace(f"{self.path}[{index}]", lenient=False, secret=self.secret)


class Flaw(msgspec.Struct, frozen=True):
    """One place of a message that is not as the schema has it, or a field that it has not at all."""

    path: str
    problem: str
    misfit: Misfit | None = None


class Fitter:
    """Looks at the messages of one conversation."""

    def __init__(self) -> None:
        self._explained: Counter[tuple[str, str, str]] = Counter()
        self._decoders: dict[tuple[str, str], Any] = {}

    def find_flaws(self, message: Message) -> list[Flaw]:
        """Return what is wrong with a message; nothing for methods that the protocol does not have."""
        key = (message.kind, message.method)
        decode = self._decoders.get(key)
        if decode is None:
            decode = _find_decode(message)
            if decode is None:
                return []
            self._decoders[key] = decode
        try:
            decode(message.entry.line)
        except _REFUSALS as error:
            return self._explain(message, str(error))
        return []

    def _explain(self, message: Message, refusal: str) -> list[Flaw]:
        key = (message.kind, message.method, refusal)
        self._explained[key] += 1
        if self._explained[key] > MAX_EXPLAINED:
            return []
        return [*_explain_body(message), *_explain_envelope(message)]


def is_mendable(message: Message) -> bool:
    """Tell whether the params of a request can be read as the schema's marks allow, though they do not fit."""
    method = REQUESTS.get(message.method)
    if method is None:
        return True
    try:
        lenient.build(method.params, {} if message.body is None else message.body, Place("params", lenient=True))
    except Misfit:
        return False
    return True


def _find_decode(message: Message) -> Any:
    if message.kind == "error":
        return strict.error_decoder().decode
    method = _method(message)
    if method is None:
        return None
    if message.kind == "result":
        return strict.result_decoder(method).decode
    return strict.params_decoder(method, message.kind).decode


def _method(message: Message) -> Method[Any, Any] | None:
    if message.kind == "notification":
        return NOTIFICATIONS.get(message.method)
    return REQUESTS.get(message.method)


def _explain_body(message: Message) -> list[Flaw]:
    if message.kind == "error":
        return _explain_error(message.body)
    method = _method(message)
    if method is None:
        return []
    name, type_ = ("result", method.result) if message.kind == "result" else ("params", method.params)
    value: Json = message.body
    if value is None and (lenient.accepts_nothing(type_) or type_ is Any):
        return []
    try:
        lenient.build(type_, value, _StrictPlace(name, lenient=False))
    except Misfit as misfit:
        return [Flaw(misfit.path, misfit.problem, misfit)]
    return [Flaw(path, "the specification has no such field") for path in find_extra(type_, value, name)]


def _explain_error(value: Json) -> list[Flaw]:
    try:
        msgspec.convert(value, strict.ErrorObject)
    except msgspec.ValidationError as error:
        return [Flaw("error", str(error))]
    return []


def _explain_envelope(message: Message) -> list[Flaw]:
    allowed = _ENVELOPES[message.kind]
    return [
        Flaw(name, "the specification has no such field")
        for name in _decode_fields(message.entry.line)
        if name not in allowed
    ]
