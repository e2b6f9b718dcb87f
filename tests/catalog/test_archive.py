"""Hostile and damaged archives: nothing is written outside, and each raises a clear error."""

import gzip
import io
import random
import stat
import tarfile
import zipfile

import pytest

from dragoman.catalog import archive as module
from dragoman.catalog.archive import program_path, unpack_archive
from dragoman.catalog.registry import Binary, InstallError

PROGRAM = ("small", b"#!/bin/sh\n")


def tar(*members, mode="w:gz"):
    """Return a tar with files, given by name and content, and other members, given as fields of `TarInfo`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
                continue
            for field, value in content.items():
                setattr(member, field, value)
            archive.addfile(member)
    return packed.getvalue()


def link(target):
    return {"type": tarfile.SYMTYPE, "linkname": target}


FOLDER = {"type": tarfile.DIRTYPE}


def zipped(*members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content, *mode in members:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (mode or [stat.S_IFREG | 0o644])[0] << 16
            archive.writestr(entry, content)
    return packed.getvalue()


def damaged(data):
    middle = len(data) // 2
    return data[:middle] + bytes(255 - byte for byte in data[middle : middle + 8]) + data[middle + 8 :]


def long_link_chain():
    """Return a chain of links that escapes by a path too long for `realpath` (CVE-2025-4517)."""
    name, steps = "d" * 247, "abcdefghijklmnop"
    members, path = [], ""
    for step in steps:
        members += [(f"{path}{name}", FOLDER), (f"{path}{step}", link(name))]
        path += f"{name}/"
    short = "/".join(steps) + "/" + "l" * 254
    return tar(
        PROGRAM,
        *members,
        (short, link("../" * len(steps))),
        ("escape", link(f"{short}/../../..")),
        ("escape/outside", b"x"),
    )


def header_of(size):
    """Return an archive that claims an extended header of this size."""
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.XHDTYPE, size
    return gzip.compress(member.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


def unpack(data, tmp_path, name="a.tar.gz", cmd="./small"):
    place = tmp_path / "home" / "env"
    place.mkdir(parents=True)
    (place / "archive").write_bytes(data)
    binary = Binary(f"https://a.example/{name}", cmd)
    unpack_archive(binary, place / "archive", place)
    return program_path(binary, place)


@pytest.mark.parametrize(
    ("name", "data", "cmd"),
    [
        ("a.tar.gz", tar(("bin", FOLDER), ("bin/small", b"#!")), "./bin/small"),
        ("a.tgz", tar(("./bin/small", b"#!")), "bin/small"),
        ("a.tar.bz2", tar(("small", b"#!"), mode="w:bz2"), "small"),
        ("a.tar.xz", tar(("small", b"#!"), mode="w:xz"), "small"),
        ("a.tar.gz", tar(("small", link("lib/small.js")), ("lib/small.js", b"#!")), "small"),
        ("a.tar.gz", tar((f"{'long/' * 60}small", b"#!")), f"{'long/' * 60}small"),
        ("a.zip", zipped(("small", b"#!")), "small"),
        ("a.zip", zipped(("bin/", b"", stat.S_IFDIR | 0o755), ("bin/small", b"#!")), "bin/small"),
        ("a.zip", zipped(("small", b"lib/x", stat.S_IFLNK | 0o777), ("lib/x", b"#!")), "small"),
        ("small-linux", b"#!", "./small"),
    ],
)
def test_valid_archive_contains_its_program(name, data, cmd, tmp_path):
    program = unpack(data, tmp_path, name, cmd)
    assert program.read_bytes() == b"#!"
    assert program.stat().st_mode & stat.S_IXUSR


HOSTILE = {
    "parent": tar(PROGRAM, ("../../outside", b"x")),
    "parent within": tar(PROGRAM, ("a/../../../outside", b"x")),
    "absolute": tar(PROGRAM, ("/tmp/dragoman-outside", b"x")),
    "link outside": tar(PROGRAM, ("a", link("../.."))),
    "link to an absolute path": tar(PROGRAM, ("a", link("/etc/passwd"))),
    "link over a link": tar(PROGRAM, ("d", FOLDER), ("d/a", link("..")), ("b", link("d/a/../.."))),
    "path through a link": tar(PROGRAM, ("a", link("../..")), ("a/outside", b"x")),
    "path through an inner link": tar(PROGRAM, ("d", FOLDER), ("a", link("d")), ("a/x", b"x")),
    "link in place of a directory": tar(PROGRAM, ("a/x", b"x"), ("a", link("../.."))),
    "file in place of a link": tar(PROGRAM, ("a", link("../../outside")), ("a", b"x")),
    "link to itself": tar(PROGRAM, ("a", link("a"))),
    "dangling link": tar(PROGRAM, ("a", link("nothing"))),
    "empty link": tar(PROGRAM, ("a", link(""))),
    "long chain of links": long_link_chain(),
    "hard link": tar(PROGRAM, ("a", {"type": tarfile.LNKTYPE, "linkname": "small"})),
    "hard link outside": tar(PROGRAM, ("a", {"type": tarfile.LNKTYPE, "linkname": "../../../secret"})),
    "device": tar(PROGRAM, ("a", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})),
    "pipe": tar(PROGRAM, ("a", {"type": tarfile.FIFOTYPE})),
    "sparse": tar(PROGRAM, ("a", {"type": tarfile.GNUTYPE_SPARSE})),
    "unknown type": tar(PROGRAM, ("a", {"type": b"Z"})),
    "the same twice": tar(PROGRAM, PROGRAM),
    "file as a directory": tar(PROGRAM, ("small/x", b"x")),
    "name that is too long": tar(PROGRAM, ("n" * 300, b"x")),
    "program is a directory": tar(("small", FOLDER)),
    "program is missing": tar(("other", b"x")),
    "large header": header_of(1 << 40),
    "header beyond the end": header_of(1 << 20),
    "truncated": tar(("small", random.Random(1).randbytes(100_000)))[:50_000],
    "damaged": damaged(tar(("small", random.Random(1).randbytes(200_000)))),
    "damaged checksum": damaged(tar(("small", bytes(range(256)) * 4000))),
    "cut checksum": tar(PROGRAM)[:-4],
    "no tar": gzip.compress(b"x" * 2000),
    "empty": b"",
    "no gzip": b"\x00" * 2000,
}
HOSTILE_ZIP = {
    "parent": zipped(PROGRAM, ("../../outside", b"x")),
    "absolute": zipped(PROGRAM, ("/tmp/dragoman-outside", b"x")),
    "link outside": zipped(PROGRAM, ("a", b"../..", stat.S_IFLNK | 0o777)),
    "path through a link": zipped(PROGRAM, ("a", b"../..", stat.S_IFLNK | 0o777), ("a/outside", b"x")),
    "link that is not text": zipped(PROGRAM, ("a", b"\xff\xfe", stat.S_IFLNK | 0o777)),
    "device": zipped(PROGRAM, ("a", b"", stat.S_IFCHR | 0o666)),
    "the same twice": zipped(("small", b"x"), ("smalm", b"x")).replace(b"smalm", b"small"),
    "damaged": damaged(zipped(("small", b"x" * 1000))),
    "truncated": zipped(PROGRAM)[:-30],
    "encrypted": zipped(PROGRAM).replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"),
    "no zip": b"PK" * 100,
    "empty": b"",
}


@pytest.mark.parametrize(
    ("data", "name"),
    [
        *(pytest.param(data, "a.tar.gz", id=f"tar: {name}") for name, data in HOSTILE.items()),
        *(pytest.param(data, "a.zip", id=f"zip: {name}") for name, data in HOSTILE_ZIP.items()),
    ],
)
def test_hostile_archive_is_refused_without_writing_outside(data, name, tmp_path):
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(InstallError, match=r"^https://a\.example/a\S+ cannot be unpacked: "):
        unpack(data, tmp_path, name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "secret"]
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["env"]
    assert {path.name for path in (tmp_path / "home/env").iterdir()} <= {"archive", "files"}


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
@pytest.mark.parametrize("limit", ["MAX_UNPACKED_BYTES", "MAX_MEMBERS"])
def test_archive_beyond_the_limits_is_refused(limit, name, tmp_path, monkeypatch):
    monkeypatch.setattr(module, limit, 3)
    members = [(f"f{n}", b"x" * 5) for n in range(5)]
    with pytest.raises(InstallError, match=r"it has more than 3 (bytes|members)"):
        unpack(tar(*members) if name == "a.tar.gz" else zipped(*members), tmp_path, name)
