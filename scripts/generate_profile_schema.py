"""Generate docs/agent-file.schema.json from the types of the agent file; `--check` only compares."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from dragoman.assistant.profile.profile import AgentFileShape
from dragoman.assistant.profile.settings import Secret

TARGET = Path(__file__).resolve().parent.parent / "docs" / "agent-file.schema.json"


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


def main() -> int:
    """Write the schema, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is not up to date")
    if not parser.parse_args().check:
        TARGET.write_text(generate(), "utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text("utf-8") == generate():
        return 0
    print(f"{TARGET} is not what the types give; run scripts/generate_profile_schema.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
