"""A small file system that tests can fill up and make read-only: a tmpfs that is mounted for one test."""

import shutil
import subprocess
from contextlib import contextmanager, suppress

import pytest

OPTIONS = "size=256k,nr_inodes=100,mode=700"


class TinyDisk:
    """A mounted tmpfs. `path` is a home on it."""

    def __init__(self, place):
        self.path = place / "home"
        self._place = place
        self._ballast = place / "ballast"

    def fill(self, *, files=False):
        """Fill the disk until no byte fits. With `files`, not even an empty file fits."""
        self._ballast.mkdir()
        with (self._ballast / "bytes").open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"\0" * size)
        with suppress(OSError):
            for number in range(1000 if files else 0):
                (self._ballast / str(number)).touch()

    def free(self):
        """Make room again."""
        shutil.rmtree(self._ballast)

    def set_read_only(self, *, read_only=True):
        options = f"remount,{'ro' if read_only else 'rw'}"
        subprocess.run(["mount", "-o", options, str(self._place)], check=True)


@contextmanager
def mounted(place, options=OPTIONS):
    """Mount a tiny disk. Skip the test with advice if the user may not mount."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount file systems. Run the test as root or with `unshare -rm pytest`")
    try:
        yield TinyDisk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
