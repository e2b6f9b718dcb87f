"""What the two ends of a message say of it, when the whole is too long or too deep to be decoded.

Ids and methods are short and stand near the beginning of a message, or at its very end; nothing else is looked at.
"""

import re
from typing import Literal

import msgspec

Kind = Literal["request", "response", "notification", "unknown"]

_KINDS: dict[bytes, Kind] = {
    b'"method"': "notification",
    b'"result"': "response",
    b'"error"': "response",
}
_STRING = rb'"(?:[^"\\]|\\.)*+"'
_SCALAR = rb"(?:%b|-?[0-9][0-9.eE+-]*|true|false|null)" % _STRING
_KEY = re.compile(rb"\s*(%b)\s*:\s*" % _STRING, re.DOTALL)
_MEMBER = re.compile(rb"(%b)\s*," % _SCALAR, re.DOTALL)
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(%b)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z' % _SCALAR, re.DOTALL)


class Glimpse(msgspec.Struct, frozen=True):
    """What the ends of a message say of it."""

    kind: Kind
    id: bytes | None = None


def glimpse(head: bytes, tail: bytes) -> Glimpse:
    """Say what a message is, as far as its ends tell, which may overlap."""
    kind: Kind = "unknown"
    found: bytes | None = None
    begin = len(head) - len(head.lstrip())
    at = begin + 1 if head[begin : begin + 1] == b"{" else len(head)
    while key := _KEY.match(head, at):
        kind = _KINDS.get(key[1], kind)
        value = _MEMBER.match(head, key.end())
        if value is None:
            break  # the long or deep one, or the last: what is behind it, if anything, is in the tail
        if key[1] == b'"id"':
            found = value[1]
        at = value.end()
    if found is None and (last := _LAST_ID.search(tail)):
        found = last[1]
    if found is not None and kind in {"notification", "unknown"}:
        kind = "request"  # also where the method is behind its long params
    return Glimpse(kind, found)
