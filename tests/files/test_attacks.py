"""Known escapes from a directory, each tried with both implementations. Races are in test_races."""

import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.files import Boundary, FileAccessError, NotAFileError, OutsideBoundaryError, PathError
from dragoman.files.replacement import TEMPORARY

LIMIT = 1 << 20
HAS_PROC = Path("/proc/self/root").is_symlink()
needs_proc = pytest.mark.skipif(not HAS_PROC, reason="there is no /proc here")


def assert_all_refused(boundary, path, error=PathError):
    """Assert that every method refuses this path."""
    actions = [
        boundary.open_read,
        boundary.stat,
        boundary.identity,
        boundary.list_directory,
        boundary.exists,
        lambda path: boundary.read_bytes(path, LIMIT),
        lambda path: boundary.read_text(path, LIMIT),
        lambda path: boundary.write_bytes(path, b"overwritten"),
        lambda path: list(boundary.walk(path)),
    ]
    for action in actions:
        with pytest.raises(error):
            action(path)


# Known vulnerabilities of other programs


def test_cve_2025_53110_sibling_with_the_roots_prefix_is_outside(boundary, ground, tmp_path):
    evil = tmp_path / "allow_evil"
    evil.mkdir()
    (evil / "secret.txt").write_bytes(b"SECRET")
    for path in (f"{evil}/secret.txt", "../allow_evil/secret.txt", f"{ground.root}/../allow_evil/secret.txt"):
        assert_all_refused(boundary, path, OutsideBoundaryError)
    (ground.root / "link").symlink_to(evil)
    assert_all_refused(boundary, "link/secret.txt", OutsideBoundaryError)
    assert os.listdir(evil) == ["secret.txt"]
    assert (evil / "secret.txt").read_bytes() == b"SECRET"


def test_cve_2025_53109_link_out_is_refused_though_its_parent_is_inside(boundary, ground):
    (ground.root / "link").symlink_to(ground.secret)
    assert_all_refused(boundary, "link", OutsideBoundaryError)
    assert_all_refused(boundary, f"{ground.root}/link", OutsideBoundaryError)


def test_cve_2025_53109_unresolvable_link_raises_and_creates_nothing(boundary, ground):
    (ground.root / "new.txt").symlink_to(ground.outside / "new.txt")
    with pytest.raises(OutsideBoundaryError):
        boundary.write_bytes("new.txt", b"created outside")
    (ground.root / "loop").symlink_to("loop")
    with pytest.raises(FileAccessError, match="form a loop"):
        boundary.write_bytes("loop", b"x")
    assert (ground.root / "loop").is_symlink()


def test_cve_2026_32978_change_after_approval_is_detected(boundary, ground):
    approved = boundary.identity("src/main.py", content=True)
    status = (ground.root / "src" / "main.py").stat()
    (ground.root / "src" / "main.py").write_bytes(b"EVILLY()"[: status.st_size])
    os.utime(ground.root / "src" / "main.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert boundary.identity("src/main.py", content=True) != approved


# Path text


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../",
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "./.././outside/secret.txt",
        "..//outside//secret.txt",
        "src/../src/../../outside/secret.txt",
        "{root}/../outside/secret.txt",
        "{root}/../../{name}/outside/secret.txt",
        "{outside}/secret.txt",
        "/{outside}/secret.txt",
        "//{outside}/./secret.txt",
        "{outside}/../outside/secret.txt",
        "{root}//..//outside/secret.txt",
        "/etc/passwd",
        "/",
        "//",
        "/..",
    ],
)
def test_path_text_that_leads_out_is_refused(boundary, ground, path):
    words = path.format(root=ground.root, outside=ground.outside, name=ground.root.parent.name)
    assert_all_refused(boundary, words, OutsideBoundaryError)


@pytest.mark.parametrize(
    "path",
    [
        "... /outside/secret.txt",
        ".../secret.txt",
        ".. /outside/secret.txt",
        "..\\outside\\secret.txt",
        "..%2foutside/secret.txt",
        "%2e%2e/outside/secret.txt",
        "\u2024\u2024/outside/secret.txt",
        "\uff0e\uff0e/outside/secret.txt",
        "..\u2215outside/secret.txt",
        "file:///etc/passwd",
        "$HOME/secret.txt",
        "{ROOT}/../outside/secret.txt",
    ],
)
def test_name_that_only_looks_like_an_escape_is_ordinary(boundary, ground, path):
    with pytest.raises((FileAccessError, OutsideBoundaryError)):
        boundary.read_bytes(path.format(ROOT=str(ground.root).upper()), LIMIT)


def test_other_case_or_normal_form_is_another_directory(boundary, ground):
    with pytest.raises(OutsideBoundaryError):
        boundary.resolve(f"{ground.root.parent}/ALLOW/inside.txt")
    cafe = ground.root.parent / "cafe\u0301"
    cafe.mkdir()
    with pytest.raises(OutsideBoundaryError):
        Boundary([str(cafe)]).resolve(f"{ground.root.parent}/caf\u00e9/x")


# Links


@pytest.mark.parametrize(
    "text",
    [
        "{outside}",
        "{outside}/",
        "../outside",
        "src/../../outside",
        "{root}/../outside",
        "{root}/src/../../outside",
        "/proc/self/root{outside}",
        "..",
        "/",
        "../..",
    ],
)
def test_links_that_lead_out_are_refused(boundary, ground, text):
    (ground.root / "src" / "link").symlink_to(text.format(root=ground.root, outside=ground.outside))
    (ground.root / "link").symlink_to(text.format(root=ground.root, outside=ground.outside))
    (ground.root / "chain").symlink_to("src/../hop")
    (ground.root / "hop").symlink_to(f"{ground.root}/link")
    for path in (
        "link",
        "link/secret.txt",
        "link/sub/..",
        "chain",
        "chain/secret.txt",
        "chain/new/file",
        "src/../link/.",
    ):
        assert_all_refused(boundary, path, OutsideBoundaryError)


def test_path_through_the_outside_is_refused_though_it_ends_inside(boundary, ground):
    (ground.outside / "sub" / "back").symlink_to(ground.root)
    (ground.root / "link").symlink_to(ground.outside / "sub")
    assert_all_refused(boundary, "link/back/inside.txt", OutsideBoundaryError)
    (ground.outside / "sub" / "back").unlink()


def test_dot_dot_after_a_link_out_is_refused(boundary, ground):
    (ground.root / "link").symlink_to(ground.outside / "sub")
    assert_all_refused(boundary, "link/../secret.txt", OutsideBoundaryError)


def test_nothing_is_created_through_a_dangling_link_out(boundary, ground):
    (ground.root / "file").symlink_to(ground.outside / "made.txt")
    (ground.root / "directory").symlink_to("../outside/made")
    for path in ("file", "directory", "directory/x", "directory/x/y"):
        with pytest.raises(OutsideBoundaryError):
            boundary.write_bytes(path, b"made")


def test_removing_a_link_out_removes_only_the_link(boundary, ground):
    (ground.root / "link").symlink_to(ground.secret)
    (ground.root / "directory").symlink_to(ground.outside)
    with pytest.raises(OutsideBoundaryError):
        boundary.remove("directory/secret.txt")
    boundary.remove("link")
    boundary.remove("directory")
    assert sorted(os.listdir(ground.root)) == ["inside.txt", "src"]


def test_link_loops_end(boundary, ground):
    (ground.root / "self").symlink_to("self")
    (ground.root / "a").symlink_to("b")
    (ground.root / "b").symlink_to(f"{ground.root}/a")
    (ground.root / "deeper").symlink_to("deeper/deeper")
    (ground.root / "up").symlink_to("../allow/up")
    for path in ("self", "a", "b/x", "deeper", "up", "up/x"):
        assert_all_refused(boundary, path, FileAccessError)


def test_too_long_chain_of_links_is_refused(boundary, ground):
    (ground.root / "0").symlink_to("inside.txt")
    for number in range(1, 60):
        (ground.root / f"{number}").symlink_to(f"{number - 1}")
    assert boundary.read_bytes("30", LIMIT) == b"inside\n"
    assert_all_refused(boundary, "59", FileAccessError)


def test_walk_does_not_follow_links(boundary, ground):
    (ground.root / "out").symlink_to(ground.outside)
    (ground.root / "loop").symlink_to(".")
    assert [found.path for found in boundary.walk(".")] == ["inside.txt", "loop", "out", "src", "src/main.py"]


# Magic links


@needs_proc
@pytest.mark.parametrize("link", ["root", "cwd", "exe", "fd/{fd}", "task/{pid}/root", "task/{pid}/cwd"])
def test_magic_links_are_refused(opener, ground, link):
    with ground.secret.open() as file:
        place = link.format(fd=file.fileno(), pid=os.getpid())
        boundary = Boundary([f"/proc/{os.getpid()}"], opener=opener)
        for path in (place, f"{place}/etc/passwd", f"{place}{ground.secret}"):
            with pytest.raises(PathError):
                boundary.read_bytes(path, LIMIT)
            with pytest.raises(PathError):
                boundary.write_bytes(path, b"overwritten")


@needs_proc
@pytest.mark.parametrize("text", ["/proc/self/root", "/proc/self/cwd", "/proc/thread-self/root", "/dev/fd/{fd}"])
def test_links_to_magic_links_are_refused(boundary, ground, text, monkeypatch):
    monkeypatch.chdir(ground.outside)
    with ground.secret.open() as file:
        (ground.root / "link").symlink_to(text.format(fd=file.fileno()))
        assert_all_refused(boundary, "link", OutsideBoundaryError)
        assert_all_refused(boundary, "link/secret.txt", OutsideBoundaryError)


@needs_proc
def test_link_to_an_open_directory_is_refused(boundary, ground):
    fd = os.open(ground.outside, os.O_RDONLY)
    try:
        (ground.root / "link").symlink_to(f"/proc/self/fd/{fd}")
        assert_all_refused(boundary, "link/secret.txt", OutsideBoundaryError)
    finally:
        os.close(fd)


# Files of other kinds


def test_fifo_is_refused_without_waiting(boundary, ground):
    os.mkfifo(ground.root / "pipe")
    for action in (boundary.open_read, boundary.identity, lambda path: boundary.write_bytes(path, b"x")):
        with pytest.raises(NotAFileError, match="is a FIFO"):
            action("pipe")
    assert stat.S_ISFIFO((ground.root / "pipe").stat().st_mode)


def test_a_socket_is_refused(boundary, ground, monkeypatch):
    monkeypatch.chdir(ground.root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for action in (boundary.open_read, lambda path: boundary.write_bytes(path, b"x")):
            with pytest.raises(NotAFileError):
                action("socket")


def test_a_device_is_refused(boundary, ground):
    try:
        os.mknod(ground.root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make devices")
    for action in (boundary.open_read, lambda path: boundary.write_bytes(path, b"x")):
        with pytest.raises(NotAFileError, match="device"):
            action("zero")


def test_devices_of_the_system_are_refused(opener):
    boundary = Boundary(["/dev"], opener=opener)
    for path in ("zero", "null", "tty"):
        with pytest.raises(PathError):
            boundary.read_bytes(path, LIMIT)


# Names of temporary files


def test_planted_temporary_link_is_not_written_through(boundary, ground, monkeypatch):
    (ground.root / f"{TEMPORARY}guessed").symlink_to(ground.secret)
    names = iter(["guessed", "guessed", "free"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(names))
    boundary.write_bytes("inside.txt", b"new")
    assert (ground.root / "inside.txt").read_bytes() == b"new"
    assert sorted(os.listdir(ground.root)) == [f"{TEMPORARY}guessed", "inside.txt", "src"]


def test_nothing_is_written_if_every_temporary_name_exists(boundary, ground, monkeypatch):
    (ground.root / f"{TEMPORARY}guessed").symlink_to(ground.secret)
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    with pytest.raises(FileAccessError):
        boundary.write_bytes("inside.txt", b"new")
    assert (ground.root / "inside.txt").read_bytes() == b"inside\n"


# Deliberately inside (docs/permissions.md)


def test_writing_a_hard_link_inside_does_not_change_its_other_name(boundary, ground):
    os.link(ground.secret, ground.root / "hard")
    assert boundary.read_bytes("hard", LIMIT).startswith(b"SECRET")
    boundary.write_bytes("hard", b"new")
    assert (ground.root / "hard").read_bytes() == b"new"
    assert ground.untouched()


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare, to mount without touching this system")
def test_mount_inside_is_inside(ground, opener):
    script = (
        "import subprocess, sys; from dragoman.files import Boundary; from dragoman.files.boundary import *\n"
        "subprocess.run(['mount', '--bind', sys.argv[2], sys.argv[1] + '/src'], check=True)\n"
        f"boundary = Boundary([sys.argv[1]], opener={type(opener).__name__}())\n"
        "print(boundary.read_text('src/secret.txt', 100))\n"
        "boundary.read_bytes('src/../inside.txt', 100)\n"
    )
    unshare = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system lets nobody make namespaces")
    command = [*unshare, sys.executable, "-c", script, ground.root, ground.outside]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("SECRET"), done.stderr
