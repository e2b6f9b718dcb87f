"""The short way for the notification that comes most.

The notification that came last is the likeliest to come next. A line that begins to the letter as we would write
one, ends in a brace, and whose rest decodes as the params of that method, can have nothing else in it: it is that
notification, and needs not be taken apart first. Every other line, and every one that does not decode, goes the
long way, which knows what to do with it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

_encode = msgspec.json.Encoder().encode

_MAX_HEADS = 256
"""A relay passes on whatever methods its peers invent; no more than this is remembered."""


class NotificationHeads(dict[str, bytes]):
    """What a notification begins with, up to its params, by method."""

    def __missing__(self, method: str) -> bytes:
        head = b'{"jsonrpc":"2.0","method":%b,"params":' % _encode(method)
        if len(self) < _MAX_HEADS:
            self[method] = head
        return head


HEADS = NotificationHeads()


class Shortcut(NamedTuple):
    """How lines of one method begin, what decodes the rest of them, and what handles that."""

    head: bytes
    decode: Callable[[bytes], Any]
    handle: Callable[[Any], Awaitable[None] | None]


def _refuse(rest: bytes) -> None:
    raise msgspec.DecodeError(rest)


NOWHERE = Shortcut(b"\n", _refuse, _refuse)
"""Leads nowhere: no line begins with a newline."""
