"""The store through PgBouncer in transaction mode. No statement may depend on the state of its connection."""

import asyncio

import pytest

from dragoman.store.postgresql import PostgresStore
from tests.store.contract import StoreContract
from tests.store.making import new_header, reread, update
from tests.store.pgbouncer import POOL_SIZE


@pytest.fixture
async def another_store(bouncer, address):
    made = []

    def make(**options):
        made.append(PostgresStore(bouncer.behind(address), "agent", **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()


class TestContract(StoreContract):
    @pytest.fixture
    def another_store(self, another_store):
        return another_store


async def test_many_sessions_share_few_connections(bouncer, address, another_store):
    stores = [another_store(), another_store()]
    headers = [new_header() for _ in range(24)]

    async def write(store, header):
        log = await store.create(header)
        for number in range(5):
            log.append(update(b"%d" % number, header.id))
            await log.flush()
        await log.close()

    await asyncio.gather(*(write(stores[number % 2], header) for number, header in enumerate(headers)))
    assert 1 <= bouncer.backends(address.rpartition("/")[2]) <= POOL_SIZE
    for header in headers:
        assert [data for _, _, data in (await reread(stores[0], header.id))[0]] == [b"0", b"1", b"2", b"3", b"4"]
