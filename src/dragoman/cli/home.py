"""Where dragoman keeps what it must remember."""

import os
from pathlib import Path


def home() -> Path:
    """Return `$DRAGOMAN_HOME`, or `~/.dragoman`."""
    given = os.environ.get("DRAGOMAN_HOME")
    return Path(given).absolute() if given else Path.home() / ".dragoman"
