"""Translation between the ACP versions of viewers and of their agent.

Inside the bridge everything is in the agent's version. A viewer of the other version has its requests translated when
they arrive and their answers when they are sent. Journals keep records as the agent sent them, and records are
translated when such a viewer reads them. If both sides speak one version, nothing is translated.
"""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import InvalidParamsError, RpcError
from dragoman.protocol import methods
from dragoman.protocol.decode import decode_params
from dragoman.protocol.negotiation import speaks_v2
from dragoman.protocol.translate import TranslatorForV1Client, TranslatorForV2Client
from dragoman.protocol.translate.content import BLOCKS, blocks_to_v1, blocks_to_v2
from dragoman.protocol.translate.envelope import Object, as_object, objects_in, without
from dragoman.protocol.translate.questions import (
    elicitation_to_v1,
    elicitation_to_v2,
    outcome_to_v1,
    permission_to_v1,
    permission_to_v2,
)
from dragoman.protocol.translate.session_for_v1 import SessionForV1Client, SupportedUpdates
from dragoman.protocol.translate.session_for_v2 import SessionForV2Client
from dragoman.protocol.translate.setup import UntranslatableServerError, initialize_to_v2, setup_to_v1, setup_to_v2
from dragoman.wire import error_object
from dragoman.wire.envelope import encode
from dragoman.wire.message import BAD_JSON

Version = Literal[1, 2]
V1: Version = 1
V2: Version = 2

PERMISSION = methods.SESSION_REQUEST_PERMISSION.name
ELICIT = methods.ELICITATION_CREATE.name

_WITH_TERMINAL: Object = {"terminal": {}}
_NO_WORDS = "this JSON cannot be translated"

_decode = msgspec.json.Decoder().decode


def version_of_viewer(asked: int, params: dict[str, Raw]) -> Version:
    """Return the version in which to answer a viewer: the highest that the viewer and the bridge support.

    A viewer that asks for a higher version with params of version 1 supports only version 1.
    """
    if asked < V2 or not speaks_v2():
        return V1
    is_v1 = ("clientCapabilities" in params or "clientInfo" in params) and "info" not in params
    return V1 if is_v1 else V2


def version_of_agent(result: dict[str, Raw]) -> Version:
    """Return the version that an agent speaks, judged by its answer to `initialize`.

    Some agents of version 1 repeat any requested version. `info` is required in version 2.
    """
    return V2 if bytes(result.get("protocolVersion", b"")) == b"2" and "info" in result else V1


def initialize_of_both(params: Raw) -> dict[str, Any]:
    """Return params that have the fields of both versions. The agent reads the fields of its version."""
    given = as_object(_decode(params))
    made = initialize_to_v2(given)
    capabilities = as_object(made["capabilities"])
    own = as_object(given.get("clientCapabilities"))
    if isinstance(own.get("elicitation"), dict):
        capabilities = {"elicitation": own["elicitation"], **capabilities}
    if as_object(own.get("auth")).get("terminal") is True:
        capabilities = {"auth": _WITH_TERMINAL, **capabilities}
    return {**given, "protocolVersion": V2, "info": made["info"], "capabilities": capabilities}


def check_params(version: Version, method: str, params: Raw | UnsetType) -> None:
    """Check params against the version of their sender before they are translated. Raises InvalidParamsError."""
    if version == V2:
        from dragoman.protocol import methods_v2  # types of version 2 are loaded only if a peer speaks it

        known = methods_v2.REQUESTS.get(method)
    else:
        known = methods.REQUESTS.get(method)
    if known is not None and known.side == "agent":
        decode_params(known, b"null" if params is UNSET else params)


class TranslatedRequest(msgspec.Struct, frozen=True):
    """A viewer's request in the agent's version."""

    method: str
    params: Raw
    line: bytes


class RequestTranslator:
    """Translates the requests of one viewer, and their answers.

    It does not track prompts and updates. A session has many viewers, so the session itself tracks its turns.
    """

    def __init__(self, viewer_version: Version) -> None:
        self._version = viewer_version
        self._machine = TranslatorForV2Client() if viewer_version == V2 else TranslatorForV1Client()

    def introduce(self, params: Raw, result: dict[str, Any]) -> dict[str, Any]:
        """Record a viewer's `initialize` and the agent's answer, and return the answer for the viewer."""
        self._machine.from_client(
            {"jsonrpc": "2.0", "id": 0, "method": methods.INITIALIZE.name, "params": _decode(params)}
        )
        answered = self._machine.from_agent({"jsonrpc": "2.0", "id": 0, "result": _decode(encode(result))})
        return as_object(answered.to_client[0].get("result"))

    def request(self, line: bytes, setup: dict[str, Raw] | None) -> TranslatedRequest | list[bytes]:
        """Return a request for the agent, or the lines that answer it if the agent's version has no such request.

        `setup` has the settings of its session. Raises InvalidParamsError.
        """
        try:
            message = as_object(_decode(line))
        except BAD_JSON:
            raise InvalidParamsError("params", _NO_WORDS) from None
        if message["method"] == methods.SESSION_PROMPT.name:
            return self._prompt(message)
        if setup is not None:
            session_id = str(as_object(message.get("params")).get("sessionId"))
            self._machine.set_offers(session_id, as_object(_decode(encode(setup))))
        to_client, to_agent = self._machine.from_client(message)
        if not to_agent:
            return [encode(each) for each in to_client]
        return _request_of(to_agent[0])

    def answer(self, line: bytes) -> list[bytes]:
        """Return the answer to a translated request, and the updates that belong to it, in order."""
        to_client, _ = self._machine.from_agent(as_object(_decode(line)))
        return [encode(each) for each in to_client if not _is_snapshot(each)]

    def forget(self, session_id: str) -> None:
        """Forget a session that the viewer has left."""
        self._machine.forget(session_id)

    def _prompt(self, message: Object) -> TranslatedRequest:
        params = as_object(message.get("params"))
        for index, block in enumerate(objects_in(params.get("prompt"))):
            if block.get("type") not in BLOCKS:
                problem = f"the agent speaks ACP {3 - self._version}, which has no {block.get('type')!r}"
                raise InvalidParamsError(f"params.prompt[{index}].type", problem, expected=", ".join(sorted(BLOCKS)))
        blocks = (blocks_to_v1 if self._version == V2 else blocks_to_v2)(params.get("prompt"))
        return _request_of({**message, "params": {**params, "prompt": blocks}})


def _request_of(message: Object) -> TranslatedRequest:
    params = Raw(encode(message.get("params")))
    return TranslatedRequest(message["method"], params, encode({**message, "params": params}))


def _is_snapshot(message: Object) -> bool:
    """Return whether a message is the state of a session, which the bridge sends itself."""
    update = as_object(as_object(message.get("params")).get("update"))
    return update.get("sessionUpdate") == "state_update"


def setup_for(version: Version, params: dict[str, Raw], written_in: Version) -> dict[str, Any]:
    """Translate the params that opened a session into the agent's version. Omit servers that it cannot express."""
    given = {name: value for name, value in params.items() if name != "replayFrom"}
    if version == written_in:
        return given
    decoded = as_object(_decode(encode(given)))
    change = setup_to_v2 if version == V2 else setup_to_v1
    servers: list[Any] = []
    for server in objects_in(decoded.get("mcpServers")):
        try:
            servers += change({"mcpServers": [server]})["mcpServers"]
        except UntranslatableServerError:
            continue
    return {**decoded, "mcpServers": servers}


class _PlainText(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _PlainUpdate(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    session_update: Literal["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]
    content: _PlainText
    message_id: str | UnsetType = UNSET


class _PlainParams(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    session_id: str
    update: _PlainUpdate


class _PlainChunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A chunk of plain text, which is the most frequent message. Between the versions only its message id differs."""

    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: _PlainParams


_decode_plain = msgspec.json.Decoder(_PlainChunk).decode_lines
_encode_lines = msgspec.json.Encoder().encode_lines

TranslatedLines = bytes | list[list[bytes]]
"""One line per original line, or for each original line a list of lines without newlines."""


class StreamTranslator:
    """Translates the records of one session for one viewer, in the order of the journal."""

    def __init__(self, session_id: str, version: Version, takes: SupportedUpdates, name: Callable[[int], str]) -> None:
        self._seq = 0
        self._machine: SessionForV1Client | SessionForV2Client
        if version == V2:
            # A message without an id is named after its first record, so that each replay has the same id.
            self._machine = SessionForV2Client(session_id, lambda: name(self._seq))
        else:
            self._machine = SessionForV1Client(session_id, takes)

    def translate(self, lines: bytes, first: int) -> TranslatedLines:
        """Return the lines in the viewer's version, or the same object if nothing differs."""
        try:
            chunks = _decode_plain(lines)
        except BAD_JSON:
            pass
        else:
            plain = self._translate_plain(lines, first, chunks)
            if plain is not None:
                return plain
        return [self._translate_line(line, seq) for seq, line in enumerate(lines[:-1].split(b"\n"), first)]

    def title_of(self, call_id: object) -> str | None:
        """Return the title of a tool call, if an update has named it."""
        return self._machine.title_of(call_id) if isinstance(self._machine, SessionForV2Client) else None

    def permission_to_v1(self, params: Object, make_id: Callable[[], str]) -> Object:
        """Return the params of a request for permission for a viewer of version 1."""
        machine = self._machine
        calls = (
            machine if isinstance(machine, SessionForV1Client) else SessionForV1Client("", SupportedUpdates())
        ).calls
        return permission_to_v1(params, calls, make_id)

    def _translate_plain(self, lines: bytes, first: int, chunks: list[_PlainChunk]) -> bytes | None:
        """Translate plain chunks without decoding them fully. Return None if they need the general way."""
        machine = self._machine
        updates = [chunk.params.update for chunk in chunks]
        # For version 1, chunks with message ids need no change. Version 2 requires an id in each chunk.
        if isinstance(machine, SessionForV1Client):
            if any(each.message_id is UNSET for each in updates):
                return None
            texts = [(each.session_update, str(each.message_id), each.content.text) for each in updates]
            return lines if machine.record_plain_text(texts) else None
        is_changed = False
        for seq, each in enumerate(updates, first):
            self._seq = seq
            given = each.message_id
            if given is UNSET or not given:
                each.message_id = machine.message_of(each.session_update, None)
                is_changed = True
            else:
                machine.message_of(each.session_update, given)
        return _encode_lines(chunks) if is_changed else lines

    def _translate_line(self, line: bytes, seq: int) -> list[bytes]:
        self._seq = seq
        try:
            message = as_object(_decode(line))
        except BAD_JSON:
            return [line]
        params = as_object(message.get("params"))
        if message.get("method") != methods.SESSION_UPDATE.name or not isinstance(params.get("update"), dict):
            return [line]
        rest = without(params, "sessionId", "update")
        translated = self._machine.translate_update(as_object(params["update"]))
        return [encode({**each, "params": {**as_object(each["params"]), **rest}}) for each in translated]


def question_for(
    version: Version, method: str, params: Raw, stream: StreamTranslator | None, make_id: Callable[[], str]
) -> Any:
    """Return the params of the agent's question for a viewer of the other version."""
    given = as_object(_decode(params))
    if method == ELICIT:
        return elicitation_to_v2(given) if version == V2 else elicitation_to_v1(given)
    if method != PERMISSION:
        return given
    if version == V2:
        title = stream.title_of(as_object(given.get("toolCall")).get("toolCallId")) if stream else None
        return permission_to_v2(given, title)
    stream = stream or StreamTranslator("", V1, SupportedUpdates(), str)
    return stream.permission_to_v1(given, make_id)


def answer_to_v1(method: str, result: Raw) -> Any:
    """Return the answer of a viewer of version 2 to a question of an agent of version 1."""
    return outcome_to_v1(as_object(_decode(result))) if method == PERMISSION else result


def explain_refusal(id_: bytes, error: RpcError) -> bytes:
    """Return the error answer to a request with invalid params."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "error": error_object(error)})


def not_found_data(problem: Any, session_id: str | None) -> dict[str, Any]:
    """Return the data of the error for an unknown session, which names it in version 2."""
    given = as_object(problem) if isinstance(problem, dict) else {"problem": problem}
    return {**given, "sessionId": session_id or ""}
