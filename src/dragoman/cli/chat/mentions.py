"""Files that the user mentions with `@` and a path relative to the session's directory."""

import re
from pathlib import Path

from dragoman.files import Boundary, PathError, list_files, match_files
from dragoman.protocol import v1

MAX_OFFERED = 60
"""readline shows up to this many without asking."""

_MENTION = re.compile(r"(?:^|\s)@(\S+)")


def find_mentionable(cwd: Path, typed: str) -> list[str]:
    """Return the files that the typed text can mean: all that begin with it, or the only match.

    readline replaces the word with the common prefix of all completions. A match that does not begin with the typed
    text would therefore delete it.
    """
    try:
        found = match_files(list_files(str(cwd)), typed, MAX_OFFERED)
    except PathError:
        return []
    beginning = [path for path in found if path.startswith(typed)]
    return beginning or (found if len(found) == 1 else [])


def link_mentions(cwd: Path, text: str) -> list[v1.ResourceLink]:
    """Return a link for each mention of an existing file inside the directory."""
    named = dict.fromkeys(path.rstrip(".,;:!?)") for path in _MENTION.findall(text))
    if not named:
        return []
    try:
        boundary = Boundary([str(cwd)])
    except PathError:
        return []
    return [
        v1.ResourceLink(uri=(cwd / path).as_uri(), name=Path(path).name) for path in named if _exists(boundary, path)
    ]


def _exists(boundary: Boundary, path: str) -> bool:
    try:
        return bool(path) and boundary.exists(path)
    except PathError:
        return False
