"""Agents in an archive at an https URL: downloaded and hashed, then unpacked after the user has agreed.

If the registry has a hash, other content is refused. Otherwise the user sees the hash of the downloaded archive.

The archive is untrusted, and so is every field in it. The extraction filters of `tarfile` and `zipfile` have been
bypassed (CVE-2025-4517). This module therefore uses these libraries only for reading, and writes each member itself.

1. A name is relative, without `..`, and occurs once. Only files, directories and symbolic links are accepted.
2. Files are written before any link exists below the directory, so no path can lead through a link.
3. Links are created last, and each must lead to a file or directory inside the archive.
4. The bytes that are read and written are counted, because the sizes in the headers may be wrong.
"""

import bz2
import errno
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from dragoman.catalog.download import download
from dragoman.catalog.registry import Binary, InstallError

MAX_ARCHIVE_BYTES = 1024 * 1024 * 1024
MAX_UNPACKED_BYTES = 4 * 1024 * 1024 * 1024
MAX_MEMBERS = 200_000
"""Members of one archive. A Node.js environment has about ten thousand."""

MAX_TARGET_BYTES = 4096
"""Length of the target of a symbolic link."""

_PIECE_BYTES = 1024 * 1024
_MAX_READ_BYTES = 16 * _PIECE_BYTES
"""Size of one read. A larger one comes from a header that would fill the memory."""

_TAR = {
    (".tar.gz", ".tgz"): gzip.open,
    (".tar.bz2", ".tbz2"): bz2.open,
    (".tar.xz", ".txz"): lzma.open,
}
_INSTALLERS = (".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage")
_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)


class FetchedArchive(NamedTuple):
    """A downloaded archive."""

    path: Path
    digest: str
    size: int


def fetch_archive(binary: Binary, directory: Path) -> FetchedArchive:
    """Download the archive of an agent into a directory. Raises InstallError and DownloadError."""
    url = binary.archive
    if not url.startswith("https://"):
        raise InstallError(f"{url} is not an https address, so its content cannot be trusted; it was not installed")
    if _file_name(url).endswith(_INSTALLERS):
        raise InstallError(f"{url} is an installer, not an archive; install it manually")
    path = directory / "archive"
    with path.open("wb") as file:
        found = download(url, file, MAX_ARCHIVE_BYTES)
    expected = binary.sha256.lower()
    if expected and expected != found:
        raise InstallError(
            f"{url} has the SHA-256 {found}, and the registry says {expected}; the "
            "archive was changed, or your copy of the "
            "registry is old; run `dragoman agents update` with its source"
        )
    return FetchedArchive(path, found, path.stat().st_size)


def program_path(binary: Binary, directory: Path) -> Path:
    """Return the path of an archive's program after unpacking."""
    return directory / "files" / PurePosixPath(binary.cmd)


def unpack_archive(binary: Binary, archive: Path, directory: Path) -> None:
    """Unpack an archive and delete it. Raises InstallError if it is damaged, hostile or lacks the program."""
    folder, name = directory / "files", _file_name(binary.archive)
    try:
        folder.mkdir()
        openers = [opener for suffixes, opener in _TAR.items() if name.endswith(suffixes)]
        if name.endswith(".zip"):
            with zipfile.ZipFile(archive) as packed:
                _unpack(_zip_members(packed), folder)
        elif openers:
            with openers[0](archive) as stream:
                _unpack(_tar_members(_BoundedStream(cast("IO[bytes]", stream))), folder)
        else:
            program = program_path(binary, directory)
            program.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(archive, program)
        archive.unlink()
        _make_executable(binary, program_path(binary, directory), folder)
    except InstallError as error:
        raise InstallError(f"{binary.archive} cannot be unpacked: {error}") from None
    except Exception as error:
        # On hostile bytes the standard library raises errors of every kind.
        if isinstance(error, OSError) and error.errno in _DISK_IS_FULL:
            raise
        reason = str(error) or type(error).__name__
        raise InstallError(f"{binary.archive} cannot be unpacked: it is damaged: {reason}") from None


def _file_name(url: str) -> str:
    try:
        return urlsplit(url).path.lower().rpartition("/")[2]
    except ValueError as error:
        raise InstallError(f"{url!r} is not an address: {error}") from None


def _make_executable(binary: Binary, program: Path, folder: Path) -> None:
    real = program.resolve()
    if not real.is_relative_to(folder.resolve()) or not real.is_file():
        raise InstallError(f"it does not contain the program {binary.cmd}")
    real.chmod(0o755)


class _Member(NamedTuple):
    name: str
    kind: Literal["file", "folder", "link"]
    is_program: bool
    open: Callable[[], IO[bytes]]
    """Return the content of a file, or the target of a link."""


class _BoundedStream:
    """A forward-only reader of an uncompressed tar, with limits on the size of a read and of the whole."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._position = 0

    def tell(self) -> int:
        """Return the position. `tarfile` requires this method."""
        return self._position

    def seek(self, position: int) -> int:
        """Read and discard everything up to a position."""
        while self._position < position and self.read(min(_PIECE_BYTES, position - self._position)):
            pass
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes. Raises InstallError beyond the limits."""
        if not 0 <= size <= _MAX_READ_BYTES:
            raise InstallError("one of its headers is too large")
        data = self._stream.read(size)
        self._position += len(data)
        if self._position > MAX_UNPACKED_BYTES:
            raise InstallError(f"it has more than {MAX_UNPACKED_BYTES:,} bytes")
        return data


def _tar_members(stream: _BoundedStream) -> Iterator[_Member]:
    with tarfile.open(fileobj=cast("BinaryIO", stream), mode="r:") as packed:
        for each in packed:
            if each.isdir():
                yield _Member(each.name, "folder", False, BytesIO)
            elif each.issym():
                target = each.linkname.encode(errors="surrogateescape")
                yield _Member(each.name, "link", False, partial(BytesIO, target))
            elif each.isreg() and not each.issparse():
                is_program = bool(each.mode & stat.S_IXUSR)
                yield _Member(each.name, "file", is_program, partial(_tar_content, packed, each))
            else:
                raise InstallError(f"its member {each.name!r} is not a file, a directory or a symbolic link")
    while stream.read(_PIECE_BYTES):  # the checksum of the compressed data is at the end
        pass


def _tar_content(packed: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    return packed.extractfile(member) or BytesIO()  # never None for a regular file


def _zip_members(packed: zipfile.ZipFile) -> Iterator[_Member]:
    for each in packed.infolist():
        mode = each.external_attr >> 16
        kind = "folder" if each.is_dir() else "link" if stat.S_ISLNK(mode) else "file"
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise InstallError(f"its member {each.filename!r} is not a file, a directory or a symbolic link")
        yield _Member(each.filename, kind, bool(mode & stat.S_IXUSR), partial(packed.open, each))


def _unpack(members: Iterator[_Member], folder: Path) -> None:
    links: list[tuple[Path, str]] = []
    left = MAX_UNPACKED_BYTES
    for count, member in enumerate(members, 1):
        if count > MAX_MEMBERS:
            raise InstallError(f"it has more than {MAX_MEMBERS:,} members")
        path = _member_path(folder, member.name)
        if member.kind == "folder":
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with member.open() as content:
            if member.kind == "link":
                links.append((path, content.read(MAX_TARGET_BYTES).decode()))
            else:
                left -= _write(content, path, left, is_program=member.is_program)
    for path, target in links:
        path.symlink_to(target)
    root = folder.resolve()
    for path, target in links:
        if target.startswith("/") or not path.resolve(strict=True).is_relative_to(root):
            raise InstallError(f"the link {path.name!r} in it leads outside: {target!r}")


def _member_path(folder: Path, name: str) -> Path:
    """Return the path for a member. Raises InstallError if it is not below the directory."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise InstallError(f"{name!r} in it is not a path below its directory")
    return folder.joinpath(*parts)


def _write(content: IO[bytes], path: Path, left: int, *, is_program: bool) -> int:
    """Write one file and return its size. Raises InstallError if it has more than `left` bytes."""
    written = 0
    with path.open("xb") as file:
        while piece := content.read(min(_PIECE_BYTES, left - written + 1)):
            written += len(piece)
            if written > left:
                raise InstallError(f"it has more than {MAX_UNPACKED_BYTES:,} bytes")
            file.write(piece)
    path.chmod(0o755 if is_program else 0o644)
    return written
