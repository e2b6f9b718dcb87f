import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoman.files import Boundary
from dragoman.files.boundary import KernelOpener, WalkingOpener, has_openat2

SECRET = b"SECRET of the outside\n"


@dataclass
class Ground:
    """A project directory, a second session directory, and the outside, which must never change."""

    root: Path
    second: Path
    outside: Path
    boundary: Boundary

    @property
    def secret(self):
        return self.outside / "secret.txt"

    def untouched(self):
        return sorted(os.listdir(self.outside)) == ["secret.txt", "sub"] and self.secret.read_bytes() == SECRET


NEEDS_OPENAT2 = pytest.mark.skipif(not has_openat2(), reason="this kernel has no openat2")


@pytest.fixture(params=[pytest.param("kernel", marks=NEEDS_OPENAT2), "walking"])
def opener(request):
    """Run a test with each of the two implementations."""
    return KernelOpener() if request.param == "kernel" else WalkingOpener()


@pytest.fixture
def ground(tmp_path, opener):
    root, second, outside = (tmp_path / name for name in ("allow", "second", "outside"))
    for directory in (root / "src", second, outside / "sub"):
        directory.mkdir(parents=True)
    (root / "inside.txt").write_bytes(b"inside\n")
    (root / "src" / "main.py").write_bytes(b"print()\n")
    (second / "other.txt").write_bytes(b"other\n")
    (outside / "secret.txt").write_bytes(SECRET)
    ground = Ground(root, second, outside, Boundary([str(root), str(second)], opener=opener))
    yield ground
    assert ground.untouched()


@pytest.fixture
def boundary(ground):
    return ground.boundary
