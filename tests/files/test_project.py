"""The files of a project that a person can mention."""

import pytest

from dragoman.files import FileLists, PathError, list_files, match_files


@pytest.fixture
def project(tmp_path):
    for path in (
        "README.md",
        "src/app/main.py",
        "src/app/domain.py",
        "build/out.o",
        "src/kept.log",
        ".env",
        ".git/config",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    (tmp_path / "src" / ".gitignore").write_text("!kept.log\n")
    (tmp_path / "src" / "link.py").symlink_to("/etc/passwd")
    return tmp_path


def test_hidden_and_ignored_files_and_links_are_left_out_and_near_ones_come_first(project):
    listed = list_files(str(project))
    assert listed.paths == ["README.md", "src/kept.log", "src/app/domain.py", "src/app/main.py"]
    assert listed.is_whole


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("Main", ["src/app/main.py", "src/app/domain.py"]),
        ("app/", ["src/app/domain.py", "src/app/main.py"]),
        ("sdp", ["src/app/domain.py"]),
        ("zzz", []),
    ],
)
def test_a_name_counts_before_a_part_and_a_part_before_letters_in_order(project, typed, found):
    assert match_files(list_files(str(project)), typed, 10) == found


def test_a_list_has_its_bounds_and_says_so(project):
    listed = list_files(str(project), max_files=2)
    assert (len(listed.paths), listed.is_whole) == (2, False)
    assert not list_files(str(project), timeout_s=-1).is_whole
    with pytest.raises(PathError):
        list_files(str(project / "none"))


def test_a_list_is_kept_for_a_while(project):
    lists = FileLists(fresh_s=1000, max_kept=1)
    before = lists.of(str(project))
    (project / "later.txt").write_text("x")
    assert lists.of(str(project)) is before
    lists.of(str(project / "src"))
    assert "later.txt" in lists.of(str(project)).paths
