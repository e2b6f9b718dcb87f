"""Watches extensions: methods and metadata of one's own."""

import re
from typing import ClassVar

from dragoman.check.judge.field import part, text
from dragoman.check.judge.message import Message
from dragoman.check.judge.observer import Observer, watch
from dragoman.protocol.methods import METHODS

_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*")


class ExtensionObserver(Observer):
    """Judges names that are not the protocol's."""

    area: ClassVar[str] = "EXT"

    @watch("request", "notification")
    def see_call(self, message: Message) -> None:
        if message.method not in METHODS:
            self.judge(
                "ACP-EXT-102" if message.sender == "client" else "ACP-EXT-002",
                message.method.startswith("_"),
                f"the protocol has no method {message.method!r}; expected one of one's own to begin with an underscore",
                message.entry,
            )

    @watch("message")
    def see_message(self, message: Message) -> None:
        if b'"traceparent"' not in message.entry.line:
            return
        trace = text(part(message.params, "_meta"), "traceparent")
        if trace is not None:
            self.judge(
                "ACP-EXT-105" if message.sender == "client" else "ACP-EXT-005",
                _TRACE.fullmatch(trace) is not None,
                f"traceparent is {trace!r}; expected the form of W3C",
                message.entry,
            )
