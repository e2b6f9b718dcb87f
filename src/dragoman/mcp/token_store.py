"""The tokens for one server: a file per issuer that only its owner can read, or an entry in the keyring.

    DRAGOMAN_HOME/mcp-tokens/<server>-<issuer>.json     each a part of a hash
    DRAGOMAN_HOME/mcp-tokens/<server>.lock              held while tokens are refreshed

If the operating system has a keyring, the file only says that the keyring has the content. The file written last is the
one in use. A server that moves to another issuer gets a new file.
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

from dragoman.errors import McpServerError
from dragoman.files.private_file import ExposedFileError, PrivateFile
from dragoman.home import home
from dragoman.mcp.keyring import KEYRING, KeyringUnavailableError, SystemKeyring

FOLDER = "mcp-tokens"

LOCK_TIMEOUT_S = 30.0
"""A refresh is one request. After this time the process or the server that handles it has stopped, so others continue.
"""

_LOCK_PAUSE_S = 0.05


class TokenStore:
    """The tokens for the server at a URL."""

    def __init__(self, url: str, folder: Path | None = None, keyring: SystemKeyring = KEYRING) -> None:
        self._folder = folder or home() / FOLDER
        self._server = hashlib.sha256(url.encode()).hexdigest()[:32]
        self._keyring = keyring

    def exists(self) -> bool:
        """Return whether something is stored for the server."""
        return bool(self._paths())

    async def load(self) -> dict[str, Any]:
        """Return the last saved fields, or an empty dict. Raises McpServerError."""
        paths = self._paths()
        return await self._read(paths[-1]) if paths else {}

    async def save(self, issuer: str, fields: dict[str, Any]) -> None:
        """Update the stored fields of the issuer. Raises McpServerError."""
        path = self._folder / f"{self._server}-{hashlib.sha256(issuer.encode()).hexdigest()[:16]}.json"
        content = {**(await self._read(path) if path.exists() else {}), **fields, "issuer": issuer}
        try:
            await self._keyring.set(path.stem, msgspec.json.encode(content).decode())
            content = {"issuer": issuer, "keyring": True}
        except KeyringUnavailableError:
            pass  # the file is used instead; a broken keyring has already logged a warning
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            PrivateFile(path, secret=True).replace(msgspec.json.encode(content))
        except OSError as error:
            raise McpServerError(f"its tokens cannot be stored in {self._folder}: {error.strerror}") from None

    async def remove(self) -> bool:
        """Remove the tokens of all issuers. Return whether there were any. Raises McpServerError."""
        paths = self._paths()
        for path in paths:
            if "keyring" in self._decode(path):
                await self._keyring.delete(path.stem)  # first, because the file is the only trace of the entry
            path.unlink(missing_ok=True)
        return bool(paths)

    @asynccontextmanager
    async def locked(self) -> AsyncGenerator[None]:
        """Hold the lock for refreshing the tokens. A lock held for too long is ignored."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._folder / f"{self._server}.lock", flags, 0o600)
        except OSError as error:
            raise McpServerError(f"its tokens cannot be stored in {self._folder}: {error.strerror}") from None
        try:
            await _wait_for_lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _paths(self) -> list[Path]:
        """Return the files of the server, the last written one at the end."""
        try:
            return sorted(self._folder.glob(f"{self._server}-*.json"), key=lambda path: path.stat().st_mtime_ns)
        except OSError:  # removed in between
            return []

    async def _read(self, path: Path) -> dict[str, Any]:
        content = self._decode(path)
        if "keyring" not in content:
            return content
        try:
            text = await self._keyring.get(path.stem)
        except KeyringUnavailableError as unusable:
            raise McpServerError(f"its tokens are in the keyring of the operating system: {unusable}") from None
        return _decode((text or "{}").encode())

    def _decode(self, path: Path) -> dict[str, Any]:
        try:
            return _decode(PrivateFile(path, secret=True).read())
        except FileNotFoundError:
            return {}
        except ExposedFileError as exposed:
            remedy = f"run `chmod 600 {path}`" if exposed.by_mode else "remove it, then log in again"
            raise McpServerError(f"its tokens in {path} are not used: {exposed.problem}; {remedy}") from None
        except OSError as error:
            raise McpServerError(f"its tokens in {path} cannot be read: {error.strerror}") from None


def _decode(data: bytes) -> dict[str, Any]:
    """Return the fields. A damaged file has none, and the next login replaces it."""
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
        return None  # two concurrent refreshes are better than none
