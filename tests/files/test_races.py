"""A process swaps names in a tight loop while we read, write and walk. Nothing outside may be read or written.

Each race must be real, so both a success inside and a refusal must occur.
"""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from dragoman.files import PathError
from tests.files.conftest import SECRET

SHORT_S = 0.5
LONG_S = 30
FEW = 20
soak = pytest.mark.skipif(not os.environ.get("DRAGOMAN_SOAK"), reason="long: set DRAGOMAN_SOAK=1, or run make soak")
lengths = pytest.mark.parametrize("seconds", [SHORT_S, pytest.param(LONG_S, marks=[pytest.mark.soak, soak])])


@contextmanager
def swapping(directory, name, other):
    command = [sys.executable, "-I", "-S", Path(__file__).with_name("swapper.py"), directory, name, other]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as swapper:
        swapper.stdout.readline()
        yield
        assert swapper.poll() is None
        swapper.stdin.close()


def race(seconds, attempt):
    """Repeat an attempt for some time, and longer until both outcomes have occurred."""
    succeeded = refused = 0
    begin = time.monotonic()
    for number in count():
        try:
            attempt(number)
            succeeded += 1
        except PathError:
            refused += 1
        if time.monotonic() - begin > seconds and succeeded >= FEW and refused >= FEW:
            return


def plant(ground, kind):
    """Create a directory with a file, and a link out that is swapped with the directory."""
    (ground.root / "real").mkdir()
    (ground.root / "real" / "secret.txt").write_bytes(b"inside")
    target = {"absolute": str(ground.outside), "relative": "../outside"}[kind]
    (ground.root / "evil").symlink_to(target)


@lengths
@pytest.mark.parametrize("kind", ["absolute", "relative"])
def test_directory_swapped_for_a_link_never_shows_the_outside(boundary, ground, kind, seconds):
    plant(ground, kind)

    def read(_):
        assert boundary.read_bytes("real/secret.txt", 100) == b"inside"

    with swapping(ground.root, "real", "evil"):
        race(seconds, read)


def plant_file(ground):
    """Create a file and a link out. Create both each time, because a write may replace either."""
    (ground.root / "new").write_bytes(b"inside")
    (ground.root / "new").rename(ground.root / "file")
    (ground.root / "new").symlink_to(ground.secret)
    (ground.root / "new").rename(ground.root / "evil")


@lengths
def test_file_swapped_for_a_link_never_exposes_the_outside(boundary, ground, seconds):
    def read_and_write(number):
        plant_file(ground)
        assert boundary.identity("file").size != len(SECRET)
        boundary.write_bytes("file", b"INSIDE")
        assert boundary.read_bytes("file", 100).lower() == b"inside"

    plant_file(ground)
    with swapping(ground.root, "file", "evil"):
        race(seconds, read_and_write)
    assert ground.untouched()


@lengths
@pytest.mark.parametrize("path", ["real/{}", "real/a{}/b/c", "real/secret.txt"])
def test_parent_swapped_for_a_link_creates_nothing_outside(boundary, ground, path, seconds):
    plant(ground, "absolute")

    def write(number):
        boundary.write_bytes(path.format(number % 50), b"made")

    with swapping(ground.root, "real", "evil"):
        race(seconds, write)
    assert ground.untouched()
    assert sorted(os.listdir(ground.outside / "sub")) == []


@lengths
def test_parent_swapped_for_a_link_removes_nothing_outside(boundary, ground, seconds):
    plant(ground, "relative")
    inside = os.open(ground.root / "real", os.O_RDONLY)

    def remove(_):
        os.close(os.open("secret.txt", os.O_CREAT | os.O_WRONLY, dir_fd=inside))
        boundary.remove("real/secret.txt")

    with swapping(ground.root, "real", "evil"):
        race(seconds, remove)
    os.close(inside)
    assert ground.untouched()


@lengths
def test_directory_replaced_during_a_walk_never_leads_outside(boundary, ground, seconds):
    plant(ground, "absolute")
    (ground.root / "real" / "below").mkdir()

    def walk(_):
        paths = [found.path for found in boundary.walk(".")]
        assert not any(path.endswith("/sub") for path in paths)
        if "real/below" not in paths:
            raise PathError("real", "was a link just now")

    with swapping(ground.root, "real", "evil"):
        race(seconds, walk)


@lengths
def test_dot_dot_in_a_moved_directory_never_shows_the_outside(boundary, ground, tmp_path, seconds):
    (ground.root / "a" / "b").mkdir(parents=True)
    (ground.root / "a" / "secret.txt").write_bytes(b"inside")
    (ground.root / "secret.txt").write_bytes(b"inside")
    names = (f"{ground.root.name}/a/b", f"{ground.outside.name}/sub")

    def read(_):
        assert boundary.read_bytes("a/b/../secret.txt", 100) == b"inside"
        assert boundary.read_bytes("a/b/../../secret.txt", 100) == b"inside"
        boundary.list_directory("a/b/c")

    (ground.root / "a" / "b" / "c").mkdir()
    with swapping(tmp_path, *names):
        race(seconds, read)


def resolve_then_open(root, path):
    """Resolve a path before opening it, as other programs do. This loses the race."""
    try:
        real = Path(os.path.realpath(root / path))
        if not real.is_relative_to(root):
            raise PathError(path, "is outside")
        return real.read_bytes()
    except OSError:
        raise PathError(path, "is gone") from None


@pytest.mark.soak
@soak
def test_checking_before_opening_loses_the_race(ground):
    plant(ground, "absolute")
    leaks = []

    def read(_):
        if resolve_then_open(ground.root, "real/secret.txt") == SECRET:
            leaks.append(True)

    with swapping(ground.root, "real", "evil"):
        race(5, read)
    assert leaks
