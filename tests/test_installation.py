"""The command that adds an extra is the one for the way in which dragoman was installed."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from dragoman.installation import Installation, how_to_add

ROOT = Path(__file__).parent.parent
WHEEL = "dragoman-0.1.0-py3-none-any.whl"


@pytest.fixture
def installed(tmp_path):
    def make(*, origin=None, has_pip=True, prefix=tmp_path, python="/opt/python"):
        return Installation(prefix=prefix, python=python, origin=origin, has_pip=has_pip)

    return make


def test_pip_of_the_same_python_installs_from_the_index(installed):
    assert str(installed().instruction("groq")) == 'install it with: /opt/python -m pip install "dragoman[groq]"'


def test_an_environment_without_pip_is_that_of_uv(installed):
    made = str(installed(has_pip=False).instruction("groq"))
    assert made == 'install it with: uv pip install --python /opt/python "dragoman[groq]"'


def test_a_checkout_stays_editable(installed):
    origin = {"url": "file:///home/my%20code/dragoman", "dir_info": {"editable": True}}
    made = str(installed(origin=origin).instruction("groq"))
    assert made == 'install it with: /opt/python -m pip install -e "/home/my code/dragoman[groq]"'


def test_a_wheel_is_installed_again_as_long_as_it_is_there(installed, tmp_path):
    wheel = tmp_path / WHEEL
    wheel.touch()
    made = installed(origin={"url": wheel.as_uri(), "archive_info": {}})
    assert str(made.instruction("groq")).endswith(f'pip install "dragoman[groq] @ {wheel.as_uri()}"')
    wheel.unlink()
    assert str(made.instruction("groq")).endswith('pip install "dragoman[groq]"')


def test_a_repository_is_named_with_its_revision(installed):
    address = {"url": "https://git.example/dragoman", "vcs_info": {"vcs": "git", "requested_revision": "v1"}}
    made = str(installed(origin=address).instruction("groq"))
    assert made.endswith('pip install "dragoman[groq] @ git+https://git.example/dragoman@v1"')


def test_a_tool_of_uv_keeps_the_extras_that_it_has(installed, tmp_path):
    receipt = '[tool]\nrequirements = [{ name = "dragoman", extras = ["search"] }, { name = "rich" }]\n'
    (tmp_path / "uv-receipt.toml").write_text(receipt)
    assert str(installed().instruction("groq")) == 'install it with: uv tool install "dragoman[groq,search]"'


@pytest.mark.parametrize(
    ("asked_for", "extras"), [("dragoman", "groq"), ("dragoman[search, local]", "groq,local,search"), ("x.whl", "groq")]
)
def test_pipx_installs_anew_with_the_extras_that_it_has(asked_for, extras, installed, tmp_path):
    receipt = {"main_package": {"package_or_url": asked_for}}
    (tmp_path / "pipx_metadata.json").write_text(json.dumps(receipt))
    assert str(installed().instruction("groq")) == f'install it with: pipx install --force "dragoman[{extras}]"'


def test_uvx_is_started_with_the_extra_because_its_environment_is_a_cache(installed, tmp_path):
    made = str(installed(prefix=tmp_path / "archive-v0" / "aW57RrH3bhuAH6Nb").instruction("groq"))
    assert made == 'start dragoman with it: uvx --from "dragoman[groq]" dragoman'


def test_a_configuration_gets_uvx_where_that_made_the_environment(installed, tmp_path):
    assert installed().uvx_command() is None
    wheel = tmp_path / WHEEL
    wheel.touch()
    cache = tmp_path / "archive-v0" / "aW57RrH3bhuAH6Nb"
    uvx = shutil.which("uvx") or "uvx"
    assert installed(prefix=cache).uvx_command() == [uvx, "dragoman"]
    made = installed(prefix=cache, origin={"url": wheel.as_uri(), "archive_info": {}})
    assert made.uvx_command() == [uvx, "--from", f"dragoman @ {wheel.as_uri()}", "dragoman"]


@pytest.mark.parametrize("python", ["/opt/python", "/my code/python", "/$HOME/py`thon`", '/it\'s/a "python"!'])
def test_every_shell_takes_the_words_as_they_are_meant(python, installed, tmp_path):
    made = str(installed(python=python, prefix=tmp_path).instruction("groq"))
    command = made.removeprefix("install it with: ")
    for shell in filter(shutil.which, ("sh", "bash", "dash", "zsh", "fish")):
        done = subprocess.run([shell, "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [python, "-m", "pip", "install", "dragoman[groq]"], shell


def test_every_extra_is_on_the_page_about_installing():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "install.md").read_text()
    assert [extra for extra in project["optional-dependencies"] if f"`{extra}`" not in page] == []


def test_no_message_has_a_command_that_is_true_for_one_way_of_installing_alone():
    for file in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"(install|inject) \S*dragoman\[", file.read_text()), file


def test_this_installation_says_how_an_extra_is_added():
    assert "[groq]" in how_to_add("groq")
