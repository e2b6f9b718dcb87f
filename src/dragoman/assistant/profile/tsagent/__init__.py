"""An agent file of TsAgent, `tsagent.yaml` or the older `tsagent.json`, loaded as it is.

TsAgent (of TeamSpark) keeps an agent in one file: `metadata` for people, `settings`, a `systemPrompt`, lists of
`rules` and `references`, the `providers` of models and the `mcpServers`. The older form is JSON, has its numbers as
texts, and keeps the prompt in `prompt.md` and the lists in `rules/*.mdt` and `refs/*.mdt`, Markdown with a head.

A key with the same meaning here counts; of every other key it is said that it does not, and why. Nothing is written
back. A file is TsAgent's by its name, or because it has both `metadata` and `settings`, which no file of ours has.

`shape` is the file as TsAgent writes it; `model`, `servers` and `texts` translate one part each; `conversion` puts
them together.
"""

from pathlib import Path
from typing import Any

from dragoman.assistant.profile.tsagent.conversion import load_tsagent

STEM = "tsagent"
_KEYS = {"metadata", "settings"}

__all__ = ["is_tsagent", "load_tsagent"]


def is_tsagent(path: Path, root: Any) -> bool:
    """Say whether a file is TsAgent's."""
    if root.id != "mapping":
        return False
    return path.stem == STEM or {key.value for key, _ in root.value if key.id == "scalar"} >= _KEYS
