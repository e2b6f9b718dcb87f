"""Rules about resuming version 2 sessions, with or without a replay of the conversation."""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.foreground import WRITERS, SeenText
from dragoman.check.judge.message import Object, SeenMessage, find_request, is_absolute, may_be_same_path, part, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED, PastSession
from dragoman.check.judge.session_list import EXCUSES
from dragoman.check.judge.session_load import Replay, judge_order, judge_sides, judge_whole, report_empty
from dragoman.check.judge.session_setup import judge_invented, judge_reopening
from dragoman.check.rule import V2, Version
from dragoman.errors import ErrorCode

HISTORY = frozenset({*WRITERS, "tool_call_update", "tool_call_content_chunk", "plan_update"})
"""Updates that are part of a conversation."""
SIDES = {"user": "user", "agent": "agent"}


class _Resume:
    """An unanswered session/resume and the updates since then."""

    def __init__(self, *, is_live: bool = False) -> None:
        self.is_live = is_live
        self.first: ConversationEntry | None = None
        self.state: ConversationEntry | None = None
        """The last `state_update` after all history so far."""
        self.messages: dict[str, SeenText] = {}
        self.calls: set[str] = set()

    def apply(self, update: Object, entry: ConversationEntry) -> None:
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
        """Return the replayed content in the form that the rules of both versions compare."""
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
        """Responses to resumes with a replay, after which nothing was sent in the session."""
        self._empty: dict[str, SeenMessage] = {}
        """Responses that arrived before any history, which may be late."""

    @watch("request session/resume")
    def on_resume(self, message: SeenMessage) -> None:
        session_id, cwd = text(message.params, "sessionId"), text(message.params, "cwd")
        if session_id is not None:
            session = self.state.session(message)
            self._resumes[session_id] = _Resume(is_live=session is not None and session.turn is not None)
            self._done.pop(session_id, None)
            self._report_empty(session_id)
            past = self.state.memory.sessions.get(session_id)
            if past is not None and past.cwd is not None and cwd is not None and is_absolute(cwd):
                self.judge(
                    "ACP-RESUME-102",
                    may_be_same_path(past.cwd, cwd),
                    f"the session belongs to {past.cwd!r}, but is resumed in {cwd!r}",
                    message.entry,
                )
        self.judge_offer(
            "ACP-RESUME-101",
            "sessionCapabilities.resume",
            message,
            "session/resume was called, and the agent advertises no sessions",
        )

    @watch("request session/prompt")
    def on_going_on(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId") or ""
        self._done.pop(session_id, None)
        self._report_empty(session_id)

    def end(self) -> None:
        for session_id in tuple(self._empty):
            self._report_empty(session_id)

    def _report_empty(self, session_id: str) -> None:
        report_empty(self, self._empty.pop(session_id, None))

    @watch("update")
    def on_update(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId") or ""
        resume = self._resumes.get(session_id)
        if resume is not None:
            resume.apply(message.update, message.entry)
            return
        done = self._done.get(session_id)
        kind = text(message.update, "sessionUpdate") or ""
        if done is not None and WRITERS.get(kind) == "user":
            del self._done[session_id]
            self._empty.pop(session_id, None)
            self.fail(
                "ACP-LOAD-002",
                f"a {kind} came after the answer to session/resume; expected the whole replay before it",
                done,
                message.entry,
            )

    @watch("answer session/resume")
    def on_resumed(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        resume = self._resumes.pop(session_id, None) or _Resume()
        replay_from = part(request.params, "replayFrom")
        if session_id.startswith(INVENTED):
            judge_invented(self, "ACP-RESUME-002", request, message)
            return
        if replay_from and text(replay_from, "type") != "start" and message.code not in EXCUSES:
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
            self.count_occasion("ACP-LOAD-002")
            if resume.first is None:
                self._empty[session_id] = answer
            else:
                self._judge_replay(resume, past, (request.entry, resume.first, answer.entry))

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
            self.count_occasion("ACP-RESUME-001")

    def _judge_replay(self, resume: _Resume, past: PastSession, entries: tuple[ConversationEntry, ...]) -> None:
        self.count_occasion("ACP-LOAD-001")
        replay = resume.as_replay()
        judge_sides(self, replay, entries)
        judge_order(self, replay, past, entries)
        if len(replay.words) == len(SIDES):
            judge_whole(self, replay, past, entries)
        self._judge_ids(resume, past, entries)

    def _judge_ids(self, resume: _Resume, past: PastSession, entries: tuple[ConversationEntry, ...]) -> None:
        by_text = {text: message_id for message_id, text in past.message_ids.items() if text}
        known = [each for each in resume.messages.items() if each[1].writer == "user" and each[1].text in by_text]
        changed = [message_id for message_id, _ in known if message_id not in past.message_ids]
        if known:
            self.judge(
                "ACP-LOAD-008",
                not changed,
                f"the replay has {changed[:1]} for a message whose id is {sorted(past.message_ids)[:1]}",
                *entries,
            )
