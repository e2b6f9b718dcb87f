"""Session logs in PostgreSQL, which any number of processes can share.

schema.py          the tables, and their versions
database.py        connections, bounded waits and errors
node.py            the heartbeat and the lease of this process
session_table.py   owners and fences, blocks, lists
share_table.py     sessions and agents that were shared with other people
code_table.py      one-time codes that a browser sends to any bridge
message_table.py   messages between bridges
message_cipher.py  the encryption of these messages
history.py         the history of one session, and the queue of lines to write
store.py           the store
"""

from dragoman.store.postgresql.database import Database
from dragoman.store.postgresql.store import PostgresStore

__all__ = ["Database", "PostgresStore"]
