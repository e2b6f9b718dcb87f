"""The walk replaces `openat2` if the kernel lacks it or a filter refuses it."""

import errno
import platform
import subprocess
import sys

import pytest

from tests.files.conftest import NEEDS_OPENAT2

FILTER = """
import ctypes, struct, sys
def refuse_openat2(code):
    # Load the number of the call. If it is 437, answer with the error, else allow.
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050000 | code), (0x06, 0, 0, 0x7FFF0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    assert prctl(38, 1, 0, 0, 0) == 0
    assert prctl(22, 2, ctypes.addressof(head), 0, 0) == 0, ctypes.get_errno()
refuse_openat2(int(sys.argv[1]))
from dragoman.files import Boundary, OutsideBoundaryError
from dragoman.files.boundary import best_opener
boundary = Boundary([sys.argv[2]])
print(type(best_opener()).__name__, boundary.read_text("inside.txt", 100).strip())
try:
    boundary.read_text("link", 100)
except OutsideBoundaryError:
    print("refused")
"""


@NEEDS_OPENAT2
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the filter is written for these machines")
@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM])
def test_walk_is_used_if_a_filter_refuses_openat2(tmp_path, code):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "inside.txt").write_text("inside")
    (tmp_path / "secret.txt").write_text("SECRET")
    (tmp_path / "root" / "link").symlink_to("../secret.txt")
    command = [sys.executable, "-c", FILTER, str(code), tmp_path / "root"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["WalkingOpener", "inside", "refused"], done.stderr


def test_importing_the_boundary_does_not_import_ctypes():
    script = "import sys; from dragoman.files import Boundary; print('ctypes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
