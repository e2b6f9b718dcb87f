"""A TsAgent file, `tsagent.yaml` or the older `tsagent.json`, used without conversion.

TsAgent (by TeamSpark) keeps an agent in one file: `metadata` for users, `settings`, a `systemPrompt`, lists of `rules`
and `references`, model `providers` and `mcpServers`. The older form is JSON with numbers as text. It keeps the prompt
in `prompt.md` and the lists in `rules/*.mdt` and `refs/*.mdt`, which are Markdown with front matter.

A key with the same meaning here is used. Every other key is reported as ignored, with the reason. Nothing is written
back. A file belongs to TsAgent by its name, or if it has both `metadata` and `settings`, which our files never have.

`shape` has the file's keys. `conversion` converts it.
"""

from pathlib import Path
from typing import Any

from dragoman.assistant.profile.tsagent.conversion import load_tsagent

STEM = "tsagent"
_KEYS = {"metadata", "settings"}

__all__ = ["is_tsagent", "load_tsagent"]


def is_tsagent(path: Path, root: Any) -> bool:
    """Return whether a file is TsAgent's."""
    if root.id != "mapping":
        return False
    return path.stem == STEM or {key.value for key, _ in root.value if key.id == "scalar"} >= _KEYS
