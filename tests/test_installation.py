"""The command that adds an extra fits the way in which dragoman was installed."""

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


def test_pip_of_the_same_python_is_the_default(installed):
    assert str(installed().instruction("groq")) == 'install it with: /opt/python -m pip install "dragoman[groq]"'


def test_environment_without_pip_uses_uv(installed):
    made = str(installed(has_pip=False).instruction("groq"))
    assert made == 'install it with: uv pip install --python /opt/python "dragoman[groq]"'


def test_checkout_stays_editable(installed):
    origin = {"url": "file:///home/my%20code/dragoman", "dir_info": {"editable": True}}
    made = str(installed(origin=origin).instruction("groq"))
    assert made == 'install it with: /opt/python -m pip install -e "/home/my code/dragoman[groq]"'


def test_existing_wheel_is_installed_again(installed, tmp_path):
    wheel = tmp_path / WHEEL
    wheel.touch()
    made = installed(origin={"url": wheel.as_uri(), "archive_info": {}})
    assert str(made.instruction("groq")).endswith(f'pip install "dragoman[groq] @ {wheel.as_uri()}"')
    wheel.unlink()
    assert str(made.instruction("groq")).endswith('pip install "dragoman[groq]"')


def test_repository_is_named_with_its_revision(installed):
    address = {"url": "https://git.example/dragoman", "vcs_info": {"vcs": "git", "requested_revision": "v1"}}
    made = str(installed(origin=address).instruction("groq"))
    assert made.endswith('pip install "dragoman[groq] @ git+https://git.example/dragoman@v1"')


def test_uv_tool_keeps_its_extras(installed, tmp_path):
    receipt = '[tool]\nrequirements = [{ name = "dragoman", extras = ["search"] }, { name = "rich" }]\n'
    (tmp_path / "uv-receipt.toml").write_text(receipt)
    assert str(installed().instruction("groq")) == 'install it with: uv tool install "dragoman[groq,search]"'


@pytest.mark.parametrize(
    ("asked_for", "extras"), [("dragoman", "groq"), ("dragoman[search, local]", "groq,local,search"), ("x.whl", "groq")]
)
def test_pipx_reinstalls_with_its_extras(asked_for, extras, installed, tmp_path):
    receipt = {"main_package": {"package_or_url": asked_for}}
    (tmp_path / "pipx_metadata.json").write_text(json.dumps(receipt))
    assert str(installed().instruction("groq")) == f'install it with: pipx install --force "dragoman[{extras}]"'


def test_uvx_is_restarted_with_the_extra(installed, tmp_path):
    made = str(installed(prefix=tmp_path / "archive-v0" / "aW57RrH3bhuAH6Nb").instruction("groq"))
    assert made == 'start dragoman with this command: uvx --from "dragoman[groq]" dragoman'


def test_configuration_uses_uvx_in_its_environment(installed, tmp_path):
    assert installed().uvx_command() is None
    wheel = tmp_path / WHEEL
    wheel.touch()
    cache = tmp_path / "archive-v0" / "aW57RrH3bhuAH6Nb"
    uvx = shutil.which("uvx") or "uvx"
    assert installed(prefix=cache).uvx_command() == [uvx, "dragoman"]
    made = installed(prefix=cache, origin={"url": wheel.as_uri(), "archive_info": {}})
    assert made.uvx_command() == [uvx, "--from", f"dragoman @ {wheel.as_uri()}", "dragoman"]


@pytest.mark.parametrize("python", ["/opt/python", "/my code/python", "/$HOME/py`thon`", '/it\'s/a "python"!'])
def test_every_shell_parses_the_command_correctly(python, installed, tmp_path):
    made = str(installed(python=python, prefix=tmp_path).instruction("groq"))
    command = made.removeprefix("install it with: ")
    for shell in filter(shutil.which, ("sh", "bash", "dash", "zsh", "fish")):
        done = subprocess.run([shell, "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [python, "-m", "pip", "install", "dragoman[groq]"], shell


def test_every_extra_is_in_the_install_docs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "install.md").read_text()
    assert [extra for extra in project["optional-dependencies"] if f"`{extra}`" not in page] == []


def test_no_message_names_the_command_of_only_one_installer():
    for file in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"(install|inject) \S*dragoman\[", file.read_text()), file


def test_this_installation_has_an_instruction():
    assert "[groq]" in how_to_add("groq")
