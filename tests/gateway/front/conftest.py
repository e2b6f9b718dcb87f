"""What the tests of the front share."""

import pytest

from tests.gateway.front.serving import serving


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path) as place:
        yield place
