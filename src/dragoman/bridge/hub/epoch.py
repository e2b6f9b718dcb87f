"""Which journal a cursor is of: an epoch names one in which a place, once told, keeps its meaning.

Viewers are told of records before those are safe from a power cut. What was lost that way may leave no trace, and its
numbers are given anew. So the epoch of a journal changes with every start of the machine, and also when part of it was
cut off: then its header gets another time.
"""

import hashlib
import secrets
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec

from dragoman.store.record import Header, encode_header

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_CHARACTERS = 12


def make_header(session_id: str, cwd: str, directories: list[str]) -> Header:
    """Say whose journal this is; the time tells it from others of the same session."""
    return Header(session_id, cwd, directories, _now())


def renew_header(header: Header) -> Header:
    """Say whose journal this is, of which something was lost."""
    return msgspec.structs.replace(header, created=_now())


def make_epoch(header: Header) -> str:
    """Name a journal, so that a cursor into one does not fit another."""
    return hashlib.sha256(encode_header(header) + boot_id()).hexdigest()[:_CHARACTERS]


def make_interim_epoch() -> str:
    """Name a journal for as long as part of it is in memory alone."""
    return secrets.token_hex(_CHARACTERS // 2)


@cache
def boot_id() -> bytes:
    """Name this run of the machine; a system that does not tell has only one."""
    try:
        return _BOOT_ID.read_bytes()
    except OSError:
        return b""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
