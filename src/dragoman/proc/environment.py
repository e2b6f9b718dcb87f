"""The environment of a child: a short list of ours, and what was asked for."""

import os
import re
from collections.abc import Collection, Mapping
from typing import Final

INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What a child gets of our environment unless told otherwise: none of our keys and tokens are in there."""

EVERYTHING: Final[Collection[str]] = ("*",)
"""Given for `inherit`, a child gets our whole environment, secrets included."""

_SECRET = re.compile(r"KEYS?$|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)


def without_secrets() -> dict[str, str]:
    """Return our environment without what looks like a secret by its name: a model is not to see our keys."""
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name)}


def make_environment(given: Mapping[str, str] | None, inherit: Collection[str] | None) -> dict[str, str]:
    """Our variables named by `inherit`, and `given` over them."""
    if inherit is EVERYTHING:
        return {**os.environ, **(given or {})}
    names = INHERITED if inherit is None else inherit
    return {**{name: os.environ[name] for name in names if name in os.environ}, **(given or {})}
