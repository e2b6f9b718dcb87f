"""Headers, records and sessions for tests of stores."""

import uuid

from dragoman.store import Header
from dragoman.store.disk import Disk

CREATED = "2026-11-15T12:00:00Z"


def new_header(cwd="/work/project", **fields):
    return Header(str(uuid.uuid4()), cwd, fields.pop("additional_directories", []), CREATED, **fields)


def turn_end(title="A title", messages=2):
    return b'{"event":"end","stopReason":"end_turn","title":"%b","messages":%d}' % (title.encode(), messages)


async def write_session(store, header=None, *, payloads=(b'{"n":1}',), title="A title", messages=2):
    """Make a session with these updates and the end of a turn, and close it."""
    header = header or new_header()
    log = await store.create(header)
    for payload in payloads:
        log.append("update", payload)
    log.append("turn", turn_end(title, messages))
    log.title, log.message_count = title, messages
    await log.close()
    return header


async def read_all(log):
    return [(record.seq, record.kind, bytes(record.data)) async for batch in log.records() for record in batch]


async def reread(store, session_id):
    """Open a session, read it, and close it."""
    log = await store.open(session_id)
    try:
        return await read_all(log), log
    finally:
        await log.close()


class QuickDisk(Disk):
    """A disk that promises nothing about power cuts, for tests that open a thousand logs."""

    def sync(self, fd):
        pass

    def sync_directory(self, path):
        pass
