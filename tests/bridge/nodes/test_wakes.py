"""The connection on which a node is woken."""

import asyncio
import gc
import uuid
from contextlib import suppress

from dragoman.store.postgresql import Database
from dragoman.store.postgresql.message_cipher import NodeKey
from dragoman.store.postgresql.message_table import MessageTable


async def test_cancelled_wait_for_wakes_closes_its_connection(address):
    database = Database(address)
    table = MessageTable(database, uuid.uuid4(), NodeKey())
    for moment in range(40):
        listening = asyncio.create_task(table.listen())
        await asyncio.sleep(moment / 4_000)
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await (await listening).close()
    await database.close()
    gc.collect()  # an open connection causes a warning, which pytest turns into an error
