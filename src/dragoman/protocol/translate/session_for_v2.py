"""One session of a version 1 agent for a version 2 client: updates become upserts, turns become states."""

from collections.abc import Callable

from dragoman.protocol.translate.content import block_to_v2, blocks_to_v2
from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Json,
    Object,
    as_object,
    carry,
    restore,
    split_carried,
    update,
    without,
)
from dragoman.protocol.translate.offers import OffersForV2, commands_to_v2
from dragoman.protocol.translate.plan import plan_to_v2, plan_update_to_v2
from dragoman.protocol.translate.terminal import TerminalsForV2
from dragoman.protocol.translate.tool_call import call_to_v2
from dragoman.protocol.translate.turn import TurnForV2Client
from dragoman.protocol.void_message import VOID

CHUNKS = {
    "user_message_chunk": "user_message",
    "agent_message_chunk": "agent_message",
    "agent_thought_chunk": "agent_thought",
}
"""The message chunks, with the version 2 upsert of the whole message."""
_BREAKS_MESSAGE = frozenset({"tool_call", "plan", "compaction_update", "session_message"})
"""Updates after which a chunk without an id starts a new message. Others, such as usage, may occur within a message."""
_CALLS = frozenset({"tool_call", "tool_call_update"})
_NO_WORK = frozenset(
    {"available_commands_update", "config_option_update", "session_info_update", "notice", "state_update"}
)
"""Version 2 updates that may occur at any time and do not show work on a prompt."""


class SessionForV2Client:
    """The state of one session: its turn, its options, and the current message of chunks without an id."""

    def __init__(self, session_id: str, make_id: Callable[[], str]) -> None:
        self.turn = TurnForV2Client(session_id, make_id)
        self.offers = OffersForV2()
        self.is_muted = False
        """Whether updates are dropped. A version 1 agent replays everything even if the client wants no replay."""
        self._session_id = session_id
        self._make_id = make_id
        self._message = ("", "")
        self._titles: dict[str, str] = {}
        self._terminals = TerminalsForV2()
        self._handlers: dict[str, Callable[[Object], Object | None]] = {
            **dict.fromkeys(CHUNKS, self._chunk_to_v2),
            "tool_call": self._call_to_v2,
            "tool_call_update": self._call_to_v2,
            "plan": plan_to_v2,
            "plan_update": plan_update_to_v2,
            "current_mode_update": self._mode_to_v2,
            "config_option_update": self.offers.translate_options,
            "available_commands_update": self._commands_to_v2,
        }

    def translate_update(self, change: Object) -> list[Object]:
        """Return the messages for the client in place of an update."""
        translated = self._to_v2(change)
        if self.is_muted or translated is None:
            return []
        if translated.get("sessionUpdate") in _NO_WORK:
            return [update(self._session_id, translated)]
        if translated.get("sessionUpdate") == "user_message_chunk":
            reported, is_shown = self.turn.user_chunk(translated, change.get("messageId"))
            return [*reported, update(self._session_id, translated)] if is_shown else reported
        reported = self.turn.work()
        is_call = change.get("sessionUpdate") in _CALLS
        updates = self._terminals.translate_call(change, translated) if is_call else [translated]
        return [*reported, *(update(self._session_id, each) for each in updates)]

    def title_of(self, tool_call_id: Json) -> str | None:
        """Return the title with which a tool call was announced."""
        return self._titles.get(str(tool_call_id))

    def message_of(self, kind: str, given_id: Json) -> str:
        """Return the message id of a chunk: its own, or the id of the message before it."""
        if given_id:
            self._message = (kind, str(given_id))
        elif self._message[0] != kind:
            self._message = (kind, self._make_id())
        return self._message[1]

    def begin_turn(self) -> None:
        """Start a new message with the next chunk without an id."""
        self._message = ("", "")

    def _to_v2(self, change: Object) -> Object | None:
        kind = str(change.get("sessionUpdate"))
        if kind in _BREAKS_MESSAGE:
            self.begin_turn()
        return self._handlers.get(kind, self._other_to_v2)(change)

    def _call_to_v2(self, change: Object) -> Object:
        if isinstance(change.get("title"), str):
            self._titles[str(change.get("toolCallId"))] = change["title"]
        return {**call_to_v2(change), "sessionUpdate": "tool_call_update"}

    def _commands_to_v2(self, change: Object) -> Object:
        bare, _ = split_carried(change, OF_V2)
        return {**bare, "availableCommands": commands_to_v2(change)}

    def _mode_to_v2(self, change: Object) -> Object | None:
        """Return the options with the mode. If no option changes, carry the mode.

        Return None if the next update contains the mode as an option.
        """
        _, carried = split_carried(change, OF_V2)
        if "isInOptions" in carried:
            return None
        options = self.offers.set_mode(change.get("currentModeId"))
        if options is None:
            return carry({"sessionUpdate": "session_info_update"}, OF_V1, {"update": change})
        return {**without(change, "currentModeId"), "sessionUpdate": "config_option_update", "configOptions": options}

    def _other_to_v2(self, change: Object) -> Object:
        """Return an update that has the same shape in both versions, or that carries a version 2 update."""
        bare, carried = split_carried(change, OF_V2)
        if "update" in carried:
            return as_object(carried["update"])
        translated = {**bare, **carried}
        for name in ("content", "summary"):
            if isinstance(translated.get(name), list):
                translated[name] = blocks_to_v2(translated[name])
            elif isinstance(translated.get(name), dict):
                translated[name] = block_to_v2(as_object(translated[name]))
        if isinstance(translated.get("state"), dict):
            translated["state"] = restore(as_object(translated["state"]), OF_V2)
        return translated

    def _chunk_to_v2(self, change: Object) -> Object:
        kind = str(change["sessionUpdate"])
        bare, carried = split_carried(change, OF_V2)
        if "update" in carried:
            return as_object(carried["update"])
        message_id = self.message_of(kind, carried.get("messageId") or bare.get("messageId"))
        meta = as_object(bare.get("_meta"))
        if meta.get(VOID) is True:
            rest = {name: each for name, each in meta.items() if name != VOID}
            cleared = {"sessionUpdate": CHUNKS[kind], "messageId": message_id, "content": None}
            return cleared | ({"_meta": rest} if rest else {})
        return {**bare, "messageId": message_id, "content": block_to_v2(as_object(bare.get("content")))}
