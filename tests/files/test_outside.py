"""Reading where no boundary holds."""

import os

import pytest

from dragoman.files import BadPath, FileProblem, NotAFile, TooLarge, open_outside, read_outside


def test_a_file_anywhere_is_read_by_its_absolute_path(tmp_path):
    (tmp_path / "file").write_bytes(b"there")
    (tmp_path / "link").symlink_to("file")
    with open_outside(str(tmp_path / "link")) as file:
        assert file.read() == b"there"
    assert read_outside(str(tmp_path / "file"), 5) == b"there"
    with pytest.raises(TooLarge, match="the limit is 4"):
        read_outside(str(tmp_path / "file"), 4)


@pytest.mark.parametrize("path", ["", "file", "../file", "~/file", "/a\0b"])
def test_only_whole_paths_are_taken(path):
    with pytest.raises(BadPath):
        open_outside(path)


def test_special_files_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero", str(tmp_path)):
        with pytest.raises(NotAFile):
            open_outside(path)
        with pytest.raises(NotAFile):
            read_outside(path, 100)


def test_a_missing_file_is_a_problem():
    with pytest.raises(FileProblem, match="does not exist"):
        open_outside("/no/such/file")
