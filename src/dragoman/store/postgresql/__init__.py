"""Session logs in PostgreSQL: any number of processes may share them.

schema.py          the tables, and their versions
database.py        connections, bounded waits, errors in words
node.py            the heartbeat of this process, and its lease
session_table.py   owners and fences, blocks, lists
share_table.py     what other people may read through bridges
code_table.py      codes that a browser brings to any bridge
message_table.py   messages between bridges
message_cipher.py  their encryption, for the receiver alone
log.py             one session's log
writer.py          its lines, on their way into the database
store.py           the store itself
"""

from dragoman.store.postgresql.database import Database
from dragoman.store.postgresql.store import PostgresStore

__all__ = ["Database", "PostgresStore"]
