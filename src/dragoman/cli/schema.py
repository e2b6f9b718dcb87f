"""`dragoman schema`: print the JSON schema of dragoman.yaml."""

import argparse
from importlib import resources

from dragoman.cli.exit_codes import DONE


def main(_options: argparse.Namespace) -> int:
    """Print the schema."""
    schema = resources.files("dragoman.assistant.profile") / "agent-file.schema.json"
    print(schema.read_text("utf-8"), end="")
    return DONE
