"""Downloads over https: of a registry, and of an agent's archive."""

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPException
from typing import BinaryIO
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from dragoman.cli.options import UsageError
from dragoman.errors import DragomanError

ANSWER_S = 30.0
"""For a server to send its next bytes."""

_CHUNK = 1024 * 1024


class DownloadFailed(DragomanError):
    """An address gives nothing that can be used."""


class _HttpsOnly(HTTPRedirectHandler):
    def redirect_request(self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str) -> object:  # type: ignore[override] # noqa: PLR0917 -- the types of the standard library's handler are private
        if not newurl.startswith("https://"):
            raise DownloadFailed(f"{req.full_url} leads to {newurl}, which is no https address; nothing was fetched")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type] -- as above


def download(url: str, file: BinaryIO, max_bytes: int) -> str:
    """Fetch an https address into a file, and return the SHA-256 of its content; raises DownloadFailed, UsageError."""
    digest = hashlib.sha256()
    size = 0
    with _open(url) as answer:
        while chunk := answer.read(_CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise DownloadFailed(
                    f"{url} has more than {max_bytes:,} bytes, which is too much for what it should be"
                )
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


@contextmanager
def _open(url: str) -> Generator[BinaryIO]:
    if not url.startswith("https://"):
        raise UsageError(f"{url} is no https address, so anybody on the way could change what it gives; give one")
    try:
        with build_opener(_HttpsOnly).open(url, timeout=ANSWER_S) as answer:
            yield answer
    except (URLError, OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise DownloadFailed(f"{url} cannot be fetched: {reason}; see that it is right") from None
