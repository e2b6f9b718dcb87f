"""The base of all observers: the state that they read, and the methods to report findings.

An observer is a small class for one area. Its methods say with `watch` which messages they want to see: a kind
(`request`, `notification`, `result`, `error`, `update`, `answer` for both result and error, or `event`), alone or
followed by a method, by the kind of a `session/update`, or by the first word of an event. They see the state as it
was before the message.
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
    """The judge, as observers see it."""

    state: ConversationState

    def saw(self, rule: str) -> None:
        """Count an occasion for a rule."""
        ...

    def count_occasions(self, rule: str, times: int) -> None:
        """Count occasions that were gathered elsewhere."""
        ...

    def record_breach(
        self, rule: str, detail: str, entries: tuple[ConversationEntry, ...], *, warn: bool = False
    ) -> None:
        """Record a breach."""
        ...


def watch(*keys: str) -> Callable[[H], H]:
    """Let a method of an observer see messages of these kinds."""

    def mark(method: H) -> H:
        setattr(method, _MARK, keys)
        return method

    return mark


class Observer:
    """Watches one area of the protocol."""

    area: ClassVar[str]
    versions: ClassVar[tuple[Version, ...]] = VERSIONS
    """The versions of the protocol in which it watches; it judges only by rules that hold for the one spoken."""

    def __init__(self, sink: FindingSink) -> None:
        self.state = sink.state
        self.requests = sink.state.requests
        self.agreement = sink.state.agreement
        self.timeline = sink.state.timeline
        self.saw = sink.saw
        self._sink = sink

    def fail(self, rule: str, detail: str, *entries: ConversationEntry) -> None:
        """Report a broken rule: the observation, the expectation, and the entries that prove it."""
        self._sink.record_breach(rule, detail, entries)

    def warn(self, rule: str, detail: str, *entries: ConversationEntry) -> None:
        """Report a broken rule as a warning, where it is disputed or a guess."""
        self._sink.record_breach(rule, detail, entries, warn=True)

    def judge(self, rule: str, ok: bool, detail: str, *entries: ConversationEntry) -> None:
        """Count an occasion, and report the rule if it was broken."""
        self.saw(rule)
        if not ok:
            self._sink.record_breach(rule, detail, entries)

    def judge_offer(self, rule: str, capability: str, request: SeenMessage, detail: str = "") -> None:
        """Judge a request that needs a capability of the agent, once initialize was answered."""
        initialized = self.agreement.initialized
        if initialized is None:
            return
        detail = detail or f"{request.method} was called, which the agent did not advertise"
        self.judge(rule, self.agreement.agent_offers(capability), detail, initialized.entry, request.entry)

    def see_noise(self, noise: Any) -> None:
        """See a line that is no message."""

    def count(self) -> None:
        """Pass counted occasions on to the judge."""

    def end(self) -> None:
        """Report findings that only the end of the conversation can bring."""


def handlers(observer: Observer) -> list[tuple[str, MessageHandler]]:
    """Return the keys that an observer watches, with its methods for them."""
    kind = type(observer)
    marked = [(name, getattr(getattr(kind, name), _MARK, ())) for name in dir(kind)]
    return [(key, getattr(observer, name)) for name, keys in marked for key in keys]
