"""Listing and walking directories, and the descriptors that stay open afterwards."""

import errno
import gc
import os
import sys
from contextlib import suppress

import pytest

from dragoman.files import (
    Boundary,
    DirectoryEntry,
    FileAccessError,
    FoundPath,
    OutsideBoundaryError,
    PathError,
)
from dragoman.files.directory import MAX_DEPTH
from tests.files.ordinary import ordinary_user

LIMIT = 1 << 20


def test_listing_returns_name_kind_and_size_and_follows_no_links(boundary, ground):
    (ground.root / "link").symlink_to(ground.secret)
    os.mkfifo(ground.root / "pipe")
    listed = {entry.name: entry for entry in boundary.list_directory(".")}
    assert listed["inside.txt"] == DirectoryEntry("inside.txt", "file", 7)
    assert listed["src"].kind == "directory"
    assert listed["link"].kind == "link"
    assert listed["pipe"].kind == "FIFO"
    assert list(listed) == sorted(listed)


def test_a_file_cannot_be_listed(boundary):
    with pytest.raises(FileAccessError, match="where a directory should be"):
        boundary.list_directory("inside.txt")


def test_walk_is_depth_first_by_name_and_follows_no_links(boundary, ground):
    (ground.root / "link").symlink_to("src")
    assert list(boundary.walk(".")) == [
        FoundPath("inside.txt", "file"),
        FoundPath("link", "link"),
        FoundPath("src", "directory"),
        FoundPath("src/main.py", "file"),
    ]
    assert [found.path for found in boundary.walk(".", enter=lambda found: found.path != "src")] == [
        "inside.txt",
        "link",
        "src",
    ]
    assert [found.path for found in boundary.walk("link")] == ["main.py"]


def test_walk_reports_unreadable_directories_and_continues(boundary, ground):
    for name in ("a", "z"):
        (ground.root / name).mkdir()
    (ground.root / "a").chmod(0)
    ground.root.chmod(0o777)
    problems = []
    with ordinary_user():
        found = [found.path for found in boundary.walk(".", on_problem=problems.append)]
    assert found == ["a", "inside.txt", "src", "src/main.py", "z"]
    assert [(problem.path, problem.errno) for problem in problems] == [("./a", errno.EACCES)]


def test_walk_reports_directories_below_its_maximum_depth(boundary):
    boundary.write_bytes("d/" * (MAX_DEPTH + 5) + "file", b"")
    problems = []
    found = list(boundary.walk("d", on_problem=problems.append))
    assert len(found) == MAX_DEPTH
    assert "too deep" in str(problems[0])


def test_abandoned_walk_closes_its_descriptors(boundary):
    before = len(os.listdir("/dev/fd"))
    walk = boundary.walk(".")
    next(walk)
    walk.close()
    assert len(os.listdir("/dev/fd")) == before


def test_existence_follows_links(boundary, ground):
    (ground.root / "dangling").symlink_to("nowhere")
    assert boundary.exists("src")
    assert not boundary.exists("dangling")
    assert not boundary.exists("inside.txt/x")
    with pytest.raises(OutsideBoundaryError):
        boundary.exists("/etc/passwd")


def test_ten_thousand_entries_are_listed_and_walked(boundary, ground):
    (ground.root / "many").mkdir()
    for number in range(10_000):
        os.link(ground.root / "inside.txt", ground.root / "many" / f"{number:05}")
    assert len(boundary.list_directory("many")) == 10_000
    assert sum(1 for _ in boundary.walk("many")) == 10_000


def test_strange_names_are_listed_and_read(boundary, ground):
    names = ["new\nline", "tab\t", " ", "...", "-rf", "\u202egnp.exe", "ünï", "e\u0301", "a\\b", "\x1b[31m"]
    for name in names:
        boundary.write_bytes(f"odd/{name}", name.encode())
    assert {entry.name for entry in boundary.list_directory("odd")} == set(names)
    assert all(boundary.read_text(f"odd/{name}", LIMIT) == name for name in names)
    with pytest.raises(FileAccessError) as caught:
        boundary.read_bytes("not\nthere", LIMIT)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no names that are not UTF-8")
def test_names_that_are_not_utf8_are_listed_escaped(boundary, ground):
    (ground.root / os.fsdecode(b"caf\xe9")).touch()
    assert "caf\\xe9" in [entry.name for entry in boundary.list_directory(".")]
    assert "caf\\xe9" in [found.path for found in boundary.walk(".")]


def use_all(boundary, path):
    for action in (boundary.identity, boundary.list_directory, boundary.stat, boundary.remove):
        with suppress(PathError):
            action(path)
    with suppress(PathError):
        boundary.write_bytes(path, b"")


def test_nothing_stays_open(ground, opener):
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    boundary = Boundary([str(ground.root)], opener=opener)
    (ground.root / "out").symlink_to(ground.outside)
    (ground.root / "back").symlink_to(f"{ground.root}/src")
    os.mkfifo(ground.root / "pipe")
    for path in (
        "inside.txt",
        "src/main.py",
        "missing",
        "out/secret.txt",
        "back/main.py",
        "pipe",
        "src",
        "../x",
        "a/b",
    ):
        use_all(boundary, path)
    assert len(os.listdir("/dev/fd")) == before + 1
    del boundary
    assert len(os.listdir("/dev/fd")) == before


def test_location_keeps_its_root_open(ground, opener):
    place = Boundary([str(ground.root)], opener=opener).resolve("inside.txt")
    gc.collect()
    assert os.path.samestat(os.fstat(place.root.fd), ground.root.stat())
