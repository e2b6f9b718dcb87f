"""`dragoman completion` prints scripts that shells take, and bash completes with it."""

import shutil
import subprocess

import pytest

from dragoman.cli import COMMANDS
from dragoman.cli.completion import main, read_commands


def script(shell, capsys):
    assert main([shell]) == 0
    return capsys.readouterr().out


def complete(script, *words):
    """Return what bash offers for the last of these words."""
    given = " ".join(f'"{word}"' for word in words)
    ask = f'COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _dragoman; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands(capsys):
    bash = script("bash", capsys)
    assert set(complete(bash, "dragoman", "")) == {*COMMANDS, "--help", "--version"}
    assert complete(bash, "dragoman", "sess") == ["sessions"]


def test_bash_completes_options_and_what_they_take(capsys, tmp_path):
    bash = script("bash", capsys)
    assert complete(bash, "dragoman", "sessions", "export", "--fo") == ["--format"]
    assert complete(bash, "dragoman", "sessions", "export", "--format", "m") == ["markdown"]
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert complete(bash, "dragoman", "sessions", "--cwd", f"{tmp_path}/f") == [f"{tmp_path}/folder"]
    assert set(complete(bash, "dragoman", "sessions", "--out", f"{tmp_path}/f")) == {
        f"{tmp_path}/folder",
        f"{tmp_path}/file",
    }


def test_bash_completes_the_word_after_a_command(capsys):
    bash = script("bash", capsys)
    assert complete(bash, "dragoman", "mcp", "a") == ["add"]
    assert complete(bash, "dragoman", "sessions", "ex") == ["export"]
    assert complete(bash, "dragoman", "completion", "z") == ["zsh"]


def test_options_of_subcommands_are_known():
    mcp = next(command for command in read_commands() if command.name == "mcp")
    assert {"--json", "--header", "--sse"} <= {option.name for option in mcp.options}


def test_every_command_has_options_and_none_is_started():
    assert [command.name for command in read_commands()] == list(COMMANDS)
    for command in read_commands():
        assert "--help" in {option.name for option in command.options}, command.name


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_every_command_and_their_options(shell, capsys):
    text = script(shell, capsys)
    assert all(name in text for name in COMMANDS)
    assert "format" in text
    assert "markdown json html" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_takes_its_script(shell, capsys, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(script(shell, capsys))
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["csh"])
    assert caught.value.code == 2
    assert "bash" in capsys.readouterr().err
