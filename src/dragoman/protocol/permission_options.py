"""Options of a permission request: the default option of a short answer, and the scope of an "always".

**The default.** A user who presses Enter and a policy that says "allow" mean this one call. The default is therefore
found by its kind, not by its position, and allows once. An "always" must be chosen explicitly. The default refusal
rejects once. If an agent does not offer that, it is the option that rejects always, because refusing must be possible.

**The scope.** The protocol has one kind `allow_always` and does not say how long it applies. Our agent sends one such
option with the scope in its name. Its `_meta` lists the possible scopes, starting with the one in the name:

    {"optionId": "allow_always", "kind": "allow_always", "name": "Allow edits to k.txt in this session", "_meta":
     {"dragoman/remember": [{"scope": "session", "name": "Allow edits to k.txt in this session"},
                            {"scope": "project", "name": "Always allow edits to k.txt in this project"}]}}

An answer may name one of them: `{"outcome": "selected", "optionId": "allow_always", "_meta": {"dragoman/remember":
"project"}}`. Without a scope, or with an unknown one, the scope in the option's name applies.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from dragoman.protocol import v1

REMEMBER_KEY = "dragoman/remember"

USE_AGENT_FILE = "use_agent_file"
"""The name of the tool call with which our agent asks whether to use a project's agent file."""

USE_SKILLS = "use_skills"
"""The same for the skills of a project without an agent file."""

_KINDS: dict[str, tuple[str, ...]] = {"allow": ("allow_once",), "reject": ("reject_once", "reject_always")}


class RememberScope(msgspec.Struct, frozen=True):
    """A scope of an "always", and the name of the option with that scope."""

    scope: str
    name: str


def find_default(kinds: Sequence[str | None], verdict: Literal["allow", "reject"]) -> int | None:
    """Return the index of the default option for a verdict, given the kinds of all options, or None."""
    for kind in _KINDS[verdict]:
        if kind in kinds:
            return kinds.index(kind)
    return None


def read_scopes(option: v1.PermissionOption) -> list[RememberScope]:
    """Return the scopes of an option, starting with the one in its name. Empty if it offers no choice."""
    try:
        return msgspec.convert((option.meta or {}).get(REMEMBER_KEY), list[RememberScope])
    except msgspec.ValidationError:
        return []


def write_scopes(scopes: Sequence[RememberScope]) -> dict[str, Any]:
    """Return the `_meta` of an option that offers these scopes."""
    return {REMEMBER_KEY: [msgspec.to_builtins(scope) for scope in scopes]}
