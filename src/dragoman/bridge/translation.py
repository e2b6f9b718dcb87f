"""Versions of ACP between viewers and their agent: each viewer speaks its own, and the agent speaks its own.

Everything behind this file is in the version of the agent: requests are translated when they come from a viewer, their
answers when they go back, and the records of a journal, which keeps them as the agent sent them, when a viewer of the
other version takes them. Peers of one version meet nothing of this file.
"""

import os
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.bridge.envelope import encode
from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.protocol import methods
from dragoman.protocol.decode import decode_params
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
from dragoman.protocol.translate.session_for_v1 import ClientTakes, SessionForV1Client
from dragoman.protocol.translate.session_for_v2 import SessionForV2Client
from dragoman.protocol.translate.setup import UntranslatableServer, initialize_to_v2, setup_to_v1, setup_to_v2
from dragoman.wire import error_object
from dragoman.wire.message import BAD_JSON

Version = Literal[1, 2]
V1: Version = 1
V2: Version = 2

PERMISSION = "session/request_permission"
ELICIT = "elicitation/create"

_OPENING = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_WITH_TERMINAL: Object = {"terminal": {}}
_NO_WORDS = "this is no JSON that can be translated"

_decode = msgspec.json.Decoder().decode


def is_v2_on() -> bool:
    """Tell whether version 2, a draft, is spoken at all: `DRAGOMAN_ACP_V2=0` turns it off."""
    return os.environ.get("DRAGOMAN_ACP_V2") != "0"


def version_of_viewer(asked: int, params: dict[str, Raw]) -> Version:
    """Return the version in which a viewer is answered: the highest that it takes and the bridge has.

    A viewer that asks for more than version 1 in the words of version 1 knows no other.
    """
    if asked < V2 or not is_v2_on():
        return V1
    is_v1 = ("clientCapabilities" in params or "clientInfo" in params) and "info" not in params
    return V1 if is_v1 else V2


def version_of_agent(result: dict[str, Raw]) -> Version:
    """Return the version that an agent speaks by its answer to `initialize`.

    Some agents of version 1 repeat any version that they are asked for. `info` is required in version 2.
    """
    return V2 if bytes(result.get("protocolVersion", b"")) == b"2" and "info" in result else V1


def initialize_of_both(params: Raw) -> dict[str, Any]:
    """Return params of version 1 with those of version 2 beside them: the agent reads those of its own version."""
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
    """Check params that are to be translated, by the version of their sender; raises InvalidParams."""
    if version == V2:
        from dragoman.protocol import methods_v2  # only a process that meets version 2 loads its types

        known = methods_v2.REQUESTS.get(method)
    else:
        known = methods.REQUESTS.get(method)
    if known is not None and known.side == "agent":
        decode_params(known, b"null" if params is UNSET else params)


class TranslatedRequest(msgspec.Struct, frozen=True):
    """A viewer's request in the words of the agent's version."""

    method: str
    params: Raw
    line: bytes


class RequestTranslator:
    """The requests of one viewer and their answers, between its version and that of the agent.

    Prompts and updates are no part of it: a session has many viewers, so that the bridge itself knows its turns.
    """

    def __init__(self, viewer_version: Version) -> None:
        self._version = viewer_version
        self._machine = TranslatorForV2Client() if viewer_version == V2 else TranslatorForV1Client()

    def introduce(self, params: Raw, result: dict[str, Any]) -> dict[str, Any]:
        """Take a viewer's `initialize` with the agent's answer, and return the viewer's."""
        self._machine.from_client({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _decode(params)})
        answered = self._machine.from_agent({"jsonrpc": "2.0", "id": 0, "result": _decode(encode(result))})
        return as_object(answered.to_client[0].get("result"))

    def request(self, line: bytes, setup: dict[str, Raw] | None) -> TranslatedRequest | list[bytes]:
        """Return a request for the agent, or the answers to one that it cannot be asked; raises InvalidParams.

        `setup` has the settings of the session that it is about.
        """
        try:
            message = as_object(_decode(line))
        except BAD_JSON:
            raise InvalidParams("params", _NO_WORDS) from None
        if message["method"] == "session/prompt":
            return self._prompt(message)
        if setup is not None:
            session_id = str(as_object(message.get("params")).get("sessionId"))
            self._machine.take_offers(session_id, as_object(_decode(encode(setup))))
        told, asked = self._machine.from_client(message)
        if not asked:
            return [encode(each) for each in told]
        return _request_of(asked[0])

    def answer(self, line: bytes) -> list[bytes]:
        """Return the answer to a request that was translated, with the updates that go with it, in order."""
        told, _ = self._machine.from_agent(as_object(_decode(line)))
        return [encode(each) for each in told if not _is_snapshot(each)]

    def forget(self, session_id: str) -> None:
        """Forget a session that the viewer has left."""
        self._machine.forget(session_id)

    def _prompt(self, message: Object) -> TranslatedRequest:
        params = as_object(message.get("params"))
        for index, block in enumerate(objects_in(params.get("prompt"))):
            if block.get("type") not in BLOCKS:
                problem = f"the agent speaks ACP {3 - self._version}, which has no {block.get('type')!r}"
                raise InvalidParams(f"params.prompt[{index}].type", problem, expected=", ".join(sorted(BLOCKS)))
        blocks = (blocks_to_v1 if self._version == V2 else blocks_to_v2)(params.get("prompt"))
        return _request_of({**message, "params": {**params, "prompt": blocks}})


def _request_of(message: Object) -> TranslatedRequest:
    params = Raw(encode(message.get("params")))
    return TranslatedRequest(message["method"], params, encode({**message, "params": params}))


def _is_snapshot(message: Object) -> bool:
    """Tell whether a message is the state of a session, which the bridge tells itself."""
    update = as_object(as_object(message.get("params")).get("update"))
    return update.get("sessionUpdate") == "state_update"


def setup_for(version: Version, params: dict[str, Raw], written_in: Version) -> dict[str, Any]:
    """Return params that opened a session as the agent's version has them; servers that it cannot have are left out."""
    given = {name: value for name, value in params.items() if name != "replayFrom"}
    if version == written_in:
        return given
    decoded = as_object(_decode(encode(given)))
    change = setup_to_v2 if version == V2 else setup_to_v1
    servers: list[Any] = []
    for server in objects_in(decoded.get("mcpServers")):
        try:
            servers += change({"mcpServers": [server]})["mcpServers"]
        except UntranslatableServer:
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
    """A chunk of plain text: the most frequent message, which differs between the versions in its id alone."""

    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: _PlainParams


_decode_plain = msgspec.json.Decoder(_PlainChunk).decode_lines
_encode_lines = msgspec.json.Encoder().encode_lines

TranslatedLines = bytes | list[list[bytes]]
"""Lines, one in the place of each; or for each line those in its place, without newlines."""


class StreamTranslator:
    """The records of one session in the other version, told to one viewer in the order of its journal."""

    def __init__(self, session_id: str, version: Version, takes: ClientTakes, name: Callable[[int], str]) -> None:
        self._seq = 0
        self._machine: SessionForV1Client | SessionForV2Client
        if version == V2:
            # A message without an id is named by its first record: whoever replays it gets the same id.
            self._machine = SessionForV2Client(session_id, lambda: name(self._seq))
        else:
            self._machine = SessionForV1Client(session_id, takes)

    def translate(self, lines: bytes, first: int) -> TranslatedLines:
        """Return the lines of the viewer's version; the same object where nothing differs."""
        try:
            chunks = _decode_plain(lines)
        except BAD_JSON:
            pass
        else:
            plain = self._take_plain(lines, first, chunks)
            if plain is not None:
                return plain
        return [self._take(line, seq) for seq, line in enumerate(lines[:-1].split(b"\n"), first)]

    def title_of(self, call_id: object) -> str | None:
        """Return the title of a tool call, as far as it was told."""
        return self._machine.title_of(call_id) if isinstance(self._machine, SessionForV2Client) else None

    def permission_to_v1(self, params: Object, make_id: Callable[[], str]) -> Object:
        """Return the params of a request for permission for a viewer of version 1."""
        machine = self._machine
        calls = (machine if isinstance(machine, SessionForV1Client) else SessionForV1Client("", ClientTakes())).calls
        return permission_to_v1(params, calls, make_id)

    def _take_plain(self, lines: bytes, first: int, chunks: list[_PlainChunk]) -> bytes | None:
        machine = self._machine
        updates = [chunk.params.update for chunk in chunks]
        if isinstance(machine, SessionForV1Client):
            if any(each.message_id is UNSET for each in updates):
                return None
            texts = [(each.session_update, str(each.message_id), each.content.text) for each in updates]
            return lines if machine.note_plain(texts) else None
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

    def _take(self, line: bytes, seq: int) -> list[bytes]:
        self._seq = seq
        try:
            message = as_object(_decode(line))
        except BAD_JSON:
            return [line]
        params = as_object(message.get("params"))
        if message.get("method") != "session/update" or not isinstance(params.get("update"), dict):
            return [line]
        rest = without(params, "sessionId", "update")
        told = self._machine.take_update(as_object(params["update"]))
        return [encode({**each, "params": {**as_object(each["params"]), **rest}}) for each in told]


def question_for(
    version: Version, method: str, params: Raw, stream: StreamTranslator | None, make_id: Callable[[], str]
) -> Any:
    """Return the params of the agent's question in the words of a viewer of the other version."""
    given = as_object(_decode(params))
    if method == ELICIT:
        return elicitation_to_v2(given) if version == V2 else elicitation_to_v1(given)
    if method != PERMISSION:
        return given
    if version == V2:
        title = stream.title_of(as_object(given.get("toolCall")).get("toolCallId")) if stream else None
        return permission_to_v2(given, title)
    stream = stream or StreamTranslator("", V1, ClientTakes(), str)
    return stream.permission_to_v1(given, make_id)


def answer_to_v1(method: str, result: Raw) -> Any:
    """Return the answer of a viewer of version 2 to a question of an agent of version 1."""
    return outcome_to_v1(as_object(_decode(result))) if method == PERMISSION else result


def explain_refusal(id_: bytes, error: RpcError) -> bytes:
    """Return the answer to a request whose params are misshapen."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "error": error_object(error)})


def not_found_data(problem: Any, session_id: str | None) -> dict[str, Any]:
    """Return the data of the error for an unknown session, which names it in version 2."""
    given = as_object(problem) if isinstance(problem, dict) else {"problem": problem}
    return {**given, "sessionId": session_id or ""}


NOT_FOUND = ErrorCode.RESOURCE_NOT_FOUND
