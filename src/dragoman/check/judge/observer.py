"""The base of all observers: the state that they read, and the methods to report findings.

An observer is a small class for one area. Its methods declare with `watch` which messages they handle: a kind
(`request`, `notification`, `result`, `error`, `update`, `answer` for both result and error, or `event`), optionally
followed by a method, the kind of a `session/update`, or the first word of an event. They see the state before the
message is applied.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import SeenMessage
from dragoman.check.judge.state import ConversationState
from dragoman.check.rule import VERSIONS, Version

MessageHandler = Callable[[SeenMessage], None]
H = TypeVar("H", bound=Callable[..., None])

_MARK = "__watches__"


class FindingSink(Protocol):
    """The judge as used by observers."""

    state: ConversationState

    def count_occasion(self, rule: str) -> None:
        """Count an occasion for a rule."""
        ...

    def count_occasions(self, rule: str, times: int) -> None:
        """Count occasions that were collected elsewhere."""
        ...

    def record_breach(
        self, rule: str, detail: str, entries: tuple[ConversationEntry, ...], *, warn: bool = False
    ) -> None:
        """Record a breach."""
        ...


def watch(*keys: str) -> Callable[[H], H]:
    """Register a method of an observer for messages of these kinds."""

    def mark(method: H) -> H:
        setattr(method, _MARK, keys)
        return method

    return mark


class Observer:
    """Observes one area of the protocol."""

    area: ClassVar[str]
    versions: ClassVar[tuple[Version, ...]] = VERSIONS
    """The protocol versions that it observes. It only judges by rules that apply to the version of the conversation."""

    def __init__(self, sink: FindingSink) -> None:
        self.state = sink.state
        self.requests = sink.state.requests
        self.agreement = sink.state.agreement
        self.timeline = sink.state.timeline
        self.count_occasion = sink.count_occasion
        self._sink = sink

    def fail(self, rule: str, detail: str, *entries: ConversationEntry) -> None:
        """Report a broken rule: the observation, the expectation, and the entries that prove it."""
        self._sink.record_breach(rule, detail, entries)

    def warn(self, rule: str, detail: str, *entries: ConversationEntry) -> None:
        """Report a broken rule as a warning, because it is disputed or a guess."""
        self._sink.record_breach(rule, detail, entries, warn=True)

    def judge(self, rule: str, ok: bool, detail: str, *entries: ConversationEntry) -> None:
        """Count an occasion, and report the rule if it was broken."""
        self.count_occasion(rule)
        if not ok:
            self._sink.record_breach(rule, detail, entries)

    def judge_offer(self, rule: str, capability: str, request: SeenMessage, detail: str = "") -> None:
        """Judge a request that needs a capability of the agent, once initialize was answered."""
        initialized = self.agreement.initialized
        if initialized is None:
            return
        detail = detail or f"{request.method} was called, which the agent did not advertise"
        self.judge(rule, self.agreement.agent_offers(capability), detail, initialized.entry, request.entry)

    def on_noise(self, noise: Any) -> None:
        """Handle a line that is not a message."""

    def count(self) -> None:
        """Pass counted occasions on to the judge."""

    def end(self) -> None:
        """Report findings that only appear at the end of the conversation."""


def handlers(observer: Observer) -> list[tuple[str, MessageHandler]]:
    """Return the keys that an observer watches, with its methods for them."""
    kind = type(observer)
    marked = [(name, getattr(getattr(kind, name), _MARK, ())) for name in dir(kind)]
    return [(key, getattr(observer, name)) for name, keys in marked for key in keys]
