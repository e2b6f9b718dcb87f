"""The files of a project that the user can mention."""

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


def test_project_list_omits_hidden_and_ignored_files_and_links(project):
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
def test_matches_rank_name_before_part_before_letters(project, typed, found):
    assert match_files(list_files(str(project)), typed, 10) == found


def test_truncated_list_is_not_whole(project):
    listed = list_files(str(project), max_files=2)
    assert (len(listed.paths), listed.is_whole) == (2, False)
    assert not list_files(str(project), timeout_s=-1).is_whole
    with pytest.raises(PathError):
        list_files(str(project / "none"))


def test_list_is_cached_for_a_short_time(project):
    lists = FileLists(fresh_s=1000, max_kept=1)
    before = lists.get(str(project))
    (project / "later.txt").write_text("x")
    assert lists.get(str(project)) is before
    lists.get(str(project / "src"))
    assert "later.txt" in lists.get(str(project)).paths
