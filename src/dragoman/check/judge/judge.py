"""The judge, which processes a conversation entry by entry and reports the rules that it breaks.

It sends nothing. A driver, a tap and a recorded trace get the same verdicts for the same messages.

Text chunks of a running turn take a fast path, because agents stream word by word and a tap has to keep up. A text
chunk that fits the schema, in a session whose turn runs and has sent text before, cannot break any other rule. It is
only counted.
"""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from dragoman.check.conversation import ConversationEntry, RecordedConversation, Side
from dragoman.check.judge.dialect import dialect_of
from dragoman.check.judge.fit import params_decoder, tighten
from dragoman.check.judge.message import LONG_BYTES, Noise, SeenMessage, read
from dragoman.check.judge.observer_table import ObserverTable
from dragoman.check.judge.session import AgentMemory
from dragoman.check.judge.state import ConversationState
from dragoman.check.results import CheckerFailure, Finding
from dragoman.check.rule import VERSIONS, Version
from dragoman.check.rules import RULES
from dragoman.errors import ErrorCode
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_UPDATE, Method
from dragoman.wire.message import BAD_JSON, is_sound

_MARK = b'"session/update"'

OCCASIONS = (
    "ACP-WIRE-001",
    "ACP-WIRE-002",
    "ACP-WIRE-003",
    "ACP-WIRE-004",
    "ACP-WIRE-020",
    "ACP-WIRE-021",
    "ACP-WIRE-022",
    "ACP-EXT-001",
    "ACP-NEW-003",
    "ACP-CONTENT-001",
)
"""The rules for which each text chunk is an occasion."""


class ChunkFastPath:
    """Handles the agent's text chunks without the observers."""

    def __init__(self, state: ConversationState, update: Method[Any, Any], types: Any) -> None:
        self._state = state
        self._decode = params_decoder(update, "notification").decode
        self._text = tighten(types.TextContent)
        self._message = tighten(types.AgentMessageChunk)
        self._chunks = frozenset({self._message, tighten(types.AgentThoughtChunk)})
        self._counted = 0

    def decode(self, entry: ConversationEntry) -> Any:
        """Return the update in a line, if there is one that fits the schema."""
        line = entry.line
        if _MARK not in line or len(line) > LONG_BYTES or not is_sound(line):
            return None
        try:
            call = self._decode(line)
        except BAD_JSON:
            return None
        return call.params if call.method == SESSION_UPDATE.name else None

    def count(self, params: Any) -> bool:
        """Count an update if it cannot break any other rule. Return whether it was counted.

        That is a text chunk of the message that the agent is writing, in a turn in progress.
        """
        update = params.update
        if type(update) not in self._chunks or type(update.content) is not self._text:
            return False
        session = self._state.sessions.get(params.session_id)
        if session is None or not session.is_talking or params.meta is not None:
            return False
        if self._state.is_v2 and (session.turn is None or update.message_id != session.turn.message_id):
            return False
        if session.turn is not None and type(update) is self._message:
            session.turn.append_text(update.content.text)
        self._counted += 1
        return True

    def drain(self) -> int:
        """Return the number of counted updates since the last call."""
        counted, self._counted = self._counted, 0
        return counted


def find_fast_path(state: ConversationState) -> ChunkFastPath:
    """Return the fast path for the version of the conversation."""
    if state.agreement.dialect.version == 1:
        return ChunkFastPath(state, SESSION_UPDATE, v1)
    from dragoman.protocol import v2

    return ChunkFastPath(state, state.agreement.dialect.notifications["session/update"], v2)


def _guess_version(initialize: SeenMessage) -> Version:
    """Return the version whose shape an `initialize` has. For an unknown version, its fields decide."""
    asked = initialize.params.get("protocolVersion")
    if asked in VERSIONS:
        return asked
    return 2 if "info" in initialize.params else 1


MAX_PER_RULE = 100
"""Maximum number of findings kept per rule, because a peer that errs in every message would fill the memory."""


class Judge:
    """Judges one conversation. All judges of one agent's connections share the same `memory`."""

    def __init__(
        self,
        conversation: RecordedConversation,
        *,
        sides: Collection[Side] = ("agent", "client"),
        memory: AgentMemory | None = None,
    ) -> None:
        self.conversation = conversation
        self.sides = frozenset(sides)
        self.findings: list[Finding] = []
        self.failures: list[CheckerFailure] = []
        self.state = ConversationState(memory or AgentMemory())
        self._occasions: Counter[str] = Counter()
        self._breaches: Counter[str] = Counter()
        self._stream = find_fast_path(self.state)
        self._is_calm = True
        """Whether the last line was a message. A message after an invalid line may be related to that line."""
        self._observers = ObserverTable(self)

    @property
    def version(self) -> Version:
        """The agreed version, or the requested version until a response settles it."""
        return self.state.agreement.dialect.version

    def assume(self, version: Version) -> None:
        """Judge by the rules of a version until a response to `initialize` settles it."""
        if version != self.version:
            self._observers.count()  # by the rules of the previous version
            self.state.agreement.dialect = dialect_of(version)
            self._observers.use_version(version)
            self._stream = find_fast_path(self.state)

    @property
    def occasions(self) -> Counter[str]:
        """How often there was an occasion to follow or break each rule."""
        self._observers.count()
        streamed = self._stream.drain()
        for rule in OCCASIONS if streamed else ():
            self.count_occasions(rule, streamed)
        return self._occasions

    def count_occasion(self, rule: str) -> None:
        """Count an occasion for a rule, if it applies to the version."""
        if rule in self._observers.applicable:
            self._occasions[rule] += 1

    def count_occasions(self, rule: str, times: int) -> None:
        """Count occasions that were collected elsewhere."""
        if rule in self._observers.applicable:
            self._occasions[rule] += times

    def record_breach(
        self, rule: str, detail: str, entries: tuple[ConversationEntry, ...], *, warn: bool = False
    ) -> None:
        """Record a breach, if its side is judged and the rule applies to the version."""
        if rule not in self._observers.applicable:
            return
        known = RULES[rule]
        self._occasions[rule] += 1
        self._breaches[rule] += 1
        if known.side not in self.sides or self._breaches[rule] > MAX_PER_RULE:
            return
        verdict = "warn" if warn or known.level == "disputed" else "fail"
        numbers = tuple(dict.fromkeys(entry.n for entry in entries))
        self.findings.append(Finding(rule, verdict, detail, numbers))

    def see(self, entry: ConversationEntry) -> list[Finding]:
        """Process the next entry and return its findings."""
        known = len(self.findings)
        self.state.timeline.is_timed = self.state.timeline.is_timed or entry.at_s > 0
        if entry.event:
            self._judge_event(entry)
        else:
            self._judge_line(entry)
        return self.findings[known:] if len(self.findings) > known else []

    def end(self) -> list[Finding]:
        """End the conversation and return the findings that only appear at its end."""
        known = len(self.findings)
        for observer in self._observers.observers:
            self._guard(observer.area, observer.end)
        return self.findings[known:]

    def _judge_line(self, entry: ConversationEntry) -> None:
        # The fast path only counts the text of a running turn. After an invalid line all messages go to the observers,
        # because they may have to relate them to it.
        update = self._stream.decode(entry) if entry.sender == "agent" else None
        if update is not None and self._is_calm and self._stream.count(update):
            self.state.timeline.last["agent"] = entry
            return
        message = read(entry)
        self._is_calm = isinstance(message, SeenMessage)
        if isinstance(message, SeenMessage):
            message.fits = update is not None
            self._judge_message(message)
            self.state.timeline.last[entry.sender] = entry
        else:
            self._judge_noise(message)

    def _judge_message(self, message: SeenMessage) -> None:
        if not self.state.timeline.last:
            self.state.timeline.begin(message)
        if message.kind in ("result", "error"):
            self.state.requests.match(message)
        if message.method == "initialize":
            self._learn_version(message)
        for area, handler in self._observers.find_route(message):
            try:
                handler(message)
            except Exception as error:  # noqa: BLE001 -- a mistake of the checker is a verdict, not a crash
                self._record_fault(area, error, message.entry)
        self.state.apply(message)

    def _learn_version(self, message: SeenMessage) -> None:
        request = message if message.kind == "request" else message.request
        if request is None:
            return
        match message.kind:
            case "request":
                self.assume(_guess_version(request))
            case "result":
                version = message.params.get("protocolVersion")
                # A client that requests version 2 in the format of version 1 does not speak version 2.
                if version in VERSIONS and version <= self.version:
                    self.assume(version)
            case _ if message.code == ErrorCode.UNSUPPORTED_VERSION:
                self.assume(2)
            case _ if self.state.memory.versions == {1}:
                self.assume(1)
            case _:
                pass

    def _judge_event(self, entry: ConversationEntry) -> None:
        word = entry.event.split(" ", 1)[0]
        if word == "waited" and entry.sender in self.state.timeline.closed:
            return
        message = SeenMessage(entry, entry.sender, "notification", "")
        for area, handler in self._observers.find_steps("event", f"event {word}"):
            try:
                handler(message)
            except Exception as error:  # noqa: BLE001 -- a mistake of the checker is a verdict, not a crash
                self._record_fault(area, error, entry)
        self.state.timeline.record_event(entry)

    def _judge_noise(self, noise: Noise) -> None:
        for observer in self._observers.observers:
            observer.on_noise(noise)

    def _guard(self, area: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 -- a mistake of the checker is a verdict, not a crash
            self._record_fault(area, error, self.conversation.entries[-1] if self.conversation.entries else None)

    def _record_fault(self, area: str, error: Exception, entry: ConversationEntry | None) -> None:
        self.failures.append(
            CheckerFailure(area, f"the checker failed: {type(error).__name__}: {error}", entry.n if entry else 0)
        )
