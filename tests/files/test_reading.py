"""Reading inside the boundary."""

import errno
import os
from pathlib import Path

import pytest

from dragoman.files import (
    Boundary,
    FileAccessError,
    FileTooLargeError,
    NotAFileError,
    NotTextError,
)
from tests.files.ordinary import ordinary_user
from tests.table import each_row

LIMIT = 1 << 20


def test_file_opened_for_reading_is_read_by_lines(boundary):
    boundary.write_bytes("lines", b"one\ntwo\n")
    with boundary.open_read("lines") as file:
        assert list(file) == [b"one\n", b"two\n"]


def test_reading_stops_at_the_limit(boundary):
    boundary.write_bytes("five", b"12345")
    assert boundary.read_bytes("five", 5) == b"12345"
    with pytest.raises(FileTooLargeError, match="has 5 bytes, over the limit of 4") as caught:
        boundary.read_bytes("five", 4)
    assert (caught.value.size, caught.value.max_bytes) == (5, 4)
    boundary.write_bytes("none", b"")
    assert boundary.read_bytes("none", 0) == b""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc here")
def test_limit_applies_to_files_that_report_a_smaller_size(opener):
    boundary = Boundary(["/proc"], opener=opener)
    assert len(boundary.read_bytes(f"{os.getpid()}/status", LIMIT)) > 100
    with pytest.raises(FileTooLargeError, match="over the limit of 100"):
        boundary.read_bytes(f"{os.getpid()}/status", 100)


def test_text_is_utf8_and_keeps_line_ends(boundary):
    boundary.write_bytes("text", "grüße\r\n".encode())
    assert boundary.read_text("text", LIMIT) == "grüße\r\n"


@each_row(("data", "offset"), [(b"ab\xff", 2), (b"a\0b", 1), (b"\xc3", 0), (b"\xed\xa0\x80", 0)])
def test_invalid_text_is_reported_with_its_offset(boundary, data, offset):
    boundary.write_bytes("binary", data)
    with pytest.raises(NotTextError, match="not UTF-8 text") as caught:
        boundary.read_text("binary", LIMIT)
    assert caught.value.offset == offset


def test_missing_file_raises_with_its_errno(boundary):
    for action in (boundary.open_read, boundary.stat, boundary.list_directory, boundary.remove, boundary.identity):
        with pytest.raises(FileAccessError, match=r"missing\.txt does not exist") as caught:
            action("missing.txt")
        assert caught.value.errno == errno.ENOENT


def test_file_in_place_of_a_directory_raises(boundary):
    for path in ("inside.txt/x", "inside.txt/", "inside.txt/."):
        with pytest.raises(FileAccessError, match="where a directory should be"):
            boundary.read_bytes(path, LIMIT)


def test_a_directory_is_not_a_file(boundary):
    for path in ("src", ".", "src/", "src/.."):
        with pytest.raises(NotAFileError, match=r"is a directory, not a file\. List it"):
            boundary.read_bytes(path, LIMIT)
        with pytest.raises(NotAFileError):
            boundary.write_bytes(path, b"")
        with pytest.raises(NotAFileError):
            boundary.remove(path)
    with pytest.raises(NotAFileError):
        boundary.write_bytes("new/", b"")


def test_missing_permission_raises(boundary, ground):
    (ground.root / "inside.txt").chmod(0o000)
    ground.root.chmod(0o777)
    with ordinary_user():
        with pytest.raises(FileAccessError, match="cannot be used by this user"):
            boundary.read_bytes("inside.txt", LIMIT)
        assert boundary.stat("inside.txt").st_size == 7


def test_write_protected_file_is_not_replaced(boundary, ground):
    (ground.root / "inside.txt").chmod(0o444)
    ground.root.chmod(0o777)
    with ordinary_user(), pytest.raises(FileAccessError, match="cannot be used by this user"):
        boundary.write_bytes("inside.txt", b"new")
    assert (ground.root / "inside.txt").read_bytes() == b"inside\n"
    assert not [name for name in os.listdir(ground.root) if name.startswith(".dragoman")]


def test_directory_with_only_search_permission_can_be_entered(boundary, ground):
    (ground.root / "src").chmod(0o711)
    with ordinary_user():
        assert boundary.read_bytes("src/main.py", LIMIT) == b"print()\n"


def test_identity_changes_with_the_file(boundary, ground):
    before = boundary.identity("inside.txt", content=True)
    assert boundary.identity("inside.txt", content=True) == before
    assert boundary.identity("inside.txt").sha256 is None
    status = (ground.root / "inside.txt").stat()
    with (ground.root / "inside.txt").open("r+b") as file:
        file.write(b"INSIDE")
    os.utime(ground.root / "inside.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    after = boundary.identity("inside.txt", content=True)
    assert (after.inode, after.size, after.mtime_ns) == (before.inode, before.size, before.mtime_ns)
    assert after.sha256 != before.sha256


def test_file_replaced_by_equal_content_has_another_identity(boundary):
    before = boundary.identity("inside.txt", content=True)
    boundary.write_bytes("inside.txt", b"inside\n")
    after = boundary.identity("inside.txt", content=True)
    assert after.inode != before.inode
    assert after.sha256 == before.sha256
