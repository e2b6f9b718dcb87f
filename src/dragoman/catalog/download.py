"""Downloads over https, of the registry and of agents' archives."""

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPException
from typing import BinaryIO
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from dragoman.errors import DragomanError

ANSWER_S = 30.0
"""Time for a server to send its next bytes."""

_CHUNK = 1024 * 1024


class DownloadError(DragomanError):
    """The download failed, or its content cannot be used."""


class _HttpsOnly(HTTPRedirectHandler):
    def redirect_request(self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str) -> object:  # type: ignore[override] # noqa: PLR0917 -- the types of the standard library's handler are private
        if not newurl.startswith("https://"):
            raise DownloadError(
                f"{req.full_url} redirects to {newurl}, which is not an https address; nothing was fetched"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type] -- as above


def download(url: str, file: BinaryIO, max_bytes: int) -> str:
    """Download an https URL into a file and return the SHA-256 of its content. Raises DownloadError."""
    digest = hashlib.sha256()
    size = 0
    with _open(url) as answer:
        while chunk := answer.read(_CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise DownloadError(f"{url} has more than {max_bytes:,} bytes, which is more than expected")
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


@contextmanager
def _open(url: str) -> Generator[BinaryIO]:
    if not url.startswith("https://"):
        raise DownloadError(
            f"{url} is not an https address, so its content could be changed on the way; expected https"
        )
    try:
        with build_opener(_HttpsOnly).open(url, timeout=ANSWER_S) as answer:
            yield answer
    except (URLError, OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise DownloadError(f"{url} cannot be fetched: {reason}; check the address and the network") from None
