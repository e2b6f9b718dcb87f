"""The connection on which a node is woken."""

import asyncio
import gc
import uuid
from contextlib import suppress

from dragoman.store.postgresql import Database
from dragoman.store.postgresql.message_cipher import NodeKey
from dragoman.store.postgresql.message_table import MessageTable


async def test_a_connection_for_wakes_is_closed_when_the_wait_for_it_is_cancelled_at_any_moment(address):
    database = Database(address)
    table = MessageTable(database, uuid.uuid4(), NodeKey())
    for moment in range(40):
        listening = asyncio.create_task(table.listen())
        await asyncio.sleep(moment / 4_000)
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await (await listening).close()
    await database.close()
    gc.collect()  # one that is left open complains, and pytest lets no complaint pass
