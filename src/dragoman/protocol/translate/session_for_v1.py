"""One session of a version 2 agent for a version 1 client: upserts become chunks and updates, states become responses.

A version 2 message can be replaced or cleared, but version 1 chunks only append. The digest of the sent text shows
whether a whole message continues the chunks sent so far. If so, only the rest is sent. If not, the message is declared
void (`dragoman.protocol.void_message`) and sent again under its own id.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dragoman.protocol.translate.content import block_to_v1, blocks_to_v1, plain_text
from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Object,
    as_object,
    carry,
    objects_in,
    split_carried,
    update,
    without,
)
from dragoman.protocol.translate.offers import OffersForV1, commands_to_v1
from dragoman.protocol.translate.plan import PlansForV1
from dragoman.protocol.translate.session_for_v2 import CHUNKS
from dragoman.protocol.translate.setup import state_to_v1
from dragoman.protocol.translate.tool_call import ToolCallsForV1
from dragoman.protocol.translate.turn import TurnForV1Client, V2TurnState
from dragoman.protocol.void_message import VOID

_MAX_MESSAGES = 1_000
"""Maximum number of messages per session that can still be replaced or continued. The oldest are dropped first."""

_CHUNK_OF = {message: chunk for chunk, message in CHUNKS.items()}


class SupportedUpdates(msgspec.Struct, frozen=True):
    """The updates that a version 1 client supports, by its capabilities."""

    notices: bool = False
    compaction: bool = False
    subagents: bool = False
    plans: bool = False
    booleans: bool = False


def read_capabilities(capabilities: Object) -> SupportedUpdates:
    """Return the updates that a client with these capabilities supports."""
    session = as_object(capabilities.get("session"))
    options = as_object(session.get("configOptions"))
    return SupportedUpdates(
        notices=isinstance(session.get("notices"), dict),
        compaction=isinstance(session.get("compaction"), dict),
        subagents=isinstance(capabilities.get("subagents"), dict),
        plans=isinstance(capabilities.get("plan"), dict),
        booleans=isinstance(options.get("boolean"), dict),
    )


class _SentMessage(msgspec.Struct):
    """A message as sent to the version 1 client: its id there, and the length and digest of its content."""

    sent_id: str
    length: int = 0
    digest: Any = msgspec.field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    replacements: int = 0


class SessionForV1Client:
    """The state of one session: its prompts, options, plans, tool calls and messages."""

    def __init__(self, session_id: str, supported: SupportedUpdates) -> None:
        self.turn = TurnForV1Client()
        self.offers = OffersForV1(supports_booleans=supported.booleans)
        self.calls = ToolCallsForV1()
        self.is_replaying = False
        self._session_id = session_id
        self._supported = supported
        self._plans = PlansForV1(supports_plans=supported.plans)
        self._messages: dict[tuple[str, str], _SentMessage] = {}
        """By the kind of their chunks, and their id."""
        self._handlers: dict[str, Callable[[Object], list[Object]]] = {
            **dict.fromkeys(CHUNKS, self._chunk_to_v1),
            **dict.fromkeys(CHUNKS.values(), self._message_to_v1),
            "tool_call_update": self._call_to_v1,
            "tool_call_content_chunk": self._call_content_to_v1,
            "terminal_update": self._terminal_to_v1,
            "terminal_output_chunk": self._output_to_v1,
            "plan_update": self._plan_to_v1,
            "plan_removed": self._removed_plan_to_v1,
            "available_commands_update": self._commands_to_v1,
            "config_option_update": self._options_to_v1,
        }

    def begin_replay(self) -> None:
        """Forget all sent messages, because everything is sent to the client again."""
        self.is_replaying = True
        self.calls = ToolCallsForV1()
        self._plans = PlansForV1(supports_plans=self._supported.plans)
        self._messages.clear()

    def translate_update(self, change: Object) -> list[Object]:
        """Return the messages for the client in place of an update."""
        if change.get("sessionUpdate") == "state_update":
            return self._translate_state(change)
        return [update(self._session_id, each) for each in self._to_v1(change)]

    def record_plain_text(self, chunks: Iterable[tuple[str, str, str]]) -> bool:
        """Record plain text chunks (kind, message and text) that are passed to the client unchanged.

        Return False and record nothing if one of them must be translated.
        """
        texts: dict[tuple[str, str], list[str]] = {}
        for kind, message_id, text in chunks:
            texts.setdefault((kind, message_id), []).append(text)
        noted = [(self._sent_message(*key), key[1], each) for key, each in texts.items()]
        if any(sent.sent_id != message_id for sent, message_id, _ in noted):
            return False
        for sent, _, each in noted:
            _extend(sent, "".join(each).encode(errors="surrogatepass"))
        return True

    def _to_v1(self, change: Object) -> list[Object]:
        return self._handlers.get(str(change.get("sessionUpdate")), self._other_to_v1)(change)

    def _call_to_v1(self, change: Object) -> list[Object]:
        return [self.calls.upsert(without(change, "sessionUpdate"))]

    def _call_content_to_v1(self, change: Object) -> list[Object]:
        return self.calls.append(change)

    def _terminal_to_v1(self, change: Object) -> list[Object]:
        return [_carrier(change), *self.calls.update_terminal(change)]

    def _output_to_v1(self, change: Object) -> list[Object]:
        return [_carrier(change), *self.calls.append_output(change)]

    def _plan_to_v1(self, change: Object) -> list[Object]:
        return [self._plans.update(change)]

    def _removed_plan_to_v1(self, change: Object) -> list[Object]:
        return [self._plans.remove(change)]

    def _commands_to_v1(self, change: Object) -> list[Object]:
        sent = commands_to_v1(change.get("availableCommands"))
        return [{**without(change, "availableCommands"), **sent, **_merged_meta(change, sent)}]

    def _options_to_v1(self, change: Object) -> list[Object]:
        before = self.offers.option_members()
        sent, mode_id = self.offers.set_options(change.get("configOptions"))
        rest = without(change, "configOptions")
        mode = {"sessionUpdate": "current_mode_update", "currentModeId": mode_id}
        if not sent or (mode_id is not None and sent == before):
            return [{**mode, **_merged_meta(change, {})}] if mode_id is not None else []
        options = {**rest, **sent, **_merged_meta(change, sent)}
        return [options] if mode_id is None else [carry(mode, OF_V2, {"isInOptions": True}), options]

    def _other_to_v1(self, change: Object) -> list[Object]:
        kind = change.get("sessionUpdate")
        if kind in ("session_info_update", "usage_update"):
            bare, carried = split_carried(change, OF_V1)
            return [as_object(carried["update"])] if "update" in carried else [bare]
        translated = dict(change)
        for name in ("content", "summary"):
            if isinstance(translated.get(name), list):
                translated[name] = blocks_to_v1(translated[name])
            elif isinstance(translated.get(name), dict):
                translated[name] = block_to_v1(as_object(translated[name]))
        if "state" in translated:
            translated["state"] = state_to_v1(translated["state"])
        is_supported = {
            "notice": self._supported.notices,
            "compaction_update": self._supported.compaction,
            "compaction_summary_chunk": self._supported.compaction,
            "subagent_update": self._supported.subagents,
            "session_message": self._supported.subagents,
            "session_message_chunk": self._supported.subagents,
        }.get(str(kind))
        if is_supported is None:
            return [_carrier(change)]
        return [translated] if is_supported else [_thought(change)]

    def _translate_state(self, state: Object) -> list[Object]:
        """Return the responses that a state completes, or an update that carries it if no request shows it.

        This applies to work that the agent started itself, and to work in the background.
        """
        is_repeated = self.turn.state is V2TurnState.IDLE and state.get("state") == "idle"
        is_known = self.turn.has_prompts or self.turn.was_prompted or is_repeated
        unseen = self.calls.show_unseen() if state.get("state") == "idle" else []
        rest = [update(self._session_id, each) for each in unseen]
        return [*rest, *self._translate_known_state(state, is_known=is_known)]

    def _translate_known_state(self, state: Object, *, is_known: bool) -> list[Object]:
        answers = self.turn.apply_state(state)
        is_pending = self.turn.has_pending_end and state.get("state") == "idle"
        if answers or is_pending or (is_known and state.keys() <= {"sessionUpdate", "state"}):
            return answers
        return [update(self._session_id, _carrier(state))]

    def _chunk_to_v1(self, change: Object) -> list[Object]:
        message_id = str(change.get("messageId"))
        if self._is_echo(change, [change.get("content")]):
            return []
        sent = self._sent_message(change["sessionUpdate"], message_id)
        block = as_object(change.get("content"))
        _extend(sent, _canonical([block]))
        translated = {**change, "messageId": sent.sent_id, "content": block_to_v1(block)}
        return [carry(translated, OF_V2, {} if sent.sent_id == message_id else {"messageId": message_id})]

    def _message_to_v1(self, change: Object) -> list[Object]:
        """Return the chunks that bring a version 1 client to the state of a version 2 message.

        A message replaces its earlier content, chunks only append. If the new content does not continue the
        sent content, a note voids the sent message, and the message is sent again under a new id.
        """
        message_id = str(change.get("messageId"))
        if self._is_echo(change, change.get("content")):
            return []
        kind = _CHUNK_OF[change["sessionUpdate"]]
        meta = {"_meta": change["_meta"]} if change.get("_meta") else {}
        if "content" not in change:
            if not meta:
                return [_carrier(change)]
            sent_id = self._sent_message(kind, message_id).sent_id
            silent = {"sessionUpdate": kind, "messageId": sent_id, "content": {"type": "text", "text": ""}, **meta}
            return [carry(silent, OF_V2, {"update": change})]
        blocks = objects_in(change["content"])
        sent = self._sent_message(kind, message_id)
        if not blocks and not sent.length:
            return [_carrier(change)]
        rest = _rest_of(sent, blocks)
        voids: list[Object] = []
        if rest is None:
            voids = [self._void(kind, message_id, sent)]
            rest = blocks
        _extend(sent, _canonical(rest))
        chunks = [
            {"sessionUpdate": kind, "messageId": sent.sent_id, "content": block_to_v1(each), **meta} for each in rest
        ]
        renamed = {} if sent.sent_id == message_id else {"messageId": message_id}
        return [*voids, *(carry(each, OF_V2, renamed) for each in chunks)]

    def _sent_message(self, kind: str, message_id: str) -> _SentMessage:
        key = (kind, message_id)
        sent = self._messages.get(key)
        if sent is None:
            sent = self._messages[key] = _SentMessage(message_id)
            if len(self._messages) > _MAX_MESSAGES:
                del self._messages[next(iter(self._messages))]
        return sent

    def _void(self, kind: str, message_id: str, sent: _SentMessage) -> Object:
        """Declare the sent message void, and continue it under another id."""
        translated = {
            "sessionUpdate": kind,
            "messageId": sent.sent_id,
            "content": {"type": "text", "text": ""},
            "_meta": {VOID: True},
        }
        old_id = sent.sent_id
        sent.replacements += 1
        sent.sent_id, sent.length = f"{message_id}#{sent.replacements}", 0
        sent.digest = hashlib.blake2b(digest_size=16)
        return carry(translated, OF_V2, {} if old_id == message_id else {"messageId": message_id})

    def _is_echo(self, change: Object, blocks: Any) -> bool:
        if not str(change.get("sessionUpdate")).startswith("user_message") or self.is_replaying:
            return False
        return self.turn.is_echo(str(change.get("messageId")), blocks)


def _carrier(change: Object) -> Object:
    """Return an empty version 1 update that carries a version 2 update."""
    return carry({"sessionUpdate": "session_info_update"}, OF_V2, {"update": change})


def _thought(change: Object) -> Object:
    """Return the text of an unsupported update as a thought, which clients do not show as the answer."""
    translated = {
        "sessionUpdate": "agent_thought_chunk",
        "content": {"type": "text", "text": f"{fallback_text(change)}\n\n"},
    }
    return carry(translated, OF_V2, {"update": change})


def fallback_text(change: Object) -> str:
    """Return the text that replaces an unsupported update of either version."""
    kind = str(change.get("sessionUpdate"))
    match kind:
        case "notice":
            return "\n".join(str(change[name]) for name in ("title", "description") if change.get(name))
        case "compaction_update":
            text = f"Summarizing the conversation: {change.get('status')}"
            return f"{text} ({change['error']})" if change.get("error") else text
        case "subagent_update":
            title = change.get("title") or change.get("sessionId")
            return f"Subagent {title}: {as_object(change.get('state')).get('state', 'there')}"
        case _:
            blocks = (
                [as_object(change.get("content"))]
                if isinstance(change.get("content"), dict)
                else objects_in(change.get("content"))
            )
            texts = [str(each["text"]) for each in blocks if "text" in each]
            return "".join(texts) or f"The agent sent an update of type {kind}"


def _merged_meta(received: Object, sent: Object) -> Object:
    meta = {**as_object(received.get("_meta")), **as_object(sent.get("_meta"))}
    return {"_meta": meta} if meta else {}


def _canonical(blocks: list[Object]) -> bytes:
    """Return content as bytes that do not depend on how its text is split into blocks."""
    return b"".join(_bytes_of(each) for each in blocks)


def _bytes_of(block: Object) -> bytes:
    text = plain_text(block)
    if text is not None:
        return text.encode(errors="surrogatepass")
    return b"\0%b\0" % msgspec.json.encode(block, order="sorted")


def _extend(sent: _SentMessage, data: bytes) -> None:
    sent.length += len(data)
    sent.digest.update(data)


def _rest_of(sent: _SentMessage, blocks: list[Object]) -> list[Object] | None:
    """Return the blocks that were not sent yet, or None if the content does not start with the sent part."""
    data = _canonical(blocks)
    begin = hashlib.blake2b(data[: sent.length], digest_size=16)
    if len(data) < sent.length or begin.digest() != sent.digest.digest():
        return None
    left = sent.length
    rest: list[Object] = []
    for block in blocks:
        size = len(_bytes_of(block))
        if left <= 0:
            rest.append(block)
        elif left < size:
            if plain_text(block) is None:
                return None
            text = _bytes_of(block)[left:].decode(errors="surrogatepass")
            rest.append({"type": "text", "text": text})
        left -= size
    return rest
