"""`dragoman init --kit NAME` writes a project whose own tests pass."""

import json
import os
import subprocess
import sys
import tomllib

import pytest

from dragoman.cli.init.kit import KitProblem, write_project


def run(*command, cwd, home):
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_tests_of_the_project_pass(tmp_path):
    done = run("-m", "dragoman", "init", "--kit", "my-notes", cwd=tmp_path, home=tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Wrote {tmp_path / 'my-notes'}: my_notes_agent.py, ")
    project = tmp_path / "my-notes"
    tested = run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project, home=tmp_path / "home")
    assert tested.returncode == 0, tested.stdout
    assert "2 passed" in tested.stdout


def test_the_command_of_the_project_is_the_agent_and_the_readme_has_the_entry_for_an_editor(tmp_path):
    project = write_project(tmp_path, "my-notes")
    declared = tomllib.loads((project.directory / "pyproject.toml").read_text())["project"]
    assert declared["scripts"] == {"my-notes-agent": "my_notes_agent:agent.run"}
    readme = (project.directory / "README.md").read_text()
    entry = json.loads(readme.partition("```json\n")[2].partition("```")[0])["agent_servers"]["my-notes"]
    assert entry["args"] == [str(project.directory / "my_notes_agent.py")]
    assert "$" not in "".join((project.directory / file).read_text() for file in project.files)


def test_a_program_gets_the_files_as_json(tmp_path):
    done = run("-m", "dragoman", "init", "--kit", "a", "--format", "json", cwd=tmp_path, home=tmp_path / "home")
    told = json.loads(done.stdout)
    assert told["path"] == str(tmp_path / "a")
    assert all((tmp_path / "a" / file).is_file() for file in told["files"])


@pytest.mark.parametrize("name", ["My-Notes", "../up", "a--b", "1st", "", "a_b", "-x"])
def test_a_name_that_cannot_be_a_package_is_refused_and_nothing_is_written(name, tmp_path):
    with pytest.raises(KitProblem, match="small letters"):
        write_project(tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_there_is_left_as_it_is(tmp_path):
    (tmp_path / "notes").mkdir()
    with pytest.raises(KitProblem, match="is there already"):
        write_project(tmp_path, "notes")
    assert not list((tmp_path / "notes").iterdir())


def test_a_place_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(KitProblem, match="cannot write"):
        write_project(tmp_path / "file", "notes")
