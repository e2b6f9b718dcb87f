"""`dragoman editor` prints snippets that editors understand, and writes nothing."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli import main as run_command
from dragoman.cli.commands import EDITORS
from dragoman.cli.editor import agent_command, snippets
from tests.commands import dragoman


def main(*arguments):
    """Run the command in this process."""
    return run_command(["editor", *arguments])


COMMAND = ['/opt/my "dragoman"/bin/dragöman', "agent"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("editor", EDITORS)
def test_snippet_goes_to_stdout_and_its_place_to_stderr(editor, here, capsys):
    assert main(editor) == 0
    shown = capsys.readouterr()
    for snippet in snippets(editor, agent_command()):
        assert snippet.text in shown.out
        assert f"add this to {snippet.file}; requires {snippet.needs} or later." in shown.err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("editor", EDITORS)
def test_snippets_are_available_as_json(editor, capsys):
    assert main(editor, "--format", "json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["editor"], result["command"]) == (editor, agent_command())
    assert result["snippets"]


@pytest.mark.parametrize("editor", ["zed", "jetbrains"])
def test_json_snippet_names_the_command(editor):
    [snippet] = snippets(editor, COMMAND)
    server = json.loads(snippet.text)["agent_servers"]["dragoman"]
    assert [server["command"], *server["args"]] == COMMAND
    assert server.get("type") == {"zed": "custom"}.get(editor)


def test_lua_and_lisp_snippets_quote_the_command():
    for snippet in [*snippets("neovim", COMMAND), *snippets("emacs", COMMAND)]:
        assert r'"/opt/my \"dragoman\"/bin/dragöman"' in snippet.text
        assert all(snippet.text.count(left) == snippet.text.count(right) for left, right in ["()", "{}"])


@pytest.mark.parametrize(("editor", "mark"), [("neovim", "--"), ("emacs", ";;")])
def test_comment_names_product_and_requirements(editor, mark):
    for snippet in snippets(editor, COMMAND):
        comment = snippet.text.split("\n")[0]
        assert comment == f"{mark} For {snippet.needs}, or later."
        assert snippet.product in comment


def test_emacs_gets_a_function_for_the_configuration():
    [snippet] = snippets("emacs", COMMAND)
    assert "(defun dragoman-agent-config ()" in snippet.text
    assert "(add-to-list 'agent-shell-agent-configs #'dragoman-agent-config)" in snippet.text


@pytest.mark.skipif(not shutil.which("luac"), reason="Lua is not here to judge its snippets")
def test_lua_accepts_its_snippets(tmp_path):
    for snippet in snippets("neovim", COMMAND):
        (tmp_path / "s.lua").write_text(snippet.text)
        subprocess.run(["luac", "-p", tmp_path / "s.lua"], check=True)


def test_command_is_the_script_next_to_this_python(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert agent_command() == [str(tmp_path / "python"), "-m", "dragoman", "agent"]
    script = tmp_path / "dragoman"
    script.touch(0o755)
    assert agent_command() == [str(script), "agent"]


def test_command_starts_an_agent():
    request = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(agent_command(), input=request, capture_output=True, text=True, timeout=30, check=False)
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1


def test_settings_follow_xdg_config_home(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    assert snippets("zed", COMMAND)[0].file == "/c/zed/settings.json"
    assert {snippet.file for snippet in snippets("neovim", COMMAND)} == {"/c/nvim/init.lua"}
    monkeypatch.setattr(sys, "platform", "darwin")
    assert snippets("zed", COMMAND)[0].file == "~/.config/zed/settings.json"


def test_documentation_covers_every_editor_with_valid_json():
    page = (Path(__file__).parents[2] / "docs/editors.md").read_text()
    assert all(f"dragoman editor {editor}" in page for editor in EDITORS)
    for version in (word for editor in EDITORS for each in snippets(editor, COMMAND) for word in each.needs.split()):
        assert not version[0].isdigit() or version in page
    shown = json.loads(page.split("```json\n")[1].split("```")[0])
    [made] = snippets("zed", [shown["agent_servers"]["dragoman"]["command"], "agent"])
    assert json.loads(made.text) == shown


def test_editor_can_attach_to_a_bridge(tmp_path):
    token = tmp_path / "token"
    shown = dragoman("editor", "zed", "--url", "https://host:8421", "--token-file", str(token))
    entry = json.loads(shown.stdout)["agent_servers"]["dragoman"]
    assert entry["args"][-4:] == ["attach", "https://host:8421", "--token-file", str(token)]
    assert dragoman("editor", "--url", "https://host:8421").returncode == 2
    assert dragoman("editor", "zed", "--token-file", str(token)).returncode == 2
