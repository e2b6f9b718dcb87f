"""Functions that make headers, records and sessions for tests of stores."""

import uuid

from dragoman.protocol.update_lines import rename_session, update_lines
from dragoman.store import Header
from dragoman.store.block import Draft, encode_header
from dragoman.store.disk import Disk

SESSION = "0b7e4f7a-1c2d-4e3f-8a9b-0123456789ab"
CREATED = "2026-11-15T12:00:00Z"


def new_header(cwd="/work/project", **fields):
    return Header(str(uuid.uuid4()), cwd, fields.pop("additional_directories", []), CREATED, **fields)


def turn_end(title="A title", messages=2):
    return b'{"event":"end","stopReason":"end_turn","title":"%b","messages":%d}' % (title.encode(), messages)


def update(payload, session_id=SESSION):
    """Return the line of the wire for an update."""
    return update_lines(session_id, [payload])


async def fork(store, session_id, header, before=None):
    """Fork a session like an agent."""
    await store.fork(session_id, header, lambda lines: rename_session(lines, session_id, header.id), before)


def make_log(header, *blocks, time=1_763_240_000_000):
    """Return the blocks of a log: the header's block, then one block per list of (kind, payload)."""
    part, checksum = encode_header(header, time)
    parts, first = [part], 1
    for lines in blocks:
        draft = Draft()
        for kind, data in lines:
            if kind == "update":
                draft.add_lines(update(data, header.id))
            else:
                draft.add_record(kind, data)
        part, checksum = draft.seal(first, time, checksum)
        parts.append(part)
        first += len(lines)
    return parts


def kinds_of(block):
    """Yield the number, kind and payload of each line of a block. The payload of an update is only the update."""
    records = {record.seq: (record.kind, bytes(record.data)) for record in block.records()}
    for seq, line in block.numbered_lines():
        if seq in records:
            yield seq, *records[seq]
        else:
            head, _, rest = line.partition(b'"update":')
            assert head.startswith(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"')
            yield seq, "update", rest.removesuffix(b"}}")


async def write_session(store, header=None, *, payloads=(b'{"n":1}',), title="A title", messages=2):
    """Create a session with these updates and the end of a turn, and close it."""
    header = header or new_header()
    log = await store.create(header)
    for payload in payloads:
        log.append(update(payload, header.id))
    log.record("turn", turn_end(title, messages))
    log.facts.title, log.facts.message_count = title, messages
    await log.close()
    return header


async def read_all(log):
    return [line async for blocks in log.blocks() for block in blocks for line in kinds_of(block)]


async def reread(store, session_id):
    """Open a session, read it, and close it."""
    log = await store.open(session_id)
    try:
        return await read_all(log), log
    finally:
        await log.close()


class QuickDisk(Disk):
    """A disk without syncs, for tests that open a thousand logs."""

    def sync(self, fd):
        pass

    def sync_directory(self, path):
        pass
