"""Version 1 of the format as an earlier dragoman wrote it, for tests of those who still read it."""

from zlib import crc32

import msgspec


def encode_header(header):
    """Make the first line of a session log or a journal."""
    return _seal(msgspec.json.encode({"dragoman": 1, "session": header})[:-1])


def encode_write(records, last_seq, time):
    """Make one sealed write of records, given as kind and payload, that follow `last_seq`."""
    lines = [
        b'{"seq":%d,"time":%d,"%b":%b' % (seq, time, kind.encode(), payload)
        for seq, (kind, payload) in enumerate(records, last_seq + 1)
    ]
    return _seal(b"}\n".join(lines))


def _seal(body):
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))
