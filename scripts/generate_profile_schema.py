"""Generate the schema of the agent file, which the package contains, from its types. `--check` only compares."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from generated_file import write_or_check

from dragoman.assistant.profile.profile import AgentFileShape
from dragoman.assistant.profile.settings import Secret

PROFILE = Path(__file__).resolve().parent.parent / "src" / "dragoman" / "assistant" / "profile"
TARGET = PROFILE / "agent-file.schema.json"


def generate() -> str:
    """Return the JSON schema of the agent file."""
    schema = msgspec.json.schema(AgentFileShape, schema_hook=_secret)
    definitions = schema["$defs"]
    root = definitions.pop("AgentFileShape")
    dialect = "https://json-schema.org/draft/2020-12/schema"
    whole = {"$schema": dialect, **root, "title": "The agent file of dragoman", "$defs": definitions}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _secret(kind: type) -> dict[str, Any]:
    if not issubclass(kind, Secret):
        raise NotImplementedError
    return {"type": "string"}


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, generate, __doc__))
