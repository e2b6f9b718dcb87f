"""What a client wishes of its own server: which of its tools are put in front of the model, and when."""

from collections.abc import Mapping
from typing import Any, cast, get_args

import msgspec

from dragoman.agent.profile.settings import Include
from dragoman.errors import InvalidParams

KEY = "dragoman/include"


class ToolIncludes(msgspec.Struct, frozen=True):
    """The include mode of each tool of a server."""

    default: Include = "always"
    tools: Mapping[str, Include] = {}

    def of(self, tool: str) -> Include:
        """Return the mode of a tool: its own, else the server's."""
        return self.tools.get(tool, self.default)


def includes_of(meta: Mapping[str, Any] | None, path: str) -> ToolIncludes:
    """Read a server's `_meta`; raises InvalidParams."""
    wish = (meta or {}).get(KEY)
    if wish is None:
        return ToolIncludes()
    place = f"{path}._meta[{KEY!r}]"
    if isinstance(wish, str):
        return ToolIncludes(_mode(wish, place))
    if not isinstance(wish, dict):
        raise InvalidParams(place, f"{place}: expected a mode, or an object with default and tools")
    known = cast("dict[str, Any]", wish)
    tools = known.get("tools", {})
    if not isinstance(tools, dict):
        raise InvalidParams(f"{place}.tools", f"{place}.tools: expected an object of modes by tool name")
    return ToolIncludes(
        _mode(known.get("default", "always"), f"{place}.default"),
        {name: _mode(mode, f"{place}.tools[{name!r}]") for name, mode in cast("dict[str, Any]", tools).items()},
    )


def _mode(value: Any, path: str) -> Include:
    if value not in get_args(Include):
        raise InvalidParams(path, f"{path}: expected always, manual or agent", expected="always, manual or agent")
    return value
