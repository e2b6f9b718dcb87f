"""One session of a version 1 agent, told to a version 2 client: its updates as upserts, its turns as states."""

from collections.abc import Callable

from dragoman.protocol.notice import VOID
from dragoman.protocol.translate.content import block_to_v2, blocks_to_v2
from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Json,
    Object,
    as_object,
    carry,
    restore,
    take_carried,
    update,
    without,
)
from dragoman.protocol.translate.offers import OffersForV2, commands_to_v2
from dragoman.protocol.translate.plan import plan_to_v2, plan_update_to_v2
from dragoman.protocol.translate.terminal import TerminalsForV2
from dragoman.protocol.translate.tool_call import call_to_v2
from dragoman.protocol.translate.turn import TurnForV2Client

CHUNKS = {
    "user_message_chunk": "user_message",
    "agent_message_chunk": "agent_message",
    "agent_thought_chunk": "agent_thought",
}
"""The chunks of messages, with the upsert of the whole message in version 2."""
_BREAKS_MESSAGE = frozenset({"tool_call", "plan", "compaction_update", "session_message"})
"""Updates after which a chunk without an id begins a message; others, such as usage, come in the middle of one."""
_CALLS = frozenset({"tool_call", "tool_call_update"})
_NO_WORK = frozenset(
    {"available_commands_update", "config_option_update", "session_info_update", "notice", "state_update"}
)
"""Updates of version 2 that come at any time and say nothing of the work on a prompt."""


class SessionForV2Client:
    """The state of one session: its turn, its options, and the message that chunks without an id belong to."""

    def __init__(self, session_id: str, make_id: Callable[[], str]) -> None:
        self.turn = TurnForV2Client(session_id, make_id)
        self.offers = OffersForV2()
        self.is_muted = False
        """Whether updates are left out: a version 1 agent replays in full where the client wants no replay."""
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
            "config_option_update": self.offers.take_options,
            "available_commands_update": self._commands_to_v2,
        }

    def take_update(self, given: Object) -> list[Object]:
        """Return the messages for the client in place of an update."""
        made = self._to_v2(given)
        if self.is_muted or made is None:
            return []
        if made.get("sessionUpdate") in _NO_WORK:
            return [update(self._session_id, made)]
        is_echo = made.get("sessionUpdate") == "user_message_chunk"
        told = self.turn.work(echo=made if is_echo else None)
        is_call = given.get("sessionUpdate") in _CALLS
        updates = self._terminals.take_call(given, made) if is_call else [made]
        return [*told, *(update(self._session_id, each) for each in updates)]

    def title_of(self, tool_call_id: Json) -> str | None:
        """Return the title that a tool call was announced with."""
        return self._titles.get(str(tool_call_id))

    def message_of(self, kind: str, given_id: Json) -> str:
        """Return the id of the message that a chunk belongs to: its own, or that of the message before it."""
        if given_id:
            self._message = (kind, str(given_id))
        elif self._message[0] != kind:
            self._message = (kind, self._make_id())
        return self._message[1]

    def begin_turn(self) -> None:
        """Let the next chunk without an id begin a message."""
        self._message = ("", "")

    def _to_v2(self, given: Object) -> Object | None:
        kind = str(given.get("sessionUpdate"))
        if kind in _BREAKS_MESSAGE:
            self.begin_turn()
        return self._handlers.get(kind, self._other_to_v2)(given)

    def _call_to_v2(self, given: Object) -> Object:
        if isinstance(given.get("title"), str):
            self._titles[str(given.get("toolCallId"))] = given["title"]
        return {**call_to_v2(given), "sessionUpdate": "tool_call_update"}

    def _commands_to_v2(self, given: Object) -> Object:
        bare, _ = take_carried(given, OF_V2)
        return {**bare, "availableCommands": commands_to_v2(given)}

    def _mode_to_v2(self, given: Object) -> Object | None:
        """Return the options with the mode; a mode that changes none of them is carried.

        None stands for a mode that the next update says as an option.
        """
        _, carried = take_carried(given, OF_V2)
        if "isInOptions" in carried:
            return None
        options = self.offers.take_mode(given.get("currentModeId"))
        if options is None:
            return carry({"sessionUpdate": "session_info_update"}, OF_V1, {"update": given})
        return {**without(given, "currentModeId"), "sessionUpdate": "config_option_update", "configOptions": options}

    def _other_to_v2(self, given: Object) -> Object:
        """Return an update that has the same shape in both versions, or that carries one of version 2."""
        bare, carried = take_carried(given, OF_V2)
        if "update" in carried:
            return as_object(carried["update"])
        made = {**bare, **carried}
        for name in ("content", "summary"):
            if isinstance(made.get(name), list):
                made[name] = blocks_to_v2(made[name])
            elif isinstance(made.get(name), dict):
                made[name] = block_to_v2(as_object(made[name]))
        if isinstance(made.get("state"), dict):
            made["state"] = restore(as_object(made["state"]), OF_V2)
        return made

    def _chunk_to_v2(self, given: Object) -> Object:
        kind = str(given["sessionUpdate"])
        bare, carried = take_carried(given, OF_V2)
        if "update" in carried:
            return as_object(carried["update"])
        message_id = self.message_of(kind, carried.get("messageId") or bare.get("messageId"))
        meta = as_object(bare.get("_meta"))
        if meta.get(VOID) is True:
            rest = {name: each for name, each in meta.items() if name != VOID}
            cleared = {"sessionUpdate": CHUNKS[kind], "messageId": message_id, "content": None}
            return cleared | ({"_meta": rest} if rest else {})
        return {**bare, "messageId": message_id, "content": block_to_v2(as_object(bare.get("content")))}
