"""One session of a version 2 agent, told to a version 1 client: upserts as chunks and updates, states as answers.

A message of version 2 can be replaced or cleared; chunks of version 1 only append. The digest of the text that was
told shows whether a whole message goes on where the chunks ended, so that only the rest is told. Where it does not, the
message is declared void (`dragoman.protocol.notice`) and told anew under an id of its own.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dragoman.protocol.notice import VOID
from dragoman.protocol.translate.content import block_to_v1, blocks_to_v1, plain_text
from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Object,
    as_object,
    carry,
    objects_in,
    take_carried,
    update,
    without,
)
from dragoman.protocol.translate.offers import OffersForV1, commands_to_v1
from dragoman.protocol.translate.plan import PlansForV1
from dragoman.protocol.translate.session_for_v2 import CHUNKS
from dragoman.protocol.translate.setup import state_to_v1
from dragoman.protocol.translate.tool_call import ToolCallsForV1
from dragoman.protocol.translate.turn import TurnForV1Client, V2TurnState

_CHUNK_OF = {message: chunk for chunk, message in CHUNKS.items()}


class ClientTakes(msgspec.Struct, frozen=True):
    """The updates that a version 1 client takes by its capabilities."""

    notices: bool = False
    compaction: bool = False
    subagents: bool = False
    plans: bool = False
    booleans: bool = False


def read_capabilities(capabilities: Object) -> ClientTakes:
    """Return the updates that a client of these capabilities takes."""
    session = as_object(capabilities.get("session"))
    options = as_object(session.get("configOptions"))
    return ClientTakes(
        notices=isinstance(session.get("notices"), dict),
        compaction=isinstance(session.get("compaction"), dict),
        subagents=isinstance(capabilities.get("subagents"), dict),
        plans=isinstance(capabilities.get("plan"), dict),
        booleans=isinstance(options.get("boolean"), dict),
    )


class _ToldMessage(msgspec.Struct):
    """A message as a version 1 client was told it: its id there, and the length and digest of its content."""

    told_id: str
    length: int = 0
    digest: Any = msgspec.field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    replacements: int = 0


class SessionForV1Client:
    """The state of one session: its prompts, options, plans, tool calls and messages."""

    def __init__(self, session_id: str, takes: ClientTakes) -> None:
        self.turn = TurnForV1Client()
        self.offers = OffersForV1(takes_booleans=takes.booleans)
        self.calls = ToolCallsForV1()
        self.is_replaying = False
        self._session_id = session_id
        self._takes = takes
        self._plans = PlansForV1(takes_plans=takes.plans)
        self._messages: dict[tuple[str, str], _ToldMessage] = {}
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
        """Forget what the client was told: it is told everything again."""
        self.is_replaying = True
        self.calls = ToolCallsForV1()
        self._plans = PlansForV1(takes_plans=self._takes.plans)
        self._messages.clear()

    def take_update(self, given: Object) -> list[Object]:
        """Return the messages for the client in place of an update."""
        if given.get("sessionUpdate") == "state_update":
            return self._take_state(given)
        return [update(self._session_id, each) for each in self._to_v1(given)]

    def note_plain(self, chunks: Iterable[tuple[str, str, str]]) -> bool:
        """Note chunks of plain text, each its kind, message and text, that the client is told as they are.

        False, and nothing is noted, where one of them has to be told otherwise.
        """
        texts: dict[tuple[str, str], list[str]] = {}
        for kind, message_id, text in chunks:
            texts.setdefault((kind, message_id), []).append(text)
        noted = [(self._told(*key), key[1], each) for key, each in texts.items()]
        if any(told.told_id != message_id for told, message_id, _ in noted):
            return False
        for told, _, each in noted:
            _note(told, "".join(each).encode(errors="surrogatepass"))
        return True

    def _to_v1(self, given: Object) -> list[Object]:
        return self._handlers.get(str(given.get("sessionUpdate")), self._other_to_v1)(given)

    def _call_to_v1(self, given: Object) -> list[Object]:
        return [self.calls.upsert(without(given, "sessionUpdate"))]

    def _call_content_to_v1(self, given: Object) -> list[Object]:
        return [self.calls.append(given)]

    def _terminal_to_v1(self, given: Object) -> list[Object]:
        return [_carrier(given), *self.calls.update_terminal(given)]

    def _output_to_v1(self, given: Object) -> list[Object]:
        return [_carrier(given), *self.calls.append_output(given)]

    def _plan_to_v1(self, given: Object) -> list[Object]:
        return [self._plans.update(given)]

    def _removed_plan_to_v1(self, given: Object) -> list[Object]:
        return [self._plans.remove(given)]

    def _commands_to_v1(self, given: Object) -> list[Object]:
        told = commands_to_v1(given.get("availableCommands"))
        return [{**without(given, "availableCommands"), **told, **_merged_meta(given, told)}]

    def _options_to_v1(self, given: Object) -> list[Object]:
        before = self.offers.told()
        told, mode_id = self.offers.take_options(given.get("configOptions"))
        rest = without(given, "configOptions")
        mode = {"sessionUpdate": "current_mode_update", "currentModeId": mode_id}
        if not told or (mode_id is not None and told == before):
            return [{**mode, **_merged_meta(given, {})}] if mode_id is not None else []
        options = {**rest, **told, **_merged_meta(given, told)}
        return [options] if mode_id is None else [carry(mode, OF_V2, {"isInOptions": True}), options]

    def _other_to_v1(self, given: Object) -> list[Object]:
        kind = given.get("sessionUpdate")
        if kind in ("session_info_update", "usage_update"):
            bare, carried = take_carried(given, OF_V1)
            return [as_object(carried["update"])] if "update" in carried else [bare]
        made = dict(given)
        for name in ("content", "summary"):
            if isinstance(made.get(name), list):
                made[name] = blocks_to_v1(made[name])
            elif isinstance(made.get(name), dict):
                made[name] = block_to_v1(as_object(made[name]))
        if "state" in made:
            made["state"] = state_to_v1(made["state"])
        is_taken = {
            "notice": self._takes.notices,
            "compaction_update": self._takes.compaction,
            "compaction_summary_chunk": self._takes.compaction,
            "subagent_update": self._takes.subagents,
            "session_message": self._takes.subagents,
            "session_message_chunk": self._takes.subagents,
        }.get(str(kind))
        if is_taken is None:
            return [_carrier(given)]
        return [made] if is_taken else [_thought(given)]

    def _take_state(self, state: Object) -> list[Object]:
        """Return the answers that a state gives; else its carrier, unless the course of the requests says it already.

        Work that the agent began by itself, and work in the background, are such states.
        """
        is_repeated = self.turn.state is V2TurnState.IDLE and state.get("state") == "idle"
        is_said = self.turn.has_prompts or self.turn.is_of_prompt or is_repeated
        answers = self.turn.take_state(state)
        is_owed = self.turn.owes_last_end and state.get("state") == "idle"
        if answers or is_owed or (is_said and state.keys() <= {"sessionUpdate", "state"}):
            return answers
        return [update(self._session_id, _carrier(state))]

    def _chunk_to_v1(self, given: Object) -> list[Object]:
        message_id = str(given.get("messageId"))
        if self._is_echo(given, [given.get("content")]):
            return []
        told = self._told(given["sessionUpdate"], message_id)
        block = as_object(given.get("content"))
        _note(told, _canonical([block]))
        made = {**given, "messageId": told.told_id, "content": block_to_v1(block)}
        return [carry(made, OF_V2, {} if told.told_id == message_id else {"messageId": message_id})]

    def _message_to_v1(self, given: Object) -> list[Object]:
        message_id = str(given.get("messageId"))
        if self._is_echo(given, given.get("content")):
            return []
        kind = _CHUNK_OF[given["sessionUpdate"]]
        meta = {"_meta": given["_meta"]} if given.get("_meta") else {}
        if "content" not in given:
            if not meta:
                return [_carrier(given)]
            told_id = self._told(kind, message_id).told_id
            silent = {"sessionUpdate": kind, "messageId": told_id, "content": {"type": "text", "text": ""}, **meta}
            return [carry(silent, OF_V2, {"update": given})]
        blocks = objects_in(given["content"])
        told = self._told(kind, message_id)
        if not blocks and not told.length:
            return [_carrier(given)]
        rest = _rest_of(told, blocks)
        voids: list[Object] = []
        if rest is None:
            voids = [self._void(kind, message_id, told)]
            rest = blocks
        _note(told, _canonical(rest))
        chunks = [
            {"sessionUpdate": kind, "messageId": told.told_id, "content": block_to_v1(each), **meta} for each in rest
        ]
        renamed = {} if told.told_id == message_id else {"messageId": message_id}
        return [*voids, *(carry(each, OF_V2, renamed) for each in chunks)]

    def _told(self, kind: str, message_id: str) -> _ToldMessage:
        return self._messages.setdefault((kind, message_id), _ToldMessage(message_id))

    def _void(self, kind: str, message_id: str, told: _ToldMessage) -> Object:
        """Declare the message void as it was told, and begin to tell it under another id."""
        made = {
            "sessionUpdate": kind,
            "messageId": told.told_id,
            "content": {"type": "text", "text": ""},
            "_meta": {VOID: True},
        }
        old_id = told.told_id
        told.replacements += 1
        told.told_id, told.length = f"{message_id}#{told.replacements}", 0
        told.digest = hashlib.blake2b(digest_size=16)
        return carry(made, OF_V2, {} if old_id == message_id else {"messageId": message_id})

    def _is_echo(self, given: Object, blocks: Any) -> bool:
        if not str(given.get("sessionUpdate")).startswith("user_message") or self.is_replaying:
            return False
        return self.turn.is_echo(str(given.get("messageId")), blocks)


def _carrier(given: Object) -> Object:
    """Return an update of version 1 that says nothing but carries one of version 2."""
    return carry({"sessionUpdate": "session_info_update"}, OF_V2, {"update": given})


def _thought(given: Object) -> Object:
    """Return the words of an update that the client does not take: a thought, which no client takes for the answer."""
    made = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": f"{words_of(given)}\n\n"}}
    return carry(made, OF_V2, {"update": given})


def words_of(given: Object) -> str:
    """Return the words in place of an update, of either version, that a client does not take."""
    kind = str(given.get("sessionUpdate"))
    match kind:
        case "notice":
            return "\n".join(str(given[name]) for name in ("title", "description") if given.get(name))
        case "compaction_update":
            words = f"Summing up the conversation: {given.get('status')}"
            return f"{words} ({given['error']})" if given.get("error") else words
        case "subagent_update":
            title = given.get("title") or given.get("sessionId")
            return f"Subagent {title}: {as_object(given.get('state')).get('state', 'there')}"
        case _:
            blocks = (
                [as_object(given.get("content"))]
                if isinstance(given.get("content"), dict)
                else objects_in(given.get("content"))
            )
            texts = [str(each["text"]) for each in blocks if "text" in each]
            return "".join(texts) or f"The agent sent an update of type {kind}"


def _merged_meta(given: Object, told: Object) -> Object:
    meta = {**as_object(given.get("_meta")), **as_object(told.get("_meta"))}
    return {"_meta": meta} if meta else {}


def _canonical(blocks: list[Object]) -> bytes:
    """Return the content as bytes that are the same however its text was cut into blocks."""
    return b"".join(_bytes_of(each) for each in blocks)


def _bytes_of(block: Object) -> bytes:
    text = plain_text(block)
    if text is not None:
        return text.encode(errors="surrogatepass")
    return b"\0%b\0" % msgspec.json.encode(block, order="sorted")


def _note(told: _ToldMessage, data: bytes) -> None:
    told.length += len(data)
    told.digest.update(data)


def _rest_of(told: _ToldMessage, blocks: list[Object]) -> list[Object] | None:
    """Return the blocks that were not told; None where the content does not begin with what was."""
    data = _canonical(blocks)
    begin = hashlib.blake2b(data[: told.length], digest_size=16)
    if len(data) < told.length or begin.digest() != told.digest.digest():
        return None
    left = told.length
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
