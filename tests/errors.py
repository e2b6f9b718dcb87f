"""Calls that must fail, and their errors."""

from collections.abc import Awaitable

import pytest

from dragoman.errors import RemoteError, RpcError


async def refused(call: Awaitable[object]) -> RemoteError:
    """Return the error with which the other side answers a call."""
    with pytest.raises(RemoteError) as caught:
        await call
    return caught.value


async def refused_with(code: int, doing: Awaitable[object]) -> str:
    """Return the problem that our own handler reports with this code."""
    with pytest.raises(RpcError) as caught:
        await doing
    assert caught.value.code == code
    assert isinstance(caught.value.data, dict)
    return caught.value.data["problem"]
