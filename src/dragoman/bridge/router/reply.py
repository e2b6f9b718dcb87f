"""The reply of a request handler.

A handler returns the result, or the agent's answer, or None if it has answered the request itself. To refuse a request
it raises RpcError. `Router` turns each of these into the answer.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from dragoman.bridge.agent_link import CallAnswer
from dragoman.bridge.viewers import ViewerRequest

Reply: TypeAlias = dict[str, Any] | CallAnswer | None
ServeRequest = Callable[[ViewerRequest], Awaitable[Reply]]
