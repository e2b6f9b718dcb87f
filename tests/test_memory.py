"""Memory that a process frees after large messages goes back to the system."""

import subprocess
import sys

import pytest

FREE_LARGE_BLOCKS = """
from dragoman.cli.serve import return_freed_memory

return_freed_memory()


def resident_mb():
    with open("/proc/self/status") as status:
        [line] = [line for line in status if line.startswith("VmRSS")]
    return int(line.split()[1]) // 1024


def fill(size):
    return bytearray(b"x") * size


before = resident_mb()
fill(20_000_000)  # with the first large block that is freed, glibc raises its bounds
large, small = [], []
for _ in range(20):
    large.append(fill(15_000_000))
    small.append(bytes(100_000))
during = resident_mb()
large.clear()
print(before, during, resident_mb())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps freed memory, and /proc shows it")
def test_freed_large_blocks_leave_the_process():
    run = subprocess.run([sys.executable, "-c", FREE_LARGE_BLOCKS], capture_output=True, text=True, check=True)
    before, during, after = map(int, run.stdout.split())
    assert during > before + 250
    assert after < before + 50
