"""A session of the agent: its journal, its viewers, and the facts that are known without asking the agent."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Journal, ReplayedJournal, Subscription, Viewer, ViewerRequest
from dragoman.bridge.envelope import OrdinaryRun, encode, fields_of, make_notification, string_of
from dragoman.bridge.registry.state import SessionLife, SessionPhase
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import v1
from dragoman.protocol.notice import as_thought
from dragoman.store.block import wire_line
from dragoman.wire import error_object

ShownState = Literal["idle", "running", "asleep", "gone"]

_NOTICE = b'"notice"'
_CHANGES = (b'"current_mode_update"', b'"config_option_update"', b'"session_info_update"')
_NOT_KEPT = frozenset({"sessionId", "_meta"})
_SETTINGS = frozenset({"modes", "models", "configOptions"})
_NO_SETTINGS = b"{}"


class _Recorder(Protocol):
    def add(self, lines: bytes, count: int | None = None) -> None: ...


class _Discard:
    """Takes updates that the journal has already."""

    def add(self, lines: bytes, count: int | None = None) -> None:
        """Drop updates."""


_DISCARD = _Discard()


class WaitingRequest(msgspec.Struct, eq=False):
    """A request that waits until the agent has the session again."""

    request: ViewerRequest
    go_on: Callable[[], None]


class SessionFacts(msgspec.Struct):
    """The facts of a session that its announcements tell."""

    prompted: bool
    """Whether anybody has prompted it: some agents keep no others, and lists show no others."""
    title: str | None = None
    turns: int = 0
    """Prompts under way."""
    stop_reason: str | None = None
    error: Any = None


class SessionSetup:
    """The agent's last answer to the request that opened a session, kept up to date."""

    def __init__(self, config: bytes | None) -> None:
        self.fields = fields_of(UNSET if config is None else Raw(config))
        self._journalled = config

    def replace(self, result: dict[str, Raw]) -> list[dict[str, Any]]:
        """Keep another answer, and give the updates for viewers that were told other settings."""
        before = self.fields
        self.fields = {key: _copy(value) for key, value in result.items() if key not in _NOT_KEPT}
        return list(_differences(before, self.fields))

    def set_mode(self, mode: Raw) -> None:
        """Keep another current mode."""
        modes = fields_of(self.fields.get("modes", UNSET))
        if modes:
            self.fields["modes"] = Raw(encode({**modes, "currentModeId": mode}))

    def set_options(self, options: Raw) -> None:
        """Keep other config options."""
        self.fields["configOptions"] = _copy(options)

    def take_change(self) -> bytes | None:
        """Give the settings to be journalled, if they changed since the last call."""
        config = encode({key: value for key, value in self.fields.items() if key in _SETTINGS})
        if config == (self._journalled or _NO_SETTINGS):
            return None
        self._journalled = config
        return config

    def forget_journalled(self) -> None:
        """Journal the settings anew with the next change: the journal is another one."""
        self._journalled = None


class ServedSession:
    """One session, as the agent's only client knows it."""

    def __init__(
        self,
        session_id: str,
        params: dict[str, Raw],
        journal: Journal,
        phase: SessionPhase,
        on_change: Callable[["ServedSession"], None],
    ) -> None:
        self.id = session_id
        self.params = params
        """The params that opened it, with its MCP servers: in memory only."""
        self.journal = journal
        self.life = SessionLife(session_id, phase)
        self.info = SessionFacts(prompted=journal.earlier.prompts > 0)
        self.setup = SessionSetup(journal.earlier.config)
        self.subscriptions: dict[Viewer, Subscription] = {}
        self.questions = 0
        """The number of the agent's questions that wait for an answer."""
        self.waiting: list[WaitingRequest] = []
        self.heard = 0
        """The number of the agent's notifications about it: grows while the agent gives signs of life."""
        self._recorder: _Recorder = journal
        self._on_change = on_change

    @property
    def cwd(self) -> str:
        """Its directory."""
        return self.journal.header.cwd

    @property
    def state(self) -> ShownState:
        """Its state, as viewers are told."""
        if self.life.is_unreachable:
            return "gone"
        if self.info.turns or any(waiting.request.method == "session/prompt" for waiting in self.waiting):
            return "running"
        return "idle" if self.life.is_at_agent else "asleep"

    def changed(self) -> None:
        """Have viewers told of it."""
        self._on_change(self)

    def take(self, updates: OrdinaryRun) -> None:
        """Take ordinary updates of the agent: they change nothing that is known here."""
        self.heard += updates.count
        self._recorder.add(updates.lines, updates.count)

    def take_notification(self, line: bytes) -> None:
        """Take any notification of the agent."""
        self.heard += 1
        if _NOTICE in line and self._pass_notice(line):
            return
        if b'_update"' in line and any(change in line for change in _CHANGES):
            self._follow(line)
        self._recorder.add(wire_line(line))

    def flush(self) -> None:
        """Write the records that were added to its journal."""
        journal = self._written
        journal.flush()
        if not self.info.turns and not journal.is_sync_due:
            journal.close()  # thousands of sessions may be open, and few of them at work

    def discard_updates(self) -> None:
        """Drop the agent's replay: the journal has it."""
        self._recorder = _DISCARD

    def record_updates(self) -> None:
        """Journal updates again."""
        if not isinstance(self._recorder, ReplayedJournal):
            self._recorder = self.journal

    def begin_replay(self, replay: ReplayedJournal) -> None:
        """Keep the agent's replay apart."""
        self._recorder = replay

    def end_replay(self) -> bool:
        """Keep the journal or the replay, whichever has more; tells whether that is the replay."""
        replay, self._recorder = self._recorder, self.journal
        if not isinstance(replay, ReplayedJournal):
            return False
        replay.journal.flush()  # a replay that cannot be written must not take the place of the journal
        if not replay.has_more_than(self.journal):
            replay.journal.delete()
            return False
        replay.journal.on_failure = self.journal.on_failure
        self.journal.drop()
        self.journal = self._recorder = replay.journal
        self.info.prompted = True
        self.setup.forget_journalled()
        if self.info.title is not None:
            self.journal.note("title", encode({"title": self.info.title}))
        return True

    def drop_replay(self) -> None:
        """Keep the journal: the agent could not replay the session."""
        replay, self._recorder = self._recorder, self.journal
        if isinstance(replay, ReplayedJournal):
            replay.journal.delete()

    def subscribe(self, viewer: Viewer, cursor: int) -> Subscription:
        """Put a viewer on it, from this record on."""
        subscription = viewer.subscribe(self.id)
        subscription.bind(self.journal, cursor)
        self.subscriptions[viewer] = subscription
        self.changed()
        return subscription

    def unsubscribe(self, viewer: Viewer) -> None:
        """Take a viewer off it."""
        if self.subscriptions.pop(viewer, None) is not None:
            self.changed()

    def wake_viewers(self) -> None:
        """Have all subscriptions look again."""
        for viewer, subscription in self.subscriptions.items():
            viewer.outbox.wake(subscription)

    def take_waiting(self) -> list[WaitingRequest]:
        """Give the requests that wait for the agent, and forget them."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def count_question(self, change: int) -> None:
        """Count a question of the agent that was asked (1) or settled (-1)."""
        self.questions += change
        self.changed()

    def begin_turn(self, viewer: Viewer, prompt: Iterable[Raw]) -> None:
        """Journal a viewer's prompt; others see it as the user's message."""
        self.info.turns += 1
        self.info.prompted = True
        self.info.stop_reason = self.info.error = None
        subscription = self.subscriptions.get(viewer)
        for block in prompt:
            self._add_update({"sessionUpdate": "user_message_chunk", "content": block})
            if subscription is not None and not viewer.knows_extensions:
                subscription.skip(self.journal.next_end)
        self.journal.note("turn", b'{"event":"start"}')
        self.changed()

    def end_turn(self, stop_reason: str | None, error: Any = None) -> None:
        """Journal the end of a turn."""
        self.info.turns = max(0, self.info.turns - 1)
        self.info.stop_reason, self.info.error = stop_reason, error
        record = {"event": "end", "stopReason": stop_reason, "title": self.info.title}
        self.journal.note("turn", encode(record if error is None else {**record, "error": error}))
        self.changed()

    def keep_setup(self, result: dict[str, Raw]) -> None:
        """Remember the agent's answer to the request that opened it; viewers that were told otherwise are told."""
        for update in self.setup.replace(result):
            self._add_update(update)
        self._note_setup()

    def follow_answer(self, method: str, params: Raw, result: Raw) -> None:
        """Keep up with a change that a viewer asked for and the agent made."""
        if method == "session/set_mode" and (mode := fields_of(params).get("modeId")) is not None:
            self.setup.set_mode(mode)
        elif method == "session/set_config_option" and (options := fields_of(result).get("configOptions")) is not None:
            self.setup.set_options(options)
        else:
            return
        self._note_setup()

    def describe(self) -> dict[str, Any]:
        """Give the params of `_dragoman/session`."""
        described: dict[str, Any] = {
            "sessionId": self.id,
            "cwd": self.cwd,
            "title": self.info.title,
            "state": self.state,
            "pending": self.questions,
            "viewers": len(self.subscriptions),
            "updatedAt": to_iso(self.journal.updated_ms),
        }
        if self.info.stop_reason is not None:
            described["stopReason"] = self.info.stop_reason
        if self.life.login is not None:
            described["error"] = error_object(RpcError(ErrorCode.AUTH_REQUIRED, self.life.login))
        elif self.info.error is not None:
            described["error"] = self.info.error
        elif self.journal.failure is not None:
            described["error"] = error_object(RpcError(ErrorCode.INTERNAL_ERROR, str(self.journal.failure)))
        return described

    @property
    def _written(self) -> Journal:
        """The journal that is written now: its own, or that of a replay."""
        return self._recorder.journal if isinstance(self._recorder, ReplayedJournal) else self.journal

    def _add_update(self, update: dict[str, Any]) -> None:
        self.journal.add(make_notification("session/update", {"sessionId": self.id, "update": update}) + b"\n")

    def _pass_notice(self, line: bytes) -> bool:
        """Pass a notice on to viewers; it is not journalled, because it is no part of the conversation."""
        update = _update_of(line)
        if string_of(update.get("sessionUpdate")) != "notice":
            return False
        thought = _as_thought(self.id, update)
        for viewer, subscription in self.subscriptions.items():
            shown = line if viewer.capabilities is not None and viewer.capabilities.notices else thought
            if shown is not None and viewer.has_room():
                viewer.send(shown, subscription)
        return True

    def _follow(self, line: bytes) -> None:
        """Keep up with a change that the agent tells."""
        update = _update_of(line)
        match string_of(update.get("sessionUpdate")):
            case "current_mode_update" if (mode := update.get("currentModeId")) is not None:
                self.setup.set_mode(mode)
                self._note_setup()
            case "config_option_update" if (options := update.get("configOptions")) is not None:
                self.setup.set_options(options)
                self._note_setup()
            case "session_info_update" if (title := update.get("title")) is not None:
                self.info.title = string_of(title)
                self._written.note("title", encode({"title": self.info.title}))
                self.changed()
            case _:
                pass

    def _note_setup(self) -> None:
        """Journal the settings, so that a viewer that comes after a restart is told of them."""
        config = self.setup.take_change()
        if config is not None:
            self._written.note("config", config)
            self.changed()


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
    """Make the updates for viewers that were told other settings."""
    mode_before, mode = (fields_of(setup.get("modes", UNSET)).get("currentModeId") for setup in (before, now))
    if mode_before is not None and mode is not None and bytes(mode) != bytes(mode_before):
        yield {"sessionUpdate": "current_mode_update", "currentModeId": mode}
    options_before, options = before.get("configOptions"), now.get("configOptions")
    if options_before is not None and options is not None and bytes(options) != bytes(options_before):
        yield {"sessionUpdate": "config_option_update", "configOptions": options}


def _copy(raw: Raw) -> Raw:
    """Keep a part of a message without keeping all of it."""
    return Raw(bytes(raw))
