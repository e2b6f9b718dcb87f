"""`dragoman mcp add` and `remove` change the agent file, and nothing else in it."""

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


def test_a_server_that_is_added_is_there(here, home, capsys):
    assert main(["add", "one", "--include", "manual", "--", *scripted()]) == 0
    assert f"Added one to {home / 'dragoman.yaml'}." in capsys.readouterr().out
    assert main(["--json"]) == 0
    [server] = json.loads(capsys.readouterr().out)["servers"]
    assert (server["state"], server["tools"][0]["include"]) == ("ready", "manual")


def test_a_server_at_an_address_is_added_with_its_headers(here, home, capsys):
    arguments = ["add", "one", "--header", "Authorization=env://TOKEN", "--sse", "https://one.example/sse"]
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    [server] = first_profile(None, str(here), home).profile.servers
    assert (server.transport, server.url) == ("sse", "https://one.example/sse")
    assert server.headers["Authorization"].variable == "TOKEN"


def test_a_server_with_directories_of_its_own_is_added_without_roots(here, home):
    assert main(["add", "one", "--no-roots", "--", "some-server", "/data"]) == 0
    [server] = first_profile(None, str(here), home).profile.servers
    assert not server.definition().roots


def test_what_else_is_in_the_file_stays(here, capsys):
    text = "# mine\nmodel: ollama:qwen3  # small\n"
    (here / "dragoman.yaml").write_text(text)
    assert main(["add", "one", "--", "some-server"]) == 0
    told = capsys.readouterr().out
    assert f"Added one to {here / 'dragoman.yaml'}." in told
    assert "a session here asks you to agree to it" in told
    assert (here / "dragoman.yaml").read_text().startswith(text)
    assert main(["remove", "one"]) == 0
    assert f"Removed one from {here / 'dragoman.yaml'}." in capsys.readouterr().out
    assert parse_profile((here / "dragoman.yaml").read_text(), here / "dragoman.yaml").servers == ()
    assert (here / "dragoman.yaml").read_text().startswith(text)


def test_the_file_can_be_named(here, home):
    assert main(["add", "one", "--agent", "mine.yaml", "--", "some-server"]) == 0
    assert [server.name for server in first_profile(Path("mine.yaml"), str(here), home).profile.servers] == ["one"]
    assert main(["remove", "--agent", "mine.yaml", "one"]) == 0
    assert list(home.iterdir()) == []


def test_the_home_is_made_when_there_is_none(here, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(here / "new/home"))
    assert main(["add", "one", "--", "some-server"]) == 0
    assert (here / "new/home/dragoman.yaml").exists()


def test_a_home_that_cannot_be_made_is_said(here, monkeypatch, capsys):
    (here / "file").write_text("")
    monkeypatch.setenv("DRAGOMAN_HOME", str(here / "file/home"))
    assert run_command(["mcp", "add", "one", "--", "some-server"]) == 1
    assert f"cannot be made, because {here / 'file'} is no directory" in capsys.readouterr().err


def test_a_relative_command_means_the_same_program_in_the_file(here, home):
    main(["add", "one", "--", "./bin/server", "./data"])
    [server] = first_profile(None, str(here), home).profile.servers
    assert server.command == str(here / "bin/server")
    assert [argument.shown for argument in server.args] == ["./data"]


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["--env", f"API-KEY={CANARY}", "--", "x"], "--env API-KEY=env://API_KEY"),
        (["--header", f"X-Key={CANARY}", "https://a"], "--header X-Key=env://X_KEY"),
        ([f"https://a/?key={CANARY}"], "a secret is better given with --header"),
    ],
)
def test_a_secret_that_was_typed_is_warned_of_and_not_repeated(arguments, advice, here, capsys):
    assert main(["add", "one", *arguments]) == 0
    told = capsys.readouterr()
    assert advice in told.err
    assert CANARY not in told.out + told.err


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
def test_an_edit_that_is_not_clear_is_refused(arguments, here, home):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert list(home.iterdir()) == []


def test_an_edit_that_cannot_be_made_leaves_the_file(here, home, capsys):
    (home / "dragoman.yaml").write_text("mcpServers: {one: {command: x}}")
    before = (home / "dragoman.yaml").read_bytes()
    for arguments, words in [
        (["add", "one", "--", "y"], "it has a server one already"),
        (["add", "two", "ftp://a"], "expected an http or https address"),
        (["remove", "two"], "it has no server two; its servers are: one"),
    ]:
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    assert (home / "dragoman.yaml").read_bytes() == before


def test_a_file_that_is_wrong_already_is_not_edited(here, capsys):
    (here / "dragoman.yaml").write_text("nonsense: true")
    assert main(["add", "one", "--", "x"]) == 2
    assert "nonsense: unknown key" in capsys.readouterr().err


def test_no_new_file_puts_one_of_tsagent_out_of_use(here, home, capsys):
    (home / "tsagent.yaml").write_text("settings: {}\nmetadata: {}\n")
    assert main(["add", "one", "--", "x"]) == 1
    assert f"{home / 'tsagent.yaml'} counts now, and would not any more" in capsys.readouterr().err
    assert not (home / "dragoman.yaml").exists()
