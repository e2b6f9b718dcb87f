"""Where paths lead, and what is none."""

import pytest

from dragoman.files import (
    BadPath,
    Boundary,
    FileProblem,
    OutsideBoundary,
    PathError,
)

LIMIT = 1 << 20


def test_relative_paths_begin_at_the_first_root_wherever_the_process_was_started(boundary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert boundary.read_bytes("src/main.py", LIMIT) == b"print()\n"


@pytest.mark.parametrize(
    "path", ["inside.txt", "./inside.txt", "src/../inside.txt", "src//..//inside.txt", "./././inside.txt"]
)
def test_ways_to_write_a_path_inside(boundary, path):
    assert boundary.read_bytes(path, LIMIT) == b"inside\n"


def test_absolute_paths_find_their_root(boundary, ground):
    assert boundary.read_bytes(f"{ground.root}/inside.txt", LIMIT) == b"inside\n"
    assert boundary.read_bytes(f"{ground.second}/other.txt", LIMIT) == b"other\n"
    assert boundary.read_bytes(f"/{ground.root}//inside.txt", LIMIT) == b"inside\n"


def test_a_path_may_climb_from_one_root_to_another_and_back(boundary):
    assert boundary.read_bytes("../second/other.txt", LIMIT) == b"other\n"
    assert boundary.read_bytes("src/../../allow/inside.txt", LIMIT) == b"inside\n"


def test_a_root_goes_by_its_given_and_by_its_real_name(ground, opener, tmp_path):
    (tmp_path / "alias").symlink_to(ground.root)
    boundary = Boundary([str(tmp_path / "alias")], opener=opener)
    assert boundary.read_bytes(f"{tmp_path}/alias/inside.txt", LIMIT) == b"inside\n"
    assert boundary.read_bytes(f"{ground.root}/inside.txt", LIMIT) == b"inside\n"
    assert boundary.roots == (f"{tmp_path}/alias",)


def test_a_root_is_the_directory_that_was_opened_whatever_gets_its_name(ground, boundary, tmp_path):
    ground.root.rename(tmp_path / "moved")
    ground.root.symlink_to(ground.outside)
    assert boundary.read_bytes("inside.txt", LIMIT) == b"inside\n"
    with pytest.raises(FileProblem):
        boundary.read_bytes("secret.txt", LIMIT)


def test_the_top_of_the_disk_can_be_a_root(opener, ground):
    boundary = Boundary(["/"], opener=opener)
    assert boundary.read_bytes(str(ground.root / "inside.txt"), LIMIT) == b"inside\n"
    assert boundary.read_bytes(f"/../..{ground.root}/inside.txt", LIMIT) == b"inside\n"


def test_a_root_inside_a_root_is_found_by_both_names(ground, opener):
    boundary = Boundary([str(ground.root), str(ground.root / "src")], opener=opener)
    (ground.root / "src" / "up").symlink_to("../inside.txt")
    assert boundary.resolve("src/main.py").root.path == str(ground.root / "src")
    assert boundary.read_bytes("src/up", LIMIT) == b"inside\n"


def test_resolving_says_the_root_and_the_way_down_without_a_look_at_the_disk(boundary, ground):
    place = boundary.resolve("not/there")
    assert (place.root.path, place.parts, place.path) == (
        str(ground.root),
        ("not", "there"),
        f"{ground.root}/not/there",
    )
    assert boundary.resolve(str(ground.root)).relative == "."


@pytest.mark.parametrize(
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
def test_what_cannot_be_a_path_is_refused_in_words(boundary, path, words):
    for action in (boundary.open_read, boundary.stat, boundary.list_directory, boundary.remove, boundary.resolve):
        with pytest.raises(BadPath, match=words) as caught:
            action(path)
        assert len(str(caught.value)) < 300
    with pytest.raises(BadPath):
        boundary.write_bytes(path, b"")


def test_a_name_that_is_too_long_for_the_disk_is_a_problem(boundary):
    with pytest.raises(FileProblem, match="too long"):
        boundary.write_bytes("n" * 300, b"")


def test_a_name_that_begins_with_a_tilde_can_be_written(boundary):
    boundary.write_bytes("./~draft", b"x")
    assert boundary.read_bytes("./~draft", 1) == b"x"


def test_the_message_of_a_refusal_names_the_path_the_roots_and_the_next_step(boundary, ground):
    with pytest.raises(OutsideBoundary) as caught:
        boundary.resolve("/etc/passwd")
    assert str(caught.value) == (
        f"/etc/passwd is outside {ground.root} and {ground.second}; "
        "use a path inside, or ask the person to add that directory to the session"
    )
    assert (caught.value.path, caught.value.roots) == ("/etc/passwd", (str(ground.root), str(ground.second)))


@pytest.mark.parametrize("root", ["relative", "", "~/x", "/does/not/exist", "/etc/passwd", "/a\0b"])
def test_a_root_must_be_an_absolute_directory_that_exists(root):
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


def test_a_link_may_lead_from_one_root_into_another(boundary, ground):
    (ground.root / "climbing").symlink_to("../second/other.txt")
    (ground.root / "absolute").symlink_to(ground.second / "other.txt")
    for path in ("climbing", "absolute"):
        assert boundary.read_bytes(path, LIMIT) == b"other\n"
        assert boundary.stat(path).st_size == 6
