"""What a script says to an agent, turn by turn: `--script FILE`, a YAML or JSON list."""

from pathlib import Path
from typing import Literal

import msgspec

from dragoman.errors import DragomanError

Answer = Literal["allow", "reject"]
When = Literal["update", "permission"]


class BadScript(DragomanError):
    """A script that cannot be used."""


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt, the answer to whatever permission is asked for in it, and when it is cancelled, if it is."""

    prompt: str
    permission: Answer = "allow"
    cancel: When | None = None


def read_script(path: Path) -> tuple[Turn, ...]:
    """Read a script; raises BadScript, which says what is wrong with it."""
    try:
        turns = msgspec.yaml.decode(path.read_bytes(), type=list[Turn])
    except OSError as error:
        raise BadScript(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadScript(
            f"{path} is no script: {error}. Expected a list of turns, for example `- prompt: list the files`,"
            " each with `permission: allow` or `reject` and `cancel: update` or `permission` if wanted"
        ) from None
    if not turns:
        raise BadScript(f"{path} has no turns in it; a script is a list of `- prompt: …`")
    return tuple(turns)
