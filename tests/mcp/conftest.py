import pytest

from tests.mcp.connecting import servers_in


@pytest.fixture
async def bench(tmp_path):
    async with servers_in(tmp_path) as bench:
        yield bench
