"""Archives of agents: each is unpacked or refused with a reason, and nothing outside its directory changes."""

import gzip
import io
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

from dragoman.catalog.archive import program_path, unpack_archive
from dragoman.catalog.registry import Binary, InstallError

_TYPES = [tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE]
_TYPES += [tarfile.CHRTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, b"Z"]
_STEPS = ["a", "b", "small", "..", ".", "", "A", "x" * 120, "\n", "\u202e", "é"]
_MODES = [0, stat.S_IFREG | 0o4777, stat.S_IFLNK | 0o777, stat.S_IFDIR | 0o755, stat.S_IFIFO | 0o644]
_FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def check(data):
    """Check bytes as a tar and as a zip."""
    _judge(gzip.compress(data, 1), "a.tar.gz")
    _judge(data, "a.tgz")
    _judge(data, "a.zip")


def check_made(provider):
    """Check an archive with members made by the fuzzer and some bytes changed."""
    is_zip = provider.ConsumeBool()
    data = bytearray(_make_zip(provider) if is_zip else _make_tar(provider))
    for _ in range(provider.ConsumeIntInRange(0, 3)):
        data[provider.ConsumeIntInRange(0, len(data) - 1)] = provider.ConsumeIntInRange(0, 255)
    _judge(bytes(data) if is_zip else gzip.compress(data, 1), "a.zip" if is_zip else "a.tar.gz")


def _make_tar(provider):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=provider.PickValueInList(_FORMATS)) as archive:
        for _ in range(provider.ConsumeIntInRange(1, 6)):
            member = tarfile.TarInfo(_path(provider))
            member.type, member.linkname = provider.PickValueInList(_TYPES), _path(provider)
            content = provider.ConsumeBytes(provider.ConsumeIntInRange(0, 600)) if member.isreg() else b""
            member.size = len(content)
            try:
                archive.addfile(member, io.BytesIO(content))
            except ValueError:
                continue  # the format does not allow its name
    return packed.getvalue()


def _make_zip(provider):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for _ in range(provider.ConsumeIntInRange(1, 6)):
            entry = zipfile.ZipInfo(_path(provider))
            entry.external_attr = provider.PickValueInList(_MODES) << 16
            archive.writestr(entry, _path(provider))
    return packed.getvalue()


def _path(provider):
    steps = [provider.PickValueInList(_STEPS) for _ in range(provider.ConsumeIntInRange(1, 4))]
    return "/".join(steps)


def _judge(data, name):
    top = Path(tempfile.mkdtemp(prefix="dragoman-fuzz-"))
    place = top / "home" / "env"
    place.mkdir(parents=True)
    try:
        _unpack(data, name, place)
        assert [each.name for each in top.iterdir()] == ["home"]
        assert [each.name for each in (top / "home").iterdir()] == ["env"]
        assert {each.name for each in place.iterdir()} <= {"archive", "files"}
    finally:
        shutil.rmtree(top)


def _unpack(data, name, place):
    archive = place / "archive"
    archive.write_bytes(data)
    binary = Binary(f"https://a.example/{name}", "./small")
    try:
        unpack_archive(binary, archive, place)
    except InstallError as error:
        assert str(error).startswith(f"{binary.archive} cannot be unpacked: "), error
        return
    root = os.path.realpath(place / "files")
    assert os.access(program_path(binary, place), os.X_OK)
    for each in (place / "files").rglob("*"):
        mode = each.lstat().st_mode
        assert os.path.realpath(each).startswith(f"{root}/"), each
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode), each
        assert not mode & (stat.S_ISUID | stat.S_ISGID), each
