"""The tokens for one server: a file for each issuer, readable by its owner alone, or an entry of the keyring.

    DRAGOMAN_HOME/mcp-tokens/<server>-<issuer>.json     each a part of a hash
    DRAGOMAN_HOME/mcp-tokens/<server>.lock              held while tokens are refreshed

Where the operating system's keyring answers, the file says only that the content is there. The file that was written
last is the one in use: a server that moves to another issuer gets another file.
"""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import ServerFailure
from dragoman.files.private_file import Exposed, PrivateFile
from dragoman.home import home
from dragoman.mcp.keyring import KEYRING, KeyringUnusable, SystemKeyring

FOLDER = "mcp-tokens"

LOCK_TIMEOUT_S = 30.0
"""A refresh is one request: after this time its process is stopped, or the other server is, and nobody waits longer."""

_LOCK_PAUSE_S = 0.05


class TokenStore:
    """The tokens for the server at an address."""

    def __init__(self, url: str, folder: Path | None = None, keyring: SystemKeyring = KEYRING) -> None:
        self._folder = folder or home() / FOLDER
        self._server = hashlib.sha256(url.encode()).hexdigest()[:32]
        self._keyring = keyring

    def exists(self) -> bool:
        """Tell whether something is kept for the server."""
        return bool(self._paths())

    async def load(self) -> dict[str, Any]:
        """Return what was saved last; empty for nothing. Raises ServerFailure."""
        paths = self._paths()
        return await self._read(paths[-1]) if paths else {}

    async def save(self, issuer: str, fields: dict[str, Any]) -> None:
        """Keep fields beside those that are there for the issuer; raises ServerFailure."""
        path = self._folder / f"{self._server}-{hashlib.sha256(issuer.encode()).hexdigest()[:16]}.json"
        content = {**(await self._read(path) if path.exists() else {}), **fields, "issuer": issuer}
        try:
            await self._keyring.set(path.stem, msgspec.json.encode(content).decode())
            content = {"issuer": issuer, "keyring": True}
        except KeyringUnusable:
            pass  # a file of the owner is as good where there is no keyring; a broken one has warned
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            PrivateFile(path, secret=True).replace(msgspec.json.encode(content))
        except OSError as error:
            raise ServerFailure(f"its tokens cannot be kept in {self._folder}: {error.strerror}") from None

    async def remove(self) -> bool:
        """Forget the tokens of all issuers; tell whether there were any. Raises ServerFailure."""
        paths = self._paths()
        for path in paths:
            if "keyring" in self._decode(path):
                await self._keyring.delete(path.stem)  # first, because the file is the only trace of the entry
            path.unlink(missing_ok=True)
        return bool(paths)

    @asynccontextmanager
    async def locked(self) -> AsyncGenerator[None]:
        """Be the only process that refreshes the tokens, as long as the others take a bounded time."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._folder / f"{self._server}.lock", flags, 0o600)
        except OSError as error:
            raise ServerFailure(f"its tokens cannot be kept in {self._folder}: {error.strerror}") from None
        try:
            await _wait_for_lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _paths(self) -> list[Path]:
        """Return the files of the server, the one that was written last at the end."""
        try:
            return sorted(self._folder.glob(f"{self._server}-*.json"), key=lambda path: path.stat().st_mtime_ns)
        except OSError:  # removed meanwhile
            return []

    async def _read(self, path: Path) -> dict[str, Any]:
        content = self._decode(path)
        if "keyring" not in content:
            return content
        try:
            text = await self._keyring.get(path.stem)
        except KeyringUnusable as unusable:
            raise ServerFailure(f"its tokens are in the keyring of the operating system: {unusable}") from None
        return _decode((text or "{}").encode())

    def _decode(self, path: Path) -> dict[str, Any]:
        try:
            return _decode(PrivateFile(path, secret=True).read())
        except FileNotFoundError:
            return {}
        except Exposed as exposed:
            remedy = f"run `chmod 600 {path}`" if exposed.by_mode else "remove it, then log in again"
            raise ServerFailure(f"its tokens in {path} are not used: {exposed.problem}; {remedy}") from None
        except OSError as error:
            raise ServerFailure(f"its tokens in {path} cannot be read: {error.strerror}") from None


def _decode(data: bytes) -> dict[str, Any]:
    """Return the fields; a file that is damaged has none, and a login writes it anew."""
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}


async def _wait_for_lock(descriptor: int) -> None:
    try:
        async with asyncio.timeout(LOCK_TIMEOUT_S):
            while True:
                try:
                    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(_LOCK_PAUSE_S)
    except TimeoutError:
        return None  # two refreshes at once are better than none
