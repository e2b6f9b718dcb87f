"""The files of the page: read once, kept, and read again when they change."""

from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

WEB = Path(__file__).parent.parent / "web"

KINDS = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".mjs": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".webmanifest": b"application/manifest+json",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".ico": b"image/x-icon",
    ".woff2": b"font/woff2",
}
"""What is served; a file of any other kind is none of the page's."""


class File(NamedTuple):
    """A file as it is sent."""

    content: bytes
    kind: bytes
    etag: bytes
    stamp: tuple[int, int]


class StaticFiles:
    """The files below one directory, by their paths."""

    def __init__(self, root: Path = WEB) -> None:
        self._root = root
        self._kept: dict[str, File] = {}

    def find(self, path: str) -> File | None:
        """Return the file at this path; None if there is none, or it is none of the page's."""
        names = path.split("/")
        if not all(_is_plain(name) for name in names):
            return None
        place = self._root.joinpath(*names)
        kind = KINDS.get(place.suffix)
        try:
            status = place.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if kind is None or place.is_symlink() or not place.is_file():
                return None
            kept = self._kept.get(path)
            if kept is None or kept.stamp != stamp:
                content = place.read_bytes()
                etag = b'"%b"' % blake2b(content, digest_size=12).hexdigest().encode()
                kept = self._kept[path] = File(content, kind, etag, stamp)
        except OSError:
            return None
        return kept


def _is_plain(name: str) -> bool:
    """Tell whether this can be the name of one of our files: no way up, nothing hidden, nothing odd."""
    return not name.startswith((".", "-")) and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
