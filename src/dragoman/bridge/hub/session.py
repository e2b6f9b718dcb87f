"""A session of the agent: its journal, who is on it, and what is known of it without asking."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.envelope import encode, fields_of, make_notification, string_of
from dragoman.bridge.hub.attachment import Attachment
from dragoman.bridge.hub.journal import Journal
from dragoman.bridge.hub.replay import Replay
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import v1
from dragoman.protocol.notice import as_thought
from dragoman.wire import error_object

if TYPE_CHECKING:
    from dragoman.bridge.hub.ask import Ask
    from dragoman.bridge.hub.request import Request
    from dragoman.bridge.hub.shelf import Shelf
    from dragoman.bridge.hub.viewer import Viewer

State = Literal["idle", "running", "asleep", "gone"]

_NOTICE = b'"notice"'
_CHANGES = (b'"current_mode_update"', b'"config_option_update"', b'"session_info_update"')
_NOT_KEPT = frozenset({"sessionId", "_meta"})
_SETTINGS = frozenset({"modes", "models", "configOptions"})
_NO_SETTINGS = b"{}"


class Parked(msgspec.Struct, eq=False):
    """A request that waits until the agent has the session again."""

    request: "Request"
    go_on: Callable[[], None]


class Session:
    """One session, as the agent's only client knows it."""

    def __init__(
        self,
        session_id: str,
        params: dict[str, Raw],
        journal: Journal,
        shelf: "Shelf",
        on_change: Callable[["Session"], None],
    ) -> None:
        self.id = session_id
        self.cwd = journal.header.cwd
        self.params = params
        """What it was opened with, MCP servers and all: in memory only."""
        self.journal = journal
        self.shelf = shelf
        self.attachments: dict[Viewer, Attachment] = {}
        self.asks: dict[Ask, None] = {}
        self.parked: list[Parked] = []
        self.title: str | None = None
        self.prompted = journal.prompts > 0
        """Whether anybody has prompted it: some agents keep no others, and lists show no others."""
        self.put_away = False
        """Whether it was closed, and nobody has opened it since."""
        self.setup = fields_of(UNSET if journal.config is None else Raw(journal.config))
        """The agent's last answer to the request that opened it, kept up to date."""
        self._noted = journal.config
        self.heard = 0
        """What the agent has said of it, counted."""
        self.turns = 0
        """Prompts under way."""
        self.live = True
        """Whether the agent that runs now has it."""
        self.waking = False
        self.gone: str | None = None
        """Why the agent cannot have it any more, in words."""
        self.wants_login: str | None = None
        """What the agent said when it wanted somebody to log in before it takes the session up again."""
        self.shelved = False
        """Whether only its journal was opened: whoever wanted it may only read, or named it wrongly."""
        self.muted = False
        """Whether the agent is replaying what the journal has."""
        self.replay: Replay | None = None
        """What the agent is replaying, if it may have more than the journal."""
        self.stop_reason: str | None = None
        self.error: Any = None
        self.on_change = on_change

    @property
    def state(self) -> State:
        """How it is, in a word."""
        if self.gone is not None:
            return "gone"
        if self.turns or any(parked.request.method == "session/prompt" for parked in self.parked):
            return "running"
        return "idle" if self.live else "asleep"

    def take(self, line: bytes) -> None:
        """Take a notification of the agent."""
        self.heard += 1
        if _NOTICE in line and self._pass_notice(line):
            return
        if b'_update"' in line and any(change in line for change in _CHANGES):
            self._follow(line)
        if self.replay is not None:
            self.replay.add(line)
        elif not self.muted:
            self.journal.add(line)

    def flush(self) -> None:
        """Write what was said of it."""
        journal = self._written
        journal.flush()
        if not self.turns:
            journal.close()  # thousands of sessions may be open, and few of them at work

    def end_replay(self) -> bool:
        """Keep the journal or what the agent has replayed, whichever has more; tells whether that is the replay."""
        replay, self.replay = self.replay, None
        if replay is None:
            return False
        replay.journal.flush()  # what it cannot hold must not take the place of what there is
        if not replay.has_more_than(self.journal):
            replay.journal.delete()
            return False
        replay.journal.on_failure = self.journal.on_failure
        self.journal.let_go()
        self.journal = replay.journal
        self.prompted = True
        self._noted = None
        if self.title is not None:
            self.journal.note("title", encode({"title": self.title}))
        return True

    def drop_replay(self) -> None:
        """Keep the journal: the agent could not replay the session."""
        replay, self.replay = self.replay, None
        if replay is not None:
            replay.journal.delete()

    def attach(self, viewer: "Viewer", cursor: int) -> Attachment:
        """Put a viewer on it, from this record on."""
        attachment = viewer.attach(self.id)
        attachment.bind(self, cursor)
        self.attachments[viewer] = attachment
        self.on_change(self)
        return attachment

    def detach(self, viewer: "Viewer") -> None:
        """Take a viewer off it."""
        if self.attachments.pop(viewer, None) is not None:
            self.on_change(self)

    def wake_viewers(self) -> None:
        """Tell all viewers to look again."""
        for viewer, attachment in self.attachments.items():
            viewer.wake(attachment)

    def has_place(self, epoch: str, seq: int) -> bool:
        """Tell whether a cursor names a place of this journal."""
        return self.journal.knows(epoch) and 0 <= seq <= self.journal.end and not self.journal.is_lost

    def cursor(self, seq: int) -> str:
        """Name a place of this journal."""
        return f"{self.journal.epoch}.{seq}"

    def begin_turn(self, viewer: "Viewer", prompt: Iterable[Raw]) -> None:
        """Journal what a viewer asks for; others see it as the user's message."""
        self.turns += 1
        self.prompted = True
        self.stop_reason = self.error = None
        attachment = self.attachments.get(viewer)
        for block in prompt:
            update = {"sessionUpdate": "user_message_chunk", "content": block}
            self.journal.add(make_notification("session/update", {"sessionId": self.id, "update": update}))
            if attachment is not None and not viewer.marked:
                attachment.skip(self.journal.next_end)
        self.journal.note("turn", b'{"event":"start"}')
        self.on_change(self)

    def end_turn(self, stop_reason: str | None, error: Any = None) -> None:
        """Journal how a turn ended."""
        self.turns = max(0, self.turns - 1)
        self.stop_reason, self.error = stop_reason, error
        record = {"event": "end", "stopReason": stop_reason, "title": self.title}
        self.journal.note("turn", encode(record if error is None else {**record, "error": error}))
        self.on_change(self)

    def keep_setup(self, result: dict[str, Raw]) -> None:
        """Remember the agent's answer to the request that opened it; viewers that were told otherwise are told."""
        before = self.setup
        self.setup = {key: _copy(value) for key, value in result.items() if key not in _NOT_KEPT}
        for update in _differences(before, self.setup):
            self.journal.add(make_notification("session/update", {"sessionId": self.id, "update": update}))
        self._note_setup()

    def follow_answer(self, method: str, params: Raw, result: Raw) -> None:
        """Keep up with a change that a viewer asked for and the agent made."""
        if method == "session/set_mode" and (mode := fields_of(params).get("modeId")) is not None:
            self._set_mode(mode)
        elif method == "session/set_config_option" and (options := fields_of(result).get("configOptions")) is not None:
            self._set_options(options)

    def describe(self) -> dict[str, Any]:
        """Say how it is, as `_dragoman/session` does."""
        described: dict[str, Any] = {
            "sessionId": self.id,
            "cwd": self.cwd,
            "title": self.title,
            "state": self.state,
            "pending": len(self.asks),
            "viewers": len(self.attachments),
            "updatedAt": to_iso(self.journal.updated_ms),
        }
        if self.stop_reason is not None:
            described["stopReason"] = self.stop_reason
        if self.wants_login is not None:
            described["error"] = error_object(RpcError(ErrorCode.AUTH_REQUIRED, self.wants_login))
        elif self.error is not None:
            described["error"] = self.error
        elif self.journal.failure is not None:
            described["error"] = error_object(RpcError(ErrorCode.INTERNAL_ERROR, str(self.journal.failure)))
        return described

    def _pass_notice(self, line: bytes) -> bool:
        """Pass a notice on to whoever is there; it is not journalled, because it is no part of the conversation."""
        update = _update_of(line)
        if string_of(update.get("sessionUpdate")) != "notice":
            return False
        thought = _as_thought(self.id, update)
        for viewer, attachment in self.attachments.items():
            shown = line if viewer.abilities is not None and viewer.abilities.notices else thought
            if shown is not None and viewer.has_room():
                viewer.send(shown, attachment)
        return True

    @property
    def _written(self) -> Journal:
        return self.journal if self.replay is None else self.replay.journal

    def _follow(self, line: bytes) -> None:
        update = _update_of(line)
        match string_of(update.get("sessionUpdate")):
            case "current_mode_update" if (mode := update.get("currentModeId")) is not None:
                self._set_mode(mode)
            case "config_option_update" if (options := update.get("configOptions")) is not None:
                self._set_options(options)
            case "session_info_update" if (title := update.get("title")) is not None:
                self.title = string_of(title)
                self._written.note("title", encode({"title": self.title}))
                self.on_change(self)
            case _:
                pass

    def _set_mode(self, mode: Raw) -> None:
        modes = fields_of(self.setup.get("modes", UNSET))
        if modes:
            self.setup["modes"] = Raw(encode({**modes, "currentModeId": mode}))
            self._note_setup()

    def _set_options(self, options: Raw) -> None:
        self.setup["configOptions"] = _copy(options)
        self._note_setup()

    def _note_setup(self) -> None:
        """Journal the settings, so that whoever comes after a restart is told of them."""
        config = encode({key: value for key, value in self.setup.items() if key in _SETTINGS})
        if config != (self._noted or _NO_SETTINGS):
            self._noted = config
            self._written.note("config", config)
            self.on_change(self)


def _update_of(line: bytes) -> dict[str, Raw]:
    return fields_of(fields_of(fields_of(Raw(line)).get("params", UNSET)).get("update", UNSET))


def _as_thought(session_id: str, update: dict[str, Raw]) -> bytes | None:
    title, description = string_of(update.get("title")), string_of(update.get("description"))
    if not title:
        return None
    thought = as_thought(v1.Notice(severity="info", title=title, description=description))
    return make_notification("session/update", {"sessionId": session_id, "update": thought})


def to_iso(time_ms: int) -> str:
    """Write a time as ACP has it."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _differences(before: dict[str, Raw], now: dict[str, Raw]) -> Iterator[dict[str, Any]]:
    """Make the updates for which viewers look who were told other settings."""
    mode_before, mode = (fields_of(setup.get("modes", UNSET)).get("currentModeId") for setup in (before, now))
    if mode_before is not None and mode is not None and bytes(mode) != bytes(mode_before):
        yield {"sessionUpdate": "current_mode_update", "currentModeId": mode}
    options_before, options = before.get("configOptions"), now.get("configOptions")
    if options_before is not None and options is not None and bytes(options) != bytes(options_before):
        yield {"sessionUpdate": "config_option_update", "configOptions": options}


def _copy(raw: Raw) -> Raw:
    """Keep a part of a message without keeping all of it."""
    return Raw(bytes(raw))
