"""Watches sessions of version 2 being resumed, with a replay of the conversation or without one."""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.foreground import WRITERS, SeenText
from dragoman.check.judge.message import Object, SeenMessage, find_asked, may_be_same_path, part, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED, PastSession
from dragoman.check.judge.session_load import Replay, judge_order, judge_sides, judge_whole
from dragoman.check.judge.session_setup import judge_invented, judge_reopening
from dragoman.check.rule import V2, Version
from dragoman.errors import ErrorCode

HISTORY = frozenset({*WRITERS, "tool_call_update", "tool_call_content_chunk", "plan_update"})
"""Updates that are part of a conversation."""
SIDES = {"user": "user", "agent": "agent"}


class _Resume:
    """A session/resume that is not answered yet, and the updates since."""

    def __init__(self, *, is_live: bool = False) -> None:
        self.is_live = is_live
        self.first: ConversationEntry | None = None
        self.state: ConversationEntry | None = None
        """The last `state_update` after all history so far."""
        self.messages: dict[str, SeenText] = {}
        self.calls: set[str] = set()

    def take(self, update: Object, entry: ConversationEntry) -> None:
        kind, message_id = text(update, "sessionUpdate") or "", text(update, "messageId")
        if kind == "state_update":
            self.state = entry
        elif kind in HISTORY:
            self.first, self.state = self.first or entry, None
        if kind in WRITERS and message_id is not None:
            self.messages.setdefault(message_id, SeenText(WRITERS[kind], entry)).apply(update)
        elif kind == "tool_call_update":
            self.calls.add(text(update, "toolCallId") or "")

    def as_replay(self) -> Replay:
        """Return what was replayed, as the rules of both versions compare it."""
        replay = Replay(is_live=self.is_live)
        replay.first, replay.calls = self.first, self.calls
        for message in self.messages.values():
            if message.writer in SIDES:
                replay.words.setdefault(message.writer, []).append(message.text)
        return replay


class ReplayObserver(Observer):
    """Judges session/resume."""

    area: ClassVar[str] = "RESUME"
    versions: ClassVar[tuple[Version, ...]] = V2

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._resumes: dict[str, _Resume] = {}
        self._done: dict[str, ConversationEntry] = {}
        """Answers to resumes with a replay, after which nothing was asked in the session."""

    @watch("request session/resume")
    def see_resume(self, message: SeenMessage) -> None:
        session_id, cwd = text(message.params, "sessionId"), text(message.params, "cwd")
        if session_id is not None:
            session = self.state.session(message)
            self._resumes[session_id] = _Resume(is_live=session is not None and session.turn is not None)
            self._done.pop(session_id, None)
            past = self.state.memory.sessions.get(session_id)
            if past is not None and past.cwd is not None and cwd is not None:
                self.judge(
                    "ACP-RESUME-102",
                    may_be_same_path(past.cwd, cwd),
                    f"the session is of {past.cwd!r}, and is resumed in {cwd!r}",
                    message.entry,
                )
        self.judge_offer(
            "ACP-RESUME-101",
            "sessionCapabilities.resume",
            message,
            "session/resume was called, and the agent advertises no sessions",
        )

    @watch("request session/prompt")
    def see_going_on(self, message: SeenMessage) -> None:
        self._done.pop(text(message.params, "sessionId") or "", None)

    @watch("update")
    def see_update(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId") or ""
        resume = self._resumes.get(session_id)
        if resume is not None:
            resume.take(message.update, message.entry)
            return
        done = self._done.get(session_id)
        kind = text(message.update, "sessionUpdate") or ""
        if done is not None and WRITERS.get(kind) == "user":
            del self._done[session_id]
            self.fail(
                "ACP-LOAD-002",
                f"a {kind} came after the answer to session/resume; expected the whole replay before it",
                done,
                message.entry,
            )

    @watch("answer session/resume")
    def see_resumed(self, message: SeenMessage) -> None:
        asked = find_asked(message)
        if asked is None:
            return
        request, session_id = asked
        resume = self._resumes.pop(session_id, None) or _Resume()
        replay_from = part(request.params, "replayFrom")
        if session_id.startswith(INVENTED):
            judge_invented(self, "ACP-RESUME-002", request, message)
            return
        if replay_from and text(replay_from, "type") != "start" and message.code != ErrorCode.AUTH_REQUIRED:
            self.judge(
                "ACP-RESUME-005",
                message.code == ErrorCode.INVALID_PARAMS,
                f"session/resume with replayFrom {replay_from} was answered with {message.code or 'a result'}; "
                "expected -32602",
                request.entry,
                message.entry,
            )
            return
        judge_reopening(self, "ACP-RESUME-003", "sessionCapabilities.resume", message)
        if message.kind == "result":
            self._judge_result(session_id, resume, message, is_replayed=bool(replay_from))

    def _judge_result(self, session_id: str, resume: _Resume, answer: SeenMessage, *, is_replayed: bool) -> None:
        request = answer.request
        if request is None:
            return
        self.judge(
            "ACP-RESUME-004",
            resume.state is not None,
            "session/resume was answered without a state_update before, after all history",
            request.entry,
            answer.entry,
        )
        past = self.state.memory.past(session_id)
        if not is_replayed:
            self._judge_silence(session_id, resume, past, answer)
            return
        self._done[session_id] = answer.entry
        if past.prompts and past.spoke and not past.is_shared:
            self._judge_replay(resume, past, request.entry, answer.entry)

    def _judge_silence(self, session_id: str, resume: _Resume, past: PastSession, answer: SeenMessage) -> None:
        session = self.state.sessions.get(session_id)
        is_working = session is not None and session.turn is not None
        known = [each.entry for each in resume.messages.values() if each.writer == "user"]
        if known and not is_working:
            self.fail(
                "ACP-RESUME-001",
                "session/resume without replayFrom replayed the conversation; expected no updates of it",
                *([answer.request.entry] if answer.request else []),
                known[0],
                answer.entry,
            )
        elif past.spoke:
            self.saw("ACP-RESUME-001")

    def _judge_replay(
        self, resume: _Resume, past: PastSession, asked: ConversationEntry, answered: ConversationEntry
    ) -> None:
        self.saw("ACP-LOAD-002")
        self.judge(
            "ACP-LOAD-001",
            resume.first is not None,
            "session/resume with replayFrom of a session with a conversation replayed nothing",
            asked,
            answered,
        )
        if resume.first is None:
            return
        entries, replay = (asked, resume.first, answered), resume.as_replay()
        judge_sides(self, replay, entries)
        judge_order(self, replay, past, entries)
        if len(replay.words) == len(SIDES):
            judge_whole(self, replay, past, entries)
        self._judge_ids(resume, past, entries)

    def _judge_ids(self, resume: _Resume, past: PastSession, entries: tuple[ConversationEntry, ...]) -> None:
        by_text = {words: message_id for message_id, words in past.message_ids.items() if words}
        known = [each for each in resume.messages.items() if each[1].writer == "user" and each[1].text in by_text]
        changed = [message_id for message_id, _ in known if message_id not in past.message_ids]
        if known:
            self.judge(
                "ACP-LOAD-008",
                not changed,
                f"the replay has {changed[:1]} for a message whose id is {sorted(past.message_ids)[:1]}",
                *entries,
            )
