"""Replacing a file by its path, all or nothing, with the requested mode."""

import os
import stat

import pytest

from dragoman.files.replacement import replace_file


def test_exclusive_write_does_not_overwrite_a_new_file(tmp_path):
    file = tmp_path / "dragoman.yaml"
    file.write_text("model: theirs\n")
    with pytest.raises(FileExistsError):
        replace_file(file, b"model: ours\n", mode=0o600, exclusive=True)
    assert file.read_text() == "model: theirs\n"
    assert os.listdir(tmp_path) == ["dragoman.yaml"]


@pytest.mark.parametrize("exclusive", [False, True])
def test_replaced_file_has_the_requested_mode_and_leaves_no_temporary_file(tmp_path, exclusive):
    file = tmp_path / "file"
    replace_file(file, b"content", mode=0o640, exclusive=exclusive)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"content", 0o640)
    assert os.listdir(tmp_path) == ["file"]


def test_link_is_replaced_and_its_target_is_unchanged(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("stays")
    link.symlink_to(target)
    replace_file(link, b"new", mode=0o600)
    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("stays", "new", False)
