"""`dragoman init` writes a file without side effects, and `dragoman schema` prints its schema."""

import json
import os
import stat
import subprocess

import pytest

from dragoman.assistant.profile import Profile
from dragoman.cli import main as run_command
from tests.assistant.profile.finding import first_profile
from tests.commands import DRAGOMAN


def main(arguments):
    """Run the command in this process."""
    return run_command(["init", *arguments])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commented_file_without_any_effect_is_written(here, capsys):
    assert main([]) == 0
    assert str(here / "dragoman.yaml") in capsys.readouterr().out
    assert first_profile(None, str(here), here / "home").profile == Profile()
    assert stat.S_IMODE((here / "dragoman.yaml").stat().st_mode) == 0o600


def test_existing_file_is_not_changed(here, capsys):
    (here / "dragoman.yaml").write_text("model: mine")
    assert main([]) == 1
    assert "already exists and was not changed" in capsys.readouterr().err
    assert (here / "dragoman.yaml").read_text() == "model: mine"


def test_dangling_link_is_not_followed(here):
    (here / "dragoman.yaml").symlink_to(here / "elsewhere")
    assert main([]) == 1
    assert not (here / "elsewhere").exists()


def test_file_can_be_written_to_the_home(here, monkeypatch, capsys):
    monkeypatch.setenv("DRAGOMAN_HOME", str(here / "new/home"))
    assert main(["--home", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(here / "new/home/dragoman.yaml")}
    assert (here / "new/home/dragoman.yaml").exists()
    assert not (here / "dragoman.yaml").exists()


def test_unwritable_place_is_an_error(here, monkeypatch, capsys):
    (here / "file").write_text("")
    monkeypatch.setenv("DRAGOMAN_HOME", str(here / "file"))
    assert main(["--home"]) == 1
    file = here / "file"
    assert capsys.readouterr().err == (
        f"dragoman init: {file}, where dragoman stores its sessions and settings, is not a directory; "
        "move that away, or set DRAGOMAN_HOME to a directory\n"
    )


@pytest.mark.parametrize("arguments", [["--editor", "zed"], ["--schema"], ["--force"]])
def test_invalid_command_line_is_refused(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_schema_of_the_agent_file_is_printed(tmp_path):
    done = subprocess.run([*DRAGOMAN, "schema"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "permissions" in json.loads(done.stdout)["properties"]
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_may_read_the_file_with_any_umask(here):
    before = os.umask(0)
    try:
        main([])
    finally:
        os.umask(before)
    assert stat.S_IMODE((here / "dragoman.yaml").stat().st_mode) == 0o600
