"""Writing and removing inside the boundary."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

LIMIT = 1 << 20


def test_file_is_created_with_its_parent_directories(boundary, ground):
    boundary.write_bytes("a/b/c.txt", b"new")
    assert (ground.root / "a" / "b" / "c.txt").read_bytes() == b"new"
    boundary.write_bytes(f"{ground.second}/x/y", b"new", sync=True)
    assert (ground.second / "x" / "y").read_bytes() == b"new"


def test_new_file_respects_the_umask(boundary, ground):
    was = os.umask(0o027)
    try:
        boundary.write_bytes("dir/new", b"")
    finally:
        os.umask(was)
    assert stat.S_IMODE((ground.root / "dir" / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((ground.root / "dir").stat().st_mode) == 0o750


def test_replaced_file_keeps_its_mode_except_set_id_bits(boundary, ground):
    file = ground.root / "inside.txt"
    file.chmod(0o4751)
    boundary.write_bytes("inside.txt", b"new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_file_written_by_root_keeps_its_owner(boundary, ground):
    os.chown(ground.root / "inside.txt", 1234, 5678)
    boundary.write_bytes("inside.txt", b"new")
    status = (ground.root / "inside.txt").stat()
    assert (status.st_uid, status.st_gid) == (1234, 5678)


def test_reader_sees_the_old_or_the_new_content_and_never_a_part(boundary):
    contents = {bytes([letter]) * 200_000 for letter in b"abcd"}
    boundary.write_bytes("big", max(contents))
    stop = threading.Event()

    def write():
        while not stop.is_set():
            for content in contents:
                boundary.write_bytes("big", content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = {boundary.read_bytes("big", LIMIT) for _ in range(200)}
    finally:
        stop.set()
        writer.join()
    assert seen <= contents


def test_failed_write_leaves_only_the_old_content(ground, tmp_path):
    script = (
        "import resource, signal, sys; from dragoman.files import Boundary, FileAccessError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: Boundary([sys.argv[1]]).write_bytes('inside.txt', bytes(5000))\n"
        "except FileAccessError as problem: print(problem.errno)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, ground.root], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(errno.EFBIG)
    assert sorted(os.listdir(ground.root)) == ["inside.txt", "src"]
    assert (ground.root / "inside.txt").read_bytes() == b"inside\n"


def test_running_program_can_be_replaced(boundary, ground):
    program = ground.root / "program"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "60"]) as running:
        boundary.write_bytes("program", b"new")
        running.kill()
    assert program.read_bytes() == b"new"


def test_writing_a_link_inside_writes_its_target(boundary, ground):
    (ground.root / "link").symlink_to("src/main.py")
    (ground.root / "absolute").symlink_to(ground.second / "other.txt")
    (ground.root / "chain").symlink_to("absolute")
    boundary.write_bytes("link", b"by link")
    boundary.write_bytes("chain", b"by chain")
    assert (ground.root / "link").is_symlink()
    assert (ground.root / "chain").is_symlink()
    assert (ground.root / "src" / "main.py").read_bytes() == b"by link"
    assert (ground.second / "other.txt").read_bytes() == b"by chain"


def test_writing_a_dangling_link_inside_creates_its_target(boundary, ground):
    (ground.root / "link").symlink_to("later/file")
    boundary.write_bytes("link", b"new")
    assert (ground.root / "later" / "file").read_bytes() == b"new"


def test_removing_a_link_keeps_its_target(boundary, ground):
    (ground.root / "link").symlink_to("inside.txt")
    boundary.remove("link")
    assert not (ground.root / "link").is_symlink()
    boundary.remove("inside.txt")
    assert not boundary.exists("inside.txt")
