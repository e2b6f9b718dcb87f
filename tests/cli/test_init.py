"""`dragoman init` writes a file that is never in the way, and snippets that editors understand."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.assistant.profile import Profile
from dragoman.cli import main as run_command
from dragoman.cli.commands import EDITORS
from dragoman.cli.init import agent_command, snippets
from tests.assistant.profile.finding import first_profile
from tests.commands import DRAGOMAN, dragoman


def main(arguments):
    """Run the command in this process."""
    return run_command(["init", *arguments])


COMMAND = ['/opt/my "dragoman"/bin/dragöman', "agent"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_commented_file_is_written_that_changes_nothing(here, capsys):
    assert main([]) == 0
    assert str(here / "dragoman.yaml") in capsys.readouterr().out
    assert first_profile(None, str(here), here / "home").profile == Profile()
    assert stat.S_IMODE((here / "dragoman.yaml").stat().st_mode) == 0o600


def test_a_file_that_is_there_is_left_alone(here, capsys):
    (here / "dragoman.yaml").write_text("model: mine")
    assert main([]) == 1
    assert "is there already; it is left as it is" in capsys.readouterr().err
    assert (here / "dragoman.yaml").read_text() == "model: mine"


def test_a_link_to_nowhere_is_not_followed(here):
    (here / "dragoman.yaml").symlink_to(here / "elsewhere")
    assert main([]) == 1
    assert not (here / "elsewhere").exists()


def test_the_file_can_be_written_to_the_home(here, monkeypatch, capsys):
    monkeypatch.setenv("DRAGOMAN_HOME", str(here / "new/home"))
    assert main(["--home", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(here / "new/home/dragoman.yaml")}
    assert (here / "new/home/dragoman.yaml").exists()
    assert not (here / "dragoman.yaml").exists()


def test_a_place_that_cannot_be_written_is_an_error(here, monkeypatch, capsys):
    (here / "file").write_text("")
    monkeypatch.setenv("DRAGOMAN_HOME", str(here / "file"))
    assert main(["--home"]) == 1
    file = here / "file"
    assert capsys.readouterr().err == (
        f"dragoman init: {file}, where dragoman keeps its sessions and settings, is no directory; "
        "move that away, or have DRAGOMAN_HOME name a directory\n"
    )


@pytest.mark.parametrize("arguments", [["--editor", "ed"], ["--home", "--editor", "zed"], ["--force"]])
def test_a_wrong_command_line_is_refused(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize("editor", EDITORS)
def test_a_snippet_goes_to_stdout_and_where_it_goes_to_stderr(editor, here, capsys):
    assert main(["--editor", editor]) == 0
    shown = capsys.readouterr()
    for snippet in snippets(editor, agent_command()):
        assert snippet.text in shown.out
        assert f"add this to {snippet.file}; it needs {snippet.needs}, or later." in shown.err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("editor", EDITORS)
def test_a_program_can_read_the_snippets(editor, capsys):
    assert main(["--editor", editor, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["editor"], result["command"]) == (editor, agent_command())
    assert result["snippets"]


@pytest.mark.parametrize("editor", ["zed", "jetbrains"])
def test_a_json_snippet_names_the_command(editor):
    [snippet] = snippets(editor, COMMAND)
    server = json.loads(snippet.text)["agent_servers"]["dragoman"]
    assert [server["command"], *server["args"]] == COMMAND
    assert server.get("type") == {"zed": "custom"}.get(editor)


def test_a_lua_or_lisp_snippet_quotes_the_command():
    for snippet in [*snippets("neovim", COMMAND), *snippets("emacs", COMMAND)]:
        assert r'"/opt/my \"dragoman\"/bin/dragöman"' in snippet.text
        assert all(snippet.text.count(left) == snippet.text.count(right) for left, right in ["()", "{}"])


@pytest.mark.parametrize(("editor", "mark"), [("neovim", "--"), ("emacs", ";;")])
def test_a_comment_over_a_snippet_says_what_it_is_for_and_what_it_needs(editor, mark):
    for snippet in snippets(editor, COMMAND):
        comment = snippet.text.split("\n")[0]
        assert comment == f"{mark} For {snippet.needs}, or later."
        assert snippet.product in comment


def test_emacs_is_given_a_function_that_makes_the_configuration():
    [snippet] = snippets("emacs", COMMAND)
    assert "(defun dragoman-agent-config ()" in snippet.text
    assert "(add-to-list 'agent-shell-agent-configs #'dragoman-agent-config)" in snippet.text


@pytest.mark.skipif(not shutil.which("luac"), reason="Lua is not here to judge its snippets")
def test_lua_takes_its_snippets(tmp_path):
    for snippet in snippets("neovim", COMMAND):
        (tmp_path / "s.lua").write_text(snippet.text)
        subprocess.run(["luac", "-p", tmp_path / "s.lua"], check=True)


def test_the_command_is_the_script_beside_this_python(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert agent_command() == [str(tmp_path / "python"), "-m", "dragoman", "agent"]
    script = tmp_path / "dragoman"
    script.touch(0o755)
    assert agent_command() == [str(script), "agent"]


def test_the_schema_of_the_agent_file_is_printed(tmp_path):
    done = subprocess.run([*DRAGOMAN, "init", "--schema"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "permissions" in json.loads(done.stdout)["properties"]
    assert list(tmp_path.iterdir()) == []


def test_the_command_starts_an_agent():
    request = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(agent_command(), input=request, capture_output=True, text=True, timeout=30, check=False)
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1


def test_settings_follow_the_configuration_home_of_the_person(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    assert snippets("zed", COMMAND)[0].file == "/c/zed/settings.json"
    assert {snippet.file for snippet in snippets("neovim", COMMAND)} == {"/c/nvim/init.lua"}
    monkeypatch.setattr(sys, "platform", "darwin")
    assert snippets("zed", COMMAND)[0].file == "~/.config/zed/settings.json"


def test_the_documentation_knows_every_editor_and_its_json_is_json():
    page = (Path(__file__).parents[2] / "docs/editors.md").read_text()
    assert all(f"| `{editor}` |" in page for editor in EDITORS)
    for version in (word for editor in EDITORS for each in snippets(editor, COMMAND) for word in each.needs.split()):
        assert not version[0].isdigit() or version in page
    shown = json.loads(page.split("```json\n")[1].split("```")[0])
    [made] = snippets("zed", [shown["agent_servers"]["dragoman"]["command"], "agent"])
    assert json.loads(made.text) == shown


def test_the_owner_alone_may_read_the_file_whatever_the_umask(here):
    before = os.umask(0)
    try:
        main([])
    finally:
        os.umask(before)
    assert stat.S_IMODE((here / "dragoman.yaml").stat().st_mode) == 0o600


def test_an_editor_is_told_to_attach_to_a_bridge(tmp_path):
    token = tmp_path / "token"
    shown = dragoman("init", "--editor", "zed", "--url", "https://host:8421", "--token-file", str(token))
    entry = json.loads(shown.stdout)["agent_servers"]["dragoman"]
    assert entry["args"][-4:] == ["attach", "https://host:8421", "--token-file", str(token)]
    assert dragoman("init", "--url", "https://host:8421", cwd=tmp_path).returncode == 2
    assert dragoman("init", "--editor", "zed", "--token-file", str(token)).returncode == 2
