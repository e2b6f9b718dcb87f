"""Options of a permission request: which one a short answer means, and how long an "always" holds.

**The default.** A person who presses Enter and a policy that says "allow" mean this one call. So the option is found by
its kind, wherever it stands in the list, and it is the one that allows once. An "always" has to be named. A refusal is
the one that rejects once; where an agent offers none, it is the one that rejects always, because a no must be possible.

**The scope.** The protocol has one kind `allow_always` and says nothing of how long that is. Our agent sends one such
option, with the scope in its name, and in its `_meta` the scopes that may be chosen instead, the one of the name first:

    {"optionId": "allow_always", "kind": "allow_always", "name": "Allow exactly this in this session", "_meta":
     {"dragoman/remember": [{"scope": "session", "name": "Allow exactly this in this session"},
                            {"scope": "project", "name": "Always allow exactly this in this project"}]}}

An answer may name one of them: `{"outcome": "selected", "optionId": "allow_always", "_meta": {"dragoman/remember":
"project"}}`. Without that, or with an unknown scope, the one in the option's name holds.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from dragoman.protocol import v1

REMEMBER_KEY = "dragoman/remember"

USE_AGENT_FILE = "use_agent_file"
"""The name of the tool call with which our agent asks whether the agent file of a project may count."""

_KINDS: dict[str, tuple[str, ...]] = {"allow": ("allow_once",), "reject": ("reject_once", "reject_always")}


class RememberScope(msgspec.Struct, frozen=True):
    """A scope for which an "always" may hold, and the name of the option with that scope."""

    scope: str
    name: str


def find_default(kinds: Sequence[str | None], verdict: Literal["allow", "reject"]) -> int | None:
    """Return the position of the option that a plain yes or no means, by the kinds of all options; None without one."""
    for kind in _KINDS[verdict]:
        if kind in kinds:
            return kinds.index(kind)
    return None


def read_scopes(option: v1.PermissionOption) -> list[RememberScope]:
    """Return the scopes that an option offers, that of its own name first; empty for an option without a choice."""
    try:
        return msgspec.convert((option.meta or {}).get(REMEMBER_KEY), list[RememberScope])
    except msgspec.ValidationError:
        return []


def write_scopes(scopes: Sequence[RememberScope]) -> dict[str, Any]:
    """Return the `_meta` of an option that offers these scopes."""
    return {REMEMBER_KEY: [msgspec.to_builtins(scope) for scope in scopes]}
