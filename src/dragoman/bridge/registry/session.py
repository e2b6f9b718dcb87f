"""A session of the agent: its journal, its viewers, and the facts that are known without asking the agent."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery import Journal, ReplayedJournal, SessionDescription, Subscription, Viewer
from dragoman.bridge.envelope import (
    OrdinaryRun,
    encode,
    fields_of,
    make_notification,
    string_of,
    with_param,
    without_secrets,
)
from dragoman.bridge.registry.labels import NO_LABEL, SessionLabel, describe_label, title_of
from dragoman.bridge.registry.prompt_queue import HOLDING_ENDS
from dragoman.bridge.registry.session_updates import (
    DISCARD,
    UpdateRecorder,
    keyed,
    make_turn_end,
    notice_as_thought,
    to_iso,
    update_of,
    without_title,
)
from dragoman.bridge.registry.setup import SessionSetup
from dragoman.bridge.registry.state import SessionLife, SessionPhase
from dragoman.bridge.registry.turns import SessionTurns, WaitingRequest
from dragoman.bridge.translation import V1, V2, Version
from dragoman.errors import ErrorCode, RpcError
from dragoman.store.block import wire_line
from dragoman.wire import error_object

ShownState = Literal["idle", "running", "asleep", "gone"]

PROMPT_KEY = "dragoman/prompt"
"""The key of `_meta` of a user's message, for the key of its prompt."""

_NOTICE = b'"notice"'
_STATE = b'"state_update"'
_USER = b'"user_message'
_CHANGES = (
    b'"current_mode_update"',
    b'"config_option_update"',
    b'"session_info_update"',
    b'"available_commands_update"',
)


class SessionFacts(msgspec.Struct):
    """The facts of a session that its announcements tell."""

    prompted: bool
    """Whether anybody has prompted it: some agents keep no others, and lists show no others."""
    title: str | None = None
    """The title that a person gave, else the agent's, else one made of the first prompt."""
    is_title_made: bool = False
    """Whether the title is made of a prompt, and viewers of the session were not told."""
    label: SessionLabel = NO_LABEL
    turns: int = 0
    """Prompts under way."""
    stop_reason: str | None = None
    error: Any = None
    questions: int = 0
    """The number of the agent's questions that wait for an answer."""
    params_version: Version = V1
    """The version of ACP of the params that opened it."""


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
        self.turns = SessionTurns(journal.earlier.turns)
        self.waiting: list[WaitingRequest] = []
        self.heard = 0
        """The number of the agent's notifications about it: grows while the agent gives signs of life."""
        self._recorder: UpdateRecorder = journal
        self._on_change = on_change

    @property
    def cwd(self) -> str:
        """Its directory."""
        return self.journal.header.cwd

    @property
    def version(self) -> Version:
        """The version of ACP in which the agent speaks of it, or did when it was last open."""
        return self.journal.version

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
        if self.turns.has_prompts and _USER in updates.lines:
            for line in updates.lines[:-1].split(b"\n"):
                self.take_notification(line)
            return
        self.heard += updates.count
        self._recorder.add(updates.lines, updates.count)
        self.turns.see_work()

    def take_notification(self, line: bytes) -> bool:
        """Take any notification of the agent, and tell whether a turn has ended with it."""
        self.heard += 1
        if _NOTICE in line and self._pass_notice(line):
            return False
        if b'_update"' in line and any(change in line for change in _CHANGES):
            followed = self._follow(line)
            if followed is None:
                return False
            line = followed
        self._recorder.add(wire_line(line))
        if self._written.version == V1:
            self.turns.see_work()
            return False
        if _USER in line and self.turns.has_prompts:
            self._skip_echo(line)
        return _STATE in line and self._follow_state(line)

    def flush(self) -> None:
        """Write the records that were added to its journal."""
        journal = self._written
        journal.flush()
        if not self.info.turns and not journal.is_sync_due:
            journal.close()  # thousands of sessions may be open, and few of them at work

    def discard_updates(self) -> None:
        """Drop the agent's replay: the journal has it."""
        self._recorder = DISCARD

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
        replay.journal.reader = self
        self.journal.drop()
        self.journal = self._recorder = replay.journal
        self.info.prompted = True
        self.setup.forget_journalled()
        if self.info.title is not None:
            self.set_title(self.info.title)
        return True

    def drop_replay(self) -> None:
        """Keep the journal: the agent could not replay the session."""
        replay, self._recorder = self._recorder, self.journal
        if isinstance(replay, ReplayedJournal):
            replay.journal.delete()

    def subscribe(self, viewer: Viewer, cursor: int, *, has_history: bool = False) -> Subscription:
        """Put a viewer on it, from this record on; it may have the records before."""
        subscription = viewer.subscribe(self.id)
        subscription.bind(self.journal, cursor, has_history=has_history)
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

    def cancel_prompts(self) -> None:
        """Answer prompts that the agent has not seen yet."""
        prompts = [waiting for waiting in self.waiting if waiting.request.method == "session/prompt"]
        self.waiting = [waiting for waiting in self.waiting if waiting not in prompts]
        for waiting in prompts:
            if waiting.request.viewer.version == V1:
                waiting.request.answer({"stopReason": "cancelled"})
            else:
                waiting.request.refuse(ErrorCode.REQUEST_CANCELLED, "the prompt was not inserted")
        if prompts:
            self.changed()

    def count_question(self, change: int) -> None:
        """Count a question of the agent that was asked (1) or settled (-1)."""
        self.turns.see_work()
        self.info.questions += change
        self._tell_state()
        self.changed()

    def begin_turn(
        self, viewer: Viewer, prompt: list[Raw], message_id: str | None = None, key: str | None = None
    ) -> None:
        """Journal a viewer's prompt; others see it as the user's message, and its own viewer knows it by the key."""
        self.info.turns += 1
        self._tell_state()
        subscription = self.subscriptions.get(viewer)
        self.propose_title(prompt)
        named = {} if message_id is None else {"messageId": message_id}
        for block in map(without_secrets, prompt):
            self._add_update({"sessionUpdate": "user_message_chunk", **named, "content": block}, key)
            if subscription is not None and not viewer.knows_extensions and viewer.version == V1:
                subscription.skip(self.journal.next_end)
        self._note_start(key)

    def propose_title(self, prompt: list[Raw]) -> None:
        """Make a title of a prompt, for the end of a turn in which the agent gives none."""
        if self.info.title is None:
            self.info.title = title_of(prompt)
            self.info.is_title_made = self.info.title is not None

    def add_message(self, prompt: list[Raw]) -> None:
        """Journal a message that a viewer sent into a turn that is under way."""
        for block in map(without_secrets, prompt):
            self._add_update({"sessionUpdate": "user_message_chunk", "content": block})

    def show_end(self, stop_reason: str | None, error: Any = None, usage: Raw | None = None) -> None:
        """Show viewers a title that the agent did not give, and of a turn's end what is no part of the answer."""
        if self.info.is_title_made and self.info.title is not None:
            self.set_title(self.info.title)
        if (end := make_turn_end(stop_reason, error, usage)) is not None:
            self._add_update(end)

    def tell_queue(self) -> None:
        """Tell viewers which prompts wait."""
        self.turns.queue.tell(self.id, self.subscriptions)

    def end_turn(
        self, stop_reason: str | None, error: Any = None, *, was_inserted: bool = True, key: str | None = None
    ) -> None:
        """Journal the end of a turn."""
        self.info.turns = max(0, self.info.turns - 1)
        self._note_end(stop_reason, error, key)
        if not was_inserted:
            self._tell_state()
        elif error is not None:
            self._tell_state({"stopReason": "error", "error": error})
        else:
            self._tell_state({"stopReason": stop_reason or "end_turn"})

    def fail_turns(self, data: dict[str, Any]) -> None:
        """End the work of an agent of version 2 that has ended itself."""
        error = error_object(RpcError(ErrorCode.INTERNAL_ERROR, data))
        if self.turns.is_active:
            self._add_update({"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error})
            self.info.turns = 0
            self.show_end(None, error)
            self._note_end(None, error)
        self.turns.end(data)

    def close_turns(self) -> None:
        """End the prompts that the agent had not ended when it closed the session."""
        self.turns.withdraw()
        self.turns.end(None)
        if self.turns.queue:
            self.turns.queue.clear()
            self.tell_queue()
        if self.version == V2:
            self.info.turns = 0

    def describe_state(self) -> bytes:
        """Give the notification of its state, for a viewer of version 2 that opens it."""
        if self.version == V2:
            return self._make_update(self.turns.last_state)
        return self._make_update({"sessionUpdate": "state_update", "state": self._turn_state()})

    def set_title(self, title: str) -> None:
        """Give it a title that its agent did not tell, and tell its viewers."""
        self.info.title, self.info.is_title_made = title, False
        self._add_update({"sessionUpdate": "session_info_update", "title": title})
        self.journal.note("title", encode({"title": title}))
        self.changed()

    def set_label(self, label: SessionLabel) -> None:
        """Keep another label; viewers are told a title that is in it."""
        self.info.label = label
        if label.title is not None and label.title != self.info.title:
            self.set_title(label.title)
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

    def end_broken_turn(self, problem: str) -> None:
        """Journal the end of a turn that another node has left unfinished."""
        error = error_object(RpcError(ErrorCode.INTERNAL_ERROR, problem))
        self.show_end(None, error)
        self._note_end(None, error)

    def describe_for_lists(self) -> SessionDescription:
        """Describe it for the lists of other nodes."""
        return SessionDescription(self.describe(), self.info.prompted)

    def describe(self) -> dict[str, Any]:
        """Give the params of `_dragoman/session`."""
        described: dict[str, Any] = {
            "sessionId": self.id,
            "cwd": self.cwd,
            "title": self.info.title,
            "state": self.state,
            "pending": self.info.questions,
            "viewers": len(self.subscriptions),
            "updatedAt": to_iso(self.journal.updated_ms),
        }
        described |= describe_label(self.info.label)
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

    def _turn_state(self) -> str:
        """Give the state that version 2 has for the turns of an agent of version 1."""
        if not self.info.turns:
            return "idle"
        return "requires_action" if self.info.questions else "running"

    def _tell_state(self, ended: dict[str, Any] | None = None) -> None:
        """Tell viewers of version 2 the state of a session whose agent speaks version 1, if it has changed."""
        state = self._turn_state()
        if self.version == V2 or state == self.turns.last_state["state"]:
            return
        told: dict[str, Any] = {"sessionUpdate": "state_update", "state": state}
        self.turns.last_state = told
        line = self._make_update({**told, **(ended or {})} if state == "idle" else told)
        for viewer, subscription in self.subscriptions.items():
            if viewer.version == V2:
                viewer.send(line, subscription)

    def note_prompt(self, key: str) -> None:
        """Journal that an agent of version 2 was sent a prompt with a key; states tell the rest."""
        self._written.note("turn", encode({"event": "prompt", "key": key}))

    def _note_start(self, key: str | None = None) -> None:
        self.info.prompted = True
        self.info.stop_reason = self.info.error = None
        self._written.note("turn", encode({"event": "start", **keyed(key)}))
        self.changed()

    def _note_end(self, stop_reason: str | None, error: Any, key: str | None = None) -> None:
        self.info.stop_reason, self.info.error = stop_reason, error
        if self.turns.queue.hold(is_held=error is not None or stop_reason in HOLDING_ENDS):
            self.tell_queue()
        record = {"event": "end", **keyed(key), "stopReason": stop_reason, "title": self.info.title}
        self._written.note("turn", encode(record if error is None else {**record, "error": error}))
        self.changed()

    def _follow_state(self, line: bytes) -> bool:
        """Keep up with the work of an agent of version 2; tells whether it has ended with this state."""
        update = msgspec.json.decode(line)["params"]["update"]
        if update.get("sessionUpdate") != "state_update":
            return False
        was_active = self.turns.is_active
        self.turns.take_state(update)
        self.info.turns = int(self.turns.is_active)
        if self.turns.is_active and not was_active:
            self._note_start()
        elif was_active and not self.turns.is_active:
            reason, error = update.get("stopReason"), update.get("error")
            self.show_end(reason, error)
            self._note_end(None if reason == "error" else reason, error)
            return True
        return False

    def _skip_echo(self, line: bytes) -> None:
        """Leave a viewer's own prompt, which the agent repeats, out of what it is told."""
        update = msgspec.json.decode(line)["params"]["update"]
        if not str(update.get("sessionUpdate")).startswith("user_message"):
            return
        viewer = self.turns.find_echo(update)
        subscription = None if viewer is None else self.subscriptions.get(viewer)
        if viewer is not None and subscription is not None and not viewer.knows_extensions:
            subscription.skip(self.journal.next_end)

    def _make_update(self, update: dict[str, Any]) -> bytes:
        return make_notification("session/update", {"sessionId": self.id, "update": update})

    def _add_update(self, update: dict[str, Any], key: str | None = None) -> None:
        line = self._make_update(update)
        if key is not None:
            line = with_param(line, "_meta", {PROMPT_KEY: key})
        self.journal.add(line + b"\n")

    def _pass_notice(self, line: bytes) -> bool:
        """Pass a notice on to viewers; it is not journalled, because it is no part of the conversation."""
        update = update_of(line)
        if string_of(update.get("sessionUpdate")) != "notice":
            return False
        thought = notice_as_thought(self.id, update)
        for viewer, subscription in self.subscriptions.items():
            shown = line if viewer.capabilities is not None and viewer.capabilities.notices else thought
            if shown is not None and viewer.has_room():
                viewer.send(shown, subscription)
        return True

    def _follow(self, line: bytes) -> bytes | None:
        """Keep up with a change that the agent tells; gives the line for viewers, if there is anything left of it."""
        update = update_of(line)
        match string_of(update.get("sessionUpdate")):
            case "current_mode_update" if (mode := update.get("currentModeId")) is not None:
                self.setup.set_mode(mode)
                self._note_setup()
            case "config_option_update" if (options := update.get("configOptions")) is not None:
                self.setup.set_options(options)
                self._note_setup()
            case "available_commands_update" if (commands := update.get("availableCommands")) is not None:
                self.setup.set_commands(commands)
                self._note_setup()
            case "session_info_update" if (title := update.get("title")) is not None:
                if self.info.label.title is not None:
                    return without_title(line, update)
                self._take_title(string_of(title))
            case _:
                pass
        return line

    def _take_title(self, title: str | None) -> None:
        """Journal a title that the agent tells; it tells it again whenever it loads the session."""
        is_journalled = title == self.info.title and not self.info.is_title_made and self._written is self.journal
        self.info.title, self.info.is_title_made = title, False
        if not is_journalled:
            self._written.note("title", encode({"title": title}))
            self.changed()

    def _note_setup(self) -> None:
        """Journal the settings, so that a viewer that comes after a restart is told of them."""
        config = self.setup.take_change(self._written.version)
        if config is not None:
            self._written.note("config", config)
            self.changed()
