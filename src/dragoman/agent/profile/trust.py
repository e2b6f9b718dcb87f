"""What the person decided about the agent files of projects: `<home>/trusted.json`.

    {"/home/me/code/dragoman.yaml": {"<sha256 of what was read>": true}}

A decision holds for one file with one content: a changed byte, or the same bytes elsewhere, is asked about again. A
refusal is kept as well. Readers need no lock, because the file is only ever replaced whole; writers take one, so
that two processes do not lose each other's decision. What cannot be read, or what others could have written, trusts
nothing.
"""

import fcntl
import logging
import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from dragoman.agent.profile.problem import TrustFailed

LOCK_TIMEOUT_S = 5.0
"""A holder writes one small file; if it takes longer it is stopped, or its disk is."""

MAX_DECISIONS = 50
"""Kept of one file, the newest: enough to go from branch to branch without being asked again."""

_PAUSE_S = 0.01
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

_log = logging.getLogger(__name__)
_decode = msgspec.json.Decoder(dict[str, dict[str, bool]]).decode


class Trust:
    """The decisions of one home."""

    def __init__(self, home: Path) -> None:
        self._path = home / "trusted.json"

    def is_trusted(self, path: Path, digest: str) -> bool:
        """Say whether the person agreed to this file with this content."""
        return self.verdict(path, digest) is True

    def verdict(self, path: Path, digest: str) -> bool | None:
        """Return what was decided about this file with this content; None when nothing was."""
        return self._read().get(_name(path), {}).get(digest)

    def remember(self, path: Path, digest: str, *, allowed: bool) -> None:
        """Keep a decision; raises TrustFailed."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock():
                decisions = self._read()
                kept = decisions.pop(_name(path), {})
                kept.pop(digest, None)
                newest = [*kept.items(), (digest, allowed)][-MAX_DECISIONS:]
                self._write({**decisions, _name(path): dict(newest)})
        except OSError as error:
            raise TrustFailed(str(self._path), error.strerror or str(error)) from error

    def _read(self) -> dict[str, dict[str, bool]]:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return {}
        except OSError as error:
            return self._distrust(error.strerror or str(error))
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE or not stat.S_ISREG(status.st_mode):
                return self._distrust("others can write it")
            with open(descriptor, "rb", closefd=False) as file:
                return _decode(file.read())
        except (OSError, msgspec.DecodeError) as error:
            return self._distrust(str(error))
        finally:
            os.close(descriptor)

    def _distrust(self, reason: str) -> dict[str, dict[str, bool]]:
        _log.warning("%s is not used, and no project's agent file is trusted by it: %s", self._path, reason)
        return {}

    def _write(self, decisions: dict[str, dict[str, bool]]) -> None:
        import tempfile

        data = msgspec.json.format(msgspec.json.encode(decisions), indent=2)
        descriptor, temporary = tempfile.mkstemp(prefix="trusted-", dir=self._path.parent)  # 0600 by nature
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
                file.write(data + b"\n")
                file.flush()
                os.fsync(descriptor)
            Path(temporary).replace(self._path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @contextmanager
    def _lock(self) -> Generator[None]:
        path = self._path.with_suffix(".lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _wait_for_lock(descriptor)
            yield
        finally:
            os.close(descriptor)


def _wait_for_lock(descriptor: int) -> None:
    end = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise TimeoutError(0, "another process holds its lock") from None
            time.sleep(_PAUSE_S)


def _name(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - Path.absolute keeps `..`, and resolve would follow links
