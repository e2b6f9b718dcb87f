"""`dragoman mcp add` and `remove` change the agent file and nothing else in it."""

import json
from pathlib import Path

import pytest

from dragoman.assistant.profile.profile import parse_profile
from dragoman.cli import main as run_command
from tests.assistant.profile.finding import first_profile
from tests.mcp.servers.commands import scripted


def main(arguments):
    """Run the command in this process."""
    return run_command(["mcp", *arguments])


CANARY = "canary-4711"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_added_server_is_in_the_file(here, home, capsys):
    assert main(["add", "one", "--include", "manual", "--", *scripted()]) == 0
    assert f"Added one to {home / 'dragoman.yaml'}." in capsys.readouterr().out
    assert main(["--format", "json"]) == 0
    [server] = json.loads(capsys.readouterr().out)["servers"]
    assert (server["state"], server["tools"][0]["include"]) == ("ready", "manual")


def test_server_at_a_url_is_added_with_its_headers(here, home, capsys):
    arguments = ["add", "one", "--header", "Authorization=env://TOKEN", "--sse", "https://one.example/sse"]
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    [server] = first_profile(None, str(here), home).profile.servers
    assert (server.transport, server.url) == ("sse", "https://one.example/sse")
    assert server.headers["Authorization"].variable == "TOKEN"


def test_server_with_its_own_directories_is_added_without_roots(here, home):
    assert main(["add", "one", "--no-roots", "--", "some-server", "/data"]) == 0
    [server] = first_profile(None, str(here), home).profile.servers
    assert not server.definition().roots


def test_rest_of_the_file_is_unchanged(here, capsys):
    text = "# mine\nmodel: ollama:qwen3  # small\n"
    (here / "dragoman.yaml").write_text(text)
    assert main(["add", "one", "--", "some-server"]) == 0
    printed = capsys.readouterr().out
    assert f"Added one to {here / 'dragoman.yaml'}." in printed
    assert "the next session here asks you to approve it" in printed
    assert (here / "dragoman.yaml").read_text().startswith(text)
    assert main(["remove", "one"]) == 0
    assert f"Removed one from {here / 'dragoman.yaml'}." in capsys.readouterr().out
    assert parse_profile((here / "dragoman.yaml").read_text(), here / "dragoman.yaml").servers == ()
    assert (here / "dragoman.yaml").read_text().startswith(text)


def test_file_can_be_named(here, home):
    assert main(["add", "one", "--agent", "mine.yaml", "--", "some-server"]) == 0
    assert [server.name for server in first_profile(Path("mine.yaml"), str(here), home).profile.servers] == ["one"]
    assert main(["remove", "--agent", "mine.yaml", "one"]) == 0
    assert list(home.iterdir()) == []


def test_folder_means_the_file_in_it(here, home):
    (here / "mine").mkdir()
    assert main(["add", "one", "--agent", "mine", "--", "some-server"]) == 0
    assert "some-server" in (here / "mine/dragoman.yaml").read_text()
    assert main(["remove", "--agent", "mine", "one"]) == 0
    assert list(home.iterdir()) == []


def test_missing_home_is_created(here, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(here / "new/home"))
    assert main(["add", "one", "--", "some-server"]) == 0
    assert (here / "new/home/dragoman.yaml").exists()


def test_home_that_cannot_be_created_is_reported(here, monkeypatch, capsys):
    (here / "file").write_text("")
    monkeypatch.setenv("DRAGOMAN_HOME", str(here / "file/home"))
    assert run_command(["mcp", "add", "one", "--", "some-server"]) == 1
    assert f"cannot be created, because {here / 'file'} is not a directory" in capsys.readouterr().err


def test_relative_command_is_made_absolute(here, home):
    main(["add", "one", "--", "./bin/server", "./data"])
    [server] = first_profile(None, str(here), home).profile.servers
    assert server.command == str(here / "bin/server")
    assert [argument.shown for argument in server.args] == ["./data"]


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["--env", f"API-KEY={CANARY}", "--", "x"], "--env API-KEY=env://API_KEY"),
        (["--header", f"X-Key={CANARY}", "https://a"], "--header X-Key=env://X_KEY"),
        ([f"https://a/?key={CANARY}"], "pass secrets with --header"),
    ],
)
def test_typed_secret_causes_a_warning_without_repeating_it(arguments, advice, here, capsys):
    assert main(["add", "one", *arguments]) == 0
    printed = capsys.readouterr()
    assert advice in printed.err
    assert CANARY not in printed.out + printed.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["add"],
        ["add", "one"],
        ["add", "one", "--"],
        ["add", "one", "https://a", "--", "x"],
        ["add", "one", "--env", "A", "--", "x"],
        ["add", "one", "--env", "A=b", "https://a"],
        ["add", "one", "--header", "A=b", "--", "x"],
        ["add", "one", "--sse", "--", "x"],
        ["add", "one", "--include", "never", "--", "x"],
        ["remove"],
        ["remove", "one", "two"],
    ],
)
def test_unclear_edit_is_refused(arguments, here, home):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert list(home.iterdir()) == []


def test_impossible_edit_leaves_the_file_unchanged(here, home, capsys):
    (home / "dragoman.yaml").write_text("mcpServers: {one: {command: x}}")
    before = (home / "dragoman.yaml").read_bytes()
    for arguments, words in [
        (["add", "one", "--", "y"], "it already has a server one"),
        (["add", "two", "ftp://a"], "expected an http or https address"),
        (["remove", "two"], "it has no server two; its servers are: one"),
    ]:
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    assert (home / "dragoman.yaml").read_bytes() == before


def test_invalid_file_is_not_edited(here, capsys):
    (here / "dragoman.yaml").write_text("nonsense: true")
    assert main(["add", "one", "--", "x"]) == 2
    assert "nonsense: unknown key" in capsys.readouterr().err


def test_new_file_does_not_hide_a_tsagent_file(here, home, capsys):
    (home / "tsagent.yaml").write_text("settings: {}\nmetadata: {}\n")
    assert main(["add", "one", "--", "x"]) == 1
    assert f"{home / 'tsagent.yaml'} is the current agent file and would no longer be used" in capsys.readouterr().err
    assert not (home / "dragoman.yaml").exists()
