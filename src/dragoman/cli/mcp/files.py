"""The MCP servers in the `--mcp` files of `dragoman mcp`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.mcp.config_files import ServersFile


class InvalidInputError(DragomanError):
    """A named directory, file or server cannot be used."""


def read_client_files(files: Sequence[str], cwd: str) -> "ServersFile":
    """Read the servers that a client would offer. Raises InvalidInputError."""
    from dragoman.mcp.config_files import ServersFile

    readings = [_read_file(name, cwd) for name in files]
    return ServersFile(
        tuple(server for reading in readings for server in reading.servers),
        tuple(problem for reading in readings for problem in reading.problems),
        tuple(note for reading in readings for note in reading.notes),
    )


def _read_file(path: str, cwd: str) -> "ServersFile":
    from dragoman.assistant.profile.sources import read_bytes
    from dragoman.mcp.config_files import read_servers

    try:
        text = read_bytes(Path(path)).decode("utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{path} is not UTF-8 text") from None
    reading = read_servers(text, cwd, os.environ)
    for problem in reading.problems:
        if problem.server is None:
            raise InvalidInputError(f"{path}: {problem.message}")
    return reading
