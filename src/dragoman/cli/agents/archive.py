"""Agents in an archive at an https address: fetched, hashed and shown before it is unpacked.

Where the registry has a hash, another content is refused. Where it has none, the person sees the hash of what came and
can compare it. The archive is not trusted: every member stays in the directory, and there are bounds.
"""

import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from dragoman.cli.agents.download import download
from dragoman.cli.agents.installer import InstallFailed, InstallPlan
from dragoman.cli.agents.known import Binary

MAX_ARCHIVE_BYTES = 1024 * 1024 * 1024
MAX_UNPACKED_BYTES = 4 * 1024 * 1024 * 1024
MAX_MEMBERS = 200_000
"""Of an archive; an environment of node has some ten thousand."""

_PIECE_BYTES = 1024 * 1024

_ZIP = (".zip",)
_TAR = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    NotImplementedError,
)
_INSTALLERS = (".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage")


class ArchiveInstaller:
    """Installs the program of one archive."""

    def __init__(self, binary: Binary) -> None:
        path = urlsplit(binary.archive).path.lower()
        if not binary.archive.startswith("https://"):
            raise InstallFailed(
                f"{binary.archive} is no https address, so anybody on the way could change it; it is not installed"
            )
        if path.endswith(_INSTALLERS):
            raise InstallFailed(f"{binary.archive} is a system's installer, not an archive; install it by hand")
        self._binary = binary
        self._name = path.rpartition("/")[2] or "archive"

    def plan(self, place: Path) -> InstallPlan:
        """Fetch the archive."""
        path = place / "archive"
        with path.open("wb") as file:
            found = download(self._binary.archive, file, MAX_ARCHIVE_BYTES)
        wanted = self._binary.sha256.lower()
        if wanted and wanted != found:
            raise InstallFailed(
                f"{self._binary.archive} has the SHA-256 {found}, and the registry says {wanted}; it was changed, or "
                "the copy of the registry is old: take another with dragoman agents update"
            )
        checked = "the registry has the same hash" if wanted else "the registry has no hash to compare it with"
        notes = (f"{path.stat().st_size:,} bytes; {checked}",)
        return InstallPlan("archive", self._binary.archive, f"sha256:{found}", notes)

    def install(self, place: Path) -> tuple[str, ...]:
        """Unpack it."""
        target = place / "files"
        target.mkdir()
        archive = place / "archive"
        try:
            if self._name.endswith(_ZIP):
                _unpack_zip(archive, target)
            elif self._name.endswith(_TAR):
                _unpack_tar(archive, target)
            else:
                shutil.copyfile(archive, target / PurePosixPath(self._binary.cmd).name)
        except _DAMAGED as error:
            raise InstallFailed(f"{self._binary.archive} cannot be unpacked: {error}") from None
        archive.unlink()
        return (str(self._program(target)), *self._binary.args)

    def _program(self, target: Path) -> Path:
        program = (target / self._binary.cmd).resolve()
        if not program.is_relative_to(target.resolve()) or not program.is_file():
            raise InstallFailed(f"{self._binary.archive} has no program {self._binary.cmd}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program


def _unpack_tar(archive: Path, target: Path) -> None:
    """Unpack with the filter that keeps members in the directory, and drops owners, devices and rights of others."""
    with tarfile.open(archive) as packed:
        count = size = 0
        for member in packed:
            count, size = count + 1, size + member.size
            _check_bounds(count, size)
            packed.extract(member, target, filter="data")
        # The checksum of what was compressed stands at the end, and is looked at only there.
        while rest := packed.fileobj.read(_PIECE_BYTES):
            size += len(rest)
            _check_bounds(count, size)


def _unpack_zip(archive: Path, target: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        members = packed.infolist()
        _check_bounds(len(members), sum(member.file_size for member in members))
        for member in members:
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                raise InstallFailed(f"{member.filename} in the archive is a link, which is not unpacked from a .zip")
            place = Path(packed.extract(member, target))  # it takes .. and a leading / out of the name
            if place.is_file() and mode & stat.S_IXUSR:
                place.chmod(place.stat().st_mode | stat.S_IXUSR)


def _check_bounds(count: int, size: int) -> None:
    if count > MAX_MEMBERS or size > MAX_UNPACKED_BYTES:
        raise InstallFailed(
            f"the archive has more than {MAX_MEMBERS:,} members or {MAX_UNPACKED_BYTES:,} bytes; it is not unpacked"
        )
