"""`dragoman completion` prints scripts that shells accept, and bash completes with its script."""

import shutil
import subprocess

import pytest

from dragoman.cli import COMMANDS, main
from dragoman.cli.completion import list_completions


def script(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.fixture
def bash(capsys):
    """Return bash's completions of the last word."""
    text = script("bash", capsys)

    def complete(*words):
        given = " ".join(f'"{word}"' for word in words)
        ask = f'COMP_WORDS=(dragoman {given}); COMP_CWORD={len(words)}; _dragoman; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", f"{text}\n{ask}"], capture_output=True, text=True, timeout=30, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return complete


def test_bash_completes_commands(bash):
    assert set(bash("")) == {*COMMANDS, "--help", "--version"}
    assert bash("sess") == ["sessions"]


def test_bash_completes_options_and_their_values(bash, tmp_path):
    assert bash("sessions", "export", "--fo") == ["--format"]
    assert bash("sessions", "export", "--format", "m") == ["markdown"]
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert bash("sessions", "--cwd", f"{tmp_path}/f") == [f"{tmp_path}/folder"]
    assert set(bash("sessions", "--output", f"{tmp_path}/f")) == {f"{tmp_path}/folder", f"{tmp_path}/file"}


def test_bash_completes_the_word_after_a_command(bash):
    assert bash("mcp", "a") == ["add"]
    assert bash("sessions", "ex") == ["export"]
    assert bash("completion", "z") == ["zsh"]


def test_bash_completes_only_the_options_of_the_action(bash):
    assert bash("mcp", "add", "one", "--h") == ["--help", "--header"]
    assert bash("mcp", "--h") == ["--help"]
    assert bash("check", "trace", "--ro") == ["--role"]
    assert bash("check", "agent", "--ro") == []
    assert bash("check", "agent", "--no-capability", "t") == ["terminal"]


def test_bash_does_not_complete_the_agents_command(bash):
    assert bash("run", "hi", "--", "agent", "--mo") == []


def test_every_command_has_options_and_none_is_started():
    assert [command.name for command in list_completions()] == list(COMMANDS)
    for command in list_completions():
        assert "--help" in {option.name for option in command.options}, command.name


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_command_and_option(shell, capsys):
    text = script(shell, capsys)
    assert all(name in text for name in COMMANDS)
    assert "text json markdown html" in text
    assert "mcp add" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_accepts_its_script(shell, capsys, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(script(shell, capsys))
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["completion", "csh"])
    assert caught.value.code == 2
    assert "there is no shell 'csh'; did you mean zsh?" in capsys.readouterr().err
