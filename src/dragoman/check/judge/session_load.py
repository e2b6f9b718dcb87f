"""Rules about loading sessions: whether the whole conversation is replayed in order.

The observed turns determine the expected replay. A replay may split texts differently, omit white space, and
use other ids for tool calls. Texts are therefore compared without white space, as parts of all text of a side in the
replay. If none of them is found, the agent may replay a summary, and is not blamed.
"""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Object, SeenMessage, find_request, part, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED, PastSession
from dragoman.check.judge.session_setup import CONTENT, judge_invented, judge_reopening
from dragoman.check.rule import V1, Version

MESSAGES = {"user_message_chunk": "user", "agent_message_chunk": "agent"}
MAX_SHOWN_CHARS = 60


class Replay:
    """The history between a session/load, or a version 2 session/resume, and its response."""

    def __init__(self, *, is_live: bool) -> None:
        self.is_live = is_live
        """Whether a turn runs concurrently. Its updates may be mixed with the replay's updates."""
        self.first: ConversationEntry | None = None
        self.words: dict[str, list[str]] = {}
        """The texts of each side, starting with the side that spoke first."""
        self.calls: set[str] = set()

    def apply(self, update: Object, entry: ConversationEntry) -> None:
        kind = text(update, "sessionUpdate") or ""
        self.first = self.first or entry
        if kind in MESSAGES:
            self.words.setdefault(MESSAGES[kind], []).append(text(part(update, "content"), "text") or "")
        elif kind in ("tool_call", "tool_call_update"):
            self.calls.add(text(update, "toolCallId") or "")

    def text_of(self, side: str) -> str:
        return "".join(self.words.get(side, ()))


class LoadObserver(Observer):
    """Judges session/load."""

    area: ClassVar[str] = "LOAD"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._replays: dict[str, Replay] = {}
        self._loaded: dict[str, ConversationEntry] = {}
        """Responses to session/load after which nothing was sent in the session."""
        self._empty: dict[str, SeenMessage] = {}
        """Responses that arrived before any history, which may be late."""

    @watch("request session/load")
    def on_load(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId")
        if session_id is not None:
            self._report_empty(session_id)
            session = self.state.session(message)
            self._replays[session_id] = Replay(is_live=session is not None and session.turn is not None)
            self._loaded.pop(session_id, None)
        self.judge_offer("ACP-LOAD-101", "loadSession", message)

    @watch("request session/prompt", "request session/resume")
    def on_going_on(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId") or ""
        self._loaded.pop(session_id, None)
        self._report_empty(session_id)

    def end(self) -> None:
        for session_id in tuple(self._empty):
            self._report_empty(session_id)

    def _report_empty(self, session_id: str) -> None:
        report_empty(self, self._empty.pop(session_id, None))

    @watch("update")
    def on_update(self, message: SeenMessage) -> None:
        if not self._replays and not self._loaded:
            return
        session_id = text(message.params, "sessionId") or ""
        kind = text(message.update, "sessionUpdate")
        if kind not in CONTENT:
            return
        replay = self._replays.get(session_id)
        if replay is not None:
            replay.apply(message.update, message.entry)
        loaded = self._loaded.get(session_id)
        session = self.state.sessions.get(session_id)
        is_idle = session is None or session.turn is None
        if loaded is not None and is_idle:
            del self._loaded[session_id]
            self._empty.pop(session_id, None)
            self.fail(
                "ACP-LOAD-002",
                f"a {kind} came after the answer to session/load; expected the whole replay before it",
                loaded,
                message.entry,
            )

    @watch("answer session/load")
    def on_loaded(self, message: SeenMessage) -> None:
        """Compare the replay of a loaded session with the conversation that the check remembers.

        Only a session with known prompts and answers can be compared, and only if no other client used it.
        """
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        replay = self._replays.pop(session_id, None)
        if session_id.startswith(INVENTED):
            judge_invented(self, "ACP-LOAD-003", request, message)
            return
        past = self.state.memory.sessions.get(session_id)
        judge_reopening(self, "ACP-LOAD-007", "loadSession", message)
        if message.kind == "error" or replay is None:
            return
        self._loaded[session_id] = message.entry
        if past is None or not past.prompts or not past.spoke or past.is_shared:
            return
        self.count_occasion("ACP-LOAD-002")
        if replay.first is None:
            self._empty[session_id] = message
        else:
            self.count_occasion("ACP-LOAD-001")
            entries = (request.entry, replay.first, message.entry)
            judge_sides(self, replay, entries)
            judge_order(self, replay, past, entries)
            if len(replay.words) == len(MESSAGES):
                judge_whole(self, replay, past, entries)


def report_empty(observer: Observer, answer: SeenMessage | None) -> None:
    """Report a session that was opened again without its history, which did not arrive late either."""
    if answer is not None and answer.request is not None:
        what = f"{answer.method} of a session with a conversation replayed nothing"
        observer.fail("ACP-LOAD-001", what, answer.request.entry, answer.entry)


def judge_sides(observer: Observer, replay: Replay, entries: tuple[ConversationEntry, ...]) -> None:
    """Judge whether a replay has both sides of the conversation."""
    missing = [side for side in MESSAGES.values() if side not in replay.words]
    observer.judge(
        "ACP-LOAD-004", not missing, f"the replay has no message of the {' or the '.join(missing)}", *entries
    )


def judge_order(observer: Observer, replay: Replay, past: PastSession, entries: tuple[ConversationEntry, ...]) -> None:
    """Judge whether a replay is in the order of the conversation."""
    if past.births and not past.has_begun and len(replay.words) > 1 and not replay.is_live:
        observer.judge(
            "ACP-LOAD-005",
            next(iter(replay.words)) == "user",
            "the replay begins with the agent; expected the user's message before it",
            *entries,
        )
    replayed = replay.text_of("user")
    places = [replayed.find(each) for each in past.prompts if each and past.prompts.count(each) == 1]
    found = [each for each in places if each >= 0]
    if len(found) > 1:
        observer.judge(
            "ACP-LOAD-005",
            found == sorted(found),
            "the replay has the user's messages in another order than they were sent",
            *entries,
        )


def judge_whole(observer: Observer, replay: Replay, past: PastSession, entries: tuple[ConversationEntry, ...]) -> None:
    """Judge whether a replay has the whole conversation, and only once."""
    observer.judge("ACP-LOAD-006", not _is_double(replay, past), "the replay has the conversation two times", *entries)
    for side, known in (("user", past.asked), ("agent", past.said)):
        if known:
            missing = _missing(known, replay.text_of(side))
            shown = missing[0][:MAX_SHOWN_CHARS] if missing else ""
            observer.judge(
                "ACP-LOAD-006",
                not missing,
                f"the replay lacks {len(missing)} of the messages of the {side}, such as {shown!r}",
                *entries,
            )
    if past.calls:
        lost = _find_missing_calls(past.calls, replay.calls)
        observer.judge(
            "ACP-LOAD-006",
            not lost,
            f"the replay lacks {len(lost)} of the tool calls that were completed, such as {lost[:1]}",
            *entries,
        )


def _is_double(replay: Replay, past: PastSession) -> bool:
    """Return whether the user's messages are replayed twice, one complete copy after the other."""
    replayed, sent = _bare(replay.text_of("user")), _bare("".join(past.prompts))
    is_repeated = replayed[: len(replayed) // 2] * 2 == replayed
    return is_repeated and all(replayed.count(each) >= 2 * sent.count(each) for each in map(_bare, past.asked) if each)


def _missing(known: list[str], replayed: str) -> list[str]:
    """Return the texts that a replay lacks, or none if it has no text in common with them."""
    replayed_text = _bare(replayed)
    pieces = [(each, bare) for each in known if (bare := _bare(each))]
    bares = [bare for _, bare in pieces]
    missing = [each for each, bare in pieces if replayed_text.count(bare) < bares.count(bare)]
    is_verbatim = any(bare in replayed_text for bare in bares) or (replayed_text and replayed_text in "".join(bares))
    return missing if is_verbatim else []


def _find_missing_calls(known: list[str], replayed: set[str]) -> list[str]:
    """Return the tool calls that a replay lacks. If all of them have other ids, only their number counts."""
    lost = [each for each in known if each not in replayed]
    has_others = len(lost) == len(set(known)) and len(replayed) >= len(lost)
    return [] if has_others else lost


def _bare(text: str) -> str:
    return "".join(text.split())
