"""What the person decided about the agent files of projects: `<home>/trusted.json`.

    {"/home/me/code/dragoman.yaml": {"<sha256 of what was read>": true}}

A decision holds for one file with one content: a changed byte, or the same bytes elsewhere, is asked about again. A
refusal is kept as well. What cannot be read, or what others could have written, trusts nothing.
"""

import logging
import os
from pathlib import Path

import msgspec

from dragoman.agent.profile.problem import TrustFailed
from dragoman.files.private_file import PrivateFile

MAX_DECISIONS = 50
"""Kept of one file, the newest: enough to go from branch to branch without being asked again."""

_log = logging.getLogger(__name__)
_decode = msgspec.json.Decoder(dict[str, dict[str, bool]]).decode


class TrustStore:
    """The decisions of one home."""

    def __init__(self, home: Path) -> None:
        self._path = home / "trusted.json"
        self._file = PrivateFile(self._path)

    def is_trusted(self, path: Path, digest: str) -> bool:
        """Say whether the person agreed to this file with this content."""
        return self.verdict(path, digest) is True

    def verdict(self, path: Path, digest: str) -> bool | None:
        """Return what was decided about this file with this content; None when nothing was."""
        return self._read().get(_name(path), {}).get(digest)

    def remember(self, path: Path, digest: str, *, allowed: bool) -> None:
        """Keep a decision; raises TrustFailed."""
        try:
            with self._file.writing():
                decisions = self._read()
                kept = decisions.pop(_name(path), {})
                kept.pop(digest, None)
                newest = [*kept.items(), (digest, allowed)][-MAX_DECISIONS:]
                changed = {**decisions, _name(path): dict(newest)}
                self._file.replace(msgspec.json.format(msgspec.json.encode(changed), indent=2) + b"\n")
        except OSError as error:
            raise TrustFailed(str(self._path), error.strerror or str(error)) from error

    def _read(self) -> dict[str, dict[str, bool]]:
        try:
            return _decode(self._file.read())
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            return self._distrust(getattr(error, "strerror", None) or str(error))

    def _distrust(self, reason: str) -> dict[str, dict[str, bool]]:
        _log.warning("%s is not used, and no project's agent file is trusted by it: %s", self._path, reason)
        return {}


def _name(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 -- Path.absolute keeps `..`, and resolve would follow links
