"""`dragoman new NAME` writes a project whose own tests pass."""

import json
import os
import subprocess
import sys
import tomllib

import pytest

from dragoman.cli.new.project import ProjectError, write_project


def run(*command, cwd, home):
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.extended
def test_tests_of_the_project_pass(tmp_path):
    done = run("-m", "dragoman", "new", "my-notes", cwd=tmp_path, home=tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Wrote {tmp_path / 'my-notes'}: my_notes_agent.py, ")
    project = tmp_path / "my-notes"
    tested = run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project, home=tmp_path / "home")
    assert tested.returncode == 0, tested.stdout
    assert "2 passed" in tested.stdout


def test_project_command_is_the_agent_and_readme_has_the_editor_entry(tmp_path):
    project = write_project(tmp_path, "my-notes")
    declared = tomllib.loads((project.directory / "pyproject.toml").read_text())["project"]
    assert declared["scripts"] == {"my-notes-agent": "my_notes_agent:agent.run"}
    readme = (project.directory / "README.md").read_text()
    entry = json.loads(readme.partition("```json\n")[2].partition("```")[0])["agent_servers"]["my-notes"]
    assert entry["args"] == [str(project.directory / "my_notes_agent.py")]
    assert "$" not in "".join((project.directory / file).read_text() for file in project.files)


def test_files_are_available_as_json(tmp_path):
    done = run("-m", "dragoman", "new", "a", "--format", "json", cwd=tmp_path, home=tmp_path / "home")
    result = json.loads(done.stdout)
    assert result["path"] == str(tmp_path / "a")
    assert all((tmp_path / "a" / file).is_file() for file in result["files"])


@pytest.mark.parametrize("name", ["My-Notes", "../up", "a--b", "1st", "", "a_b", "-x"])
def test_name_that_cannot_be_a_package_is_refused(name, tmp_path):
    with pytest.raises(ProjectError, match="lower-case letters"):
        write_project(tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_existing_directory_is_not_changed(tmp_path):
    (tmp_path / "notes").mkdir()
    with pytest.raises(ProjectError, match="already exists"):
        write_project(tmp_path, "notes")
    assert not list((tmp_path / "notes").iterdir())


def test_unwritable_place_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ProjectError, match="cannot write"):
        write_project(tmp_path / "file", "notes")
