"""Valid and invalid paths, and their targets."""

import pytest

from dragoman.files import (
    Boundary,
    FileAccessError,
    InvalidPathError,
    OutsideBoundaryError,
    PathError,
)
from tests.table import each_row

LIMIT = 1 << 20


def test_relative_paths_start_at_the_first_root(boundary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert boundary.read_bytes("src/main.py", LIMIT) == b"print()\n"


@each_row("path", ["inside.txt", "./inside.txt", "src/../inside.txt", "src//..//inside.txt", "./././inside.txt"])
def test_spellings_of_a_path_inside_are_equal(boundary, path):
    assert boundary.read_bytes(path, LIMIT) == b"inside\n"


def test_absolute_paths_find_their_root(boundary, ground):
    assert boundary.read_bytes(f"{ground.root}/inside.txt", LIMIT) == b"inside\n"
    assert boundary.read_bytes(f"{ground.second}/other.txt", LIMIT) == b"other\n"
    assert boundary.read_bytes(f"/{ground.root}//inside.txt", LIMIT) == b"inside\n"


def test_path_may_climb_from_one_root_to_another(boundary):
    assert boundary.read_bytes("../second/other.txt", LIMIT) == b"other\n"
    assert boundary.read_bytes("src/../../allow/inside.txt", LIMIT) == b"inside\n"


def test_root_is_found_by_its_given_and_its_real_path(ground, opener, tmp_path):
    (tmp_path / "alias").symlink_to(ground.root)
    boundary = Boundary([str(tmp_path / "alias")], opener=opener)
    assert boundary.read_bytes(f"{tmp_path}/alias/inside.txt", LIMIT) == b"inside\n"
    assert boundary.read_bytes(f"{ground.root}/inside.txt", LIMIT) == b"inside\n"
    assert boundary.roots == (f"{tmp_path}/alias",)


def test_root_stays_the_opened_directory_after_a_rename(ground, boundary, tmp_path):
    ground.root.rename(tmp_path / "moved")
    ground.root.symlink_to(ground.outside)
    assert boundary.read_bytes("inside.txt", LIMIT) == b"inside\n"
    with pytest.raises(FileAccessError):
        boundary.read_bytes("secret.txt", LIMIT)


def test_file_system_root_can_be_a_root(opener, ground):
    boundary = Boundary(["/"], opener=opener)
    assert boundary.read_bytes(str(ground.root / "inside.txt"), LIMIT) == b"inside\n"
    assert boundary.read_bytes(f"/../..{ground.root}/inside.txt", LIMIT) == b"inside\n"


def test_nested_root_is_found_by_both_paths(ground, opener):
    boundary = Boundary([str(ground.root), str(ground.root / "src")], opener=opener)
    (ground.root / "src" / "up").symlink_to("../inside.txt")
    assert boundary.resolve("src/main.py").root.path == str(ground.root / "src")
    assert boundary.read_bytes("src/up", LIMIT) == b"inside\n"


def test_resolving_does_not_access_the_disk(boundary, ground):
    place = boundary.resolve("not/there")
    assert (place.root.path, place.parts, place.path) == (
        str(ground.root),
        ("not", "there"),
        f"{ground.root}/not/there",
    )
    assert boundary.resolve(str(ground.root)).relative == "."


@each_row(
    ("path", "words"),
    [
        ("", "is empty"),
        ("a\0b", "NUL"),
        ("~", "not expanded"),
        ("~/x", "not expanded"),
        ("~root/x", "not expanded"),
        ("caf\udce9", "not valid Unicode"),
        ("a/" * 2048 + "b", "too long"),
    ],
)
def test_invalid_path_is_refused_with_a_reason(boundary, path, words):
    for action in (boundary.open_read, boundary.stat, boundary.list_directory, boundary.remove, boundary.resolve):
        with pytest.raises(InvalidPathError, match=words) as caught:
            action(path)
        assert len(str(caught.value)) < 300
    with pytest.raises(InvalidPathError):
        boundary.write_bytes(path, b"")


def test_name_too_long_for_the_disk_raises(boundary):
    with pytest.raises(FileAccessError, match="too long"):
        boundary.write_bytes("n" * 300, b"")


def test_name_that_begins_with_a_tilde_can_be_written(boundary):
    boundary.write_bytes("./~draft", b"x")
    assert boundary.read_bytes("./~draft", 1) == b"x"


def test_refusal_names_the_path_the_roots_and_the_fix(boundary, ground):
    with pytest.raises(OutsideBoundaryError) as caught:
        boundary.resolve("/etc/passwd")
    assert str(caught.value) == (
        f"/etc/passwd is outside {ground.root} and {ground.second}. "
        "Use a path inside, or ask the user to add that directory to the session"
    )
    assert (caught.value.path, caught.value.roots) == ("/etc/passwd", (str(ground.root), str(ground.second)))


@pytest.mark.parametrize("root", ["relative", "", "~/x", "/does/not/exist", "/etc/passwd", "/a\0b"])
def test_root_must_be_an_existing_absolute_directory(root):
    with pytest.raises(PathError):
        Boundary([root])


def test_a_boundary_needs_a_root():
    with pytest.raises(ValueError, match="at least one"):
        Boundary([])


@pytest.mark.parametrize(
    "text", ["src", "./src/", "../allow/src", "src/../src", "{root}/src", "{root}/src/", "{root}/../allow/src", "hop"]
)
def test_links_that_stay_inside_are_followed(boundary, ground, text):
    (ground.root / "hop").symlink_to(f"{ground.root}/src/.")
    (ground.root / "link").symlink_to(text.format(root=ground.root))
    assert boundary.read_bytes("link/main.py", LIMIT) == b"print()\n"
    assert boundary.read_bytes("link/../inside.txt", LIMIT) == b"inside\n"
    assert [entry.name for entry in boundary.list_directory("link")] == ["main.py"]
    boundary.write_bytes("link/new/file", b"x")
    assert (ground.root / "src" / "new" / "file").read_bytes() == b"x"


def test_link_may_lead_from_one_root_into_another(boundary, ground):
    (ground.root / "climbing").symlink_to("../second/other.txt")
    (ground.root / "absolute").symlink_to(ground.second / "other.txt")
    for path in ("climbing", "absolute"):
        assert boundary.read_bytes(path, LIMIT) == b"other\n"
        assert boundary.stat(path).st_size == 6
