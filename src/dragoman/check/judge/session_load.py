"""Watches sessions that are loaded: whether the whole conversation comes back, in its order.

The turns that were seen tell what a replay should have. A replay may cut texts into other pieces, leave spaces out, and
give tool calls other ids. So texts are compared without spaces, as parts of the whole text of a side in the replay. If
none of them is found, the agent may replay a summary, and is not blamed.
"""

from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Object, SeenMessage, find_asked, part, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED, PastSession
from dragoman.check.judge.session_setup import CONTENT, judge_invented, judge_reopening
from dragoman.check.rule import V1, Version

MESSAGES = {"user_message_chunk": "user", "agent_message_chunk": "agent"}
MAX_SHOWN_CHARS = 60


class Replay:
    """The history between a session/load, or a session/resume of version 2, and its answer."""

    def __init__(self, *, is_live: bool) -> None:
        self.is_live = is_live
        """Whether a turn runs meanwhile, whose updates may come before and between those of the replay."""
        self.first: ConversationEntry | None = None
        self.words: dict[str, list[str]] = {}
        """The texts of each side; the side that spoke first comes first."""
        self.calls: set[str] = set()

    def take(self, update: Object, entry: ConversationEntry) -> None:
        kind = text(update, "sessionUpdate") or ""
        self.first = self.first or entry
        if kind in MESSAGES:
            self.words.setdefault(MESSAGES[kind], []).append(text(part(update, "content"), "text") or "")
        elif kind in ("tool_call", "tool_call_update"):
            self.calls.add(text(update, "toolCallId") or "")

    def said_by(self, side: str) -> str:
        return "".join(self.words.get(side, ()))


class LoadObserver(Observer):
    """Judges session/load."""

    area: ClassVar[str] = "LOAD"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._replays: dict[str, Replay] = {}
        self._loaded: dict[str, ConversationEntry] = {}
        """Answers to session/load after which nothing was asked in the session."""

    @watch("request session/load")
    def see_load(self, message: SeenMessage) -> None:
        session_id = text(message.params, "sessionId")
        if session_id is not None:
            session = self.state.session(message)
            self._replays[session_id] = Replay(is_live=session is not None and session.turn is not None)
            self._loaded.pop(session_id, None)
        self.judge_offer("ACP-LOAD-101", "loadSession", message)

    @watch("request session/prompt", "request session/resume")
    def see_going_on(self, message: SeenMessage) -> None:
        self._loaded.pop(text(message.params, "sessionId") or "", None)

    @watch("update")
    def see_update(self, message: SeenMessage) -> None:
        if not self._replays and not self._loaded:
            return
        session_id = text(message.params, "sessionId") or ""
        kind = text(message.update, "sessionUpdate")
        if kind not in CONTENT:
            return
        replay = self._replays.get(session_id)
        if replay is not None:
            replay.take(message.update, message.entry)
        loaded = self._loaded.get(session_id)
        session = self.state.sessions.get(session_id)
        is_idle = session is None or session.turn is None
        if loaded is not None and is_idle:
            del self._loaded[session_id]
            self.fail(
                "ACP-LOAD-002",
                f"a {kind} came after the answer to session/load; expected the whole replay before it",
                loaded,
                message.entry,
            )

    @watch("answer session/load")
    def see_loaded(self, message: SeenMessage) -> None:
        asked = find_asked(message)
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
        self.saw("ACP-LOAD-002")
        self.judge(
            "ACP-LOAD-001",
            replay.first is not None,
            "session/load of a session with a conversation replayed nothing",
            request.entry,
            message.entry,
        )
        if replay.first is not None:
            entries = (request.entry, replay.first, message.entry)
            judge_sides(self, replay, entries)
            judge_order(self, replay, past, entries)
            if len(replay.words) == len(MESSAGES):
                judge_whole(self, replay, past, entries)


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
    said = replay.said_by("user")
    places = [said.find(each) for each in past.prompts if each and past.prompts.count(each) == 1]
    found = [each for each in places if each >= 0]
    if len(found) > 1:
        observer.judge(
            "ACP-LOAD-005",
            found == sorted(found),
            "the replay has the user's messages in another order than they were sent",
            *entries,
        )


def judge_whole(observer: Observer, replay: Replay, past: PastSession, entries: tuple[ConversationEntry, ...]) -> None:
    """Judge whether a replay has the whole conversation."""
    for side, known in (("user", past.asked), ("agent", past.said)):
        if known:
            missing = _missing(known, replay.said_by(side))
            shown = missing[0][:MAX_SHOWN_CHARS] if missing else ""
            observer.judge(
                "ACP-LOAD-006",
                not missing,
                f"the replay lacks {len(missing)} of the messages of the {side}, such as {shown!r}",
                *entries,
            )
    if past.calls:
        lost = _lost(past.calls, replay.calls)
        observer.judge(
            "ACP-LOAD-006",
            not lost,
            f"the replay lacks {len(lost)} of the tool calls that were completed, such as {lost[:1]}",
            *entries,
        )


def _missing(known: list[str], replayed: str) -> list[str]:
    """Return the texts that a replay lacks; none if it has no text at all in common with them."""
    heard = _bare(replayed)
    pieces = [(each, bare) for each in known if (bare := _bare(each))]
    bares = [bare for _, bare in pieces]
    missing = [each for each, bare in pieces if heard.count(bare) < bares.count(bare)]
    is_verbatim = any(bare in heard for bare in bares) or (heard and heard in "".join(bares))
    return missing if is_verbatim else []


def _lost(known: list[str], replayed: set[str]) -> list[str]:
    """Return the tool calls that a replay lacks; if it gives all of them other ids, only their number counts."""
    lost = [each for each in known if each not in replayed]
    has_others = len(lost) == len(set(known)) and len(replayed) >= len(lost)
    return [] if has_others else lost


def _bare(words: str) -> str:
    return "".join(words.split())
