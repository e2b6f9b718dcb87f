"""`dragoman completion`: a script that lets a shell complete our commands and their options.

What there is to complete is read from what each command's parser says for `--help`, once, when the script is printed:
a shell that asked us at every Tab would wait for Python every time.
"""

import argparse
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from typing import Literal

import msgspec

from dragoman.cli import COMMANDS

SUBCOMMANDS = {"check": ("agent", "client", "trace", "matrix"), "mcp": ("add", "remove")}
"""Words after a command that have options, and a help, of their own."""

WIDE = "1000"
"""Columns: wide enough that no line of help is wrapped."""

_OPTION = re.compile(r"^  (?:-\w(?: \S+)?, )?(--[a-z][a-z-]*)(?: (\{[^}]*\}|\S+))?(?:  +(.*))?$")

Argument = Literal["none", "any", "file", "directory"]


class Option(msgspec.Struct, frozen=True):
    """An option of a command."""

    name: str
    argument: Argument
    choices: tuple[str, ...] = ()
    help: str = ""


class Command(msgspec.Struct, frozen=True):
    """A command: its options, and the words that may come first."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...] = ()


def main(argv: Sequence[str]) -> int:
    """Print the script."""
    shell: str = _parser().parse_args(argv).shell
    print(_SHELLS[shell](read_commands()), end="")
    return 0


def read_commands() -> list[Command]:
    """Ask each command what it takes."""
    return [Command(name, text, tuple(_options(name)), tuple(_words(name))) for name, text in COMMANDS.items()]


def _options(name: str) -> Iterator[Option]:
    seen: set[str] = set()
    for page in [[], *([word] for word in SUBCOMMANDS.get(name, ()))]:
        for line in _help(name, page).splitlines():
            found = _OPTION.match(line)
            if found and found[1] not in seen:
                seen.add(found[1])
                yield _option(found[1], found[2] or "", found[3] or "")


def _option(name: str, metavar: str, text: str) -> Option:
    if metavar.startswith("{"):
        return Option(name, "any", tuple(metavar.strip("{}").split(",")), text)
    kinds: dict[str, Argument] = {"": "none", "FILE": "file", "DIR": "directory"}
    return Option(name, kinds.get(metavar, "any"), (), text)


def _words(name: str) -> Sequence[str]:
    if name == "sessions":
        from dragoman.cli.sessions import ACTIONS

        return tuple(ACTIONS)
    return tuple(_SHELLS) if name == "completion" else SUBCOMMANDS.get(name, ())


def _help(name: str, words: Sequence[str]) -> str:
    command: Callable[[Sequence[str]], int] = import_module(f"dragoman.cli.{name}").main
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDE
    try:
        with redirect_stdout(io.StringIO()) as said, suppress(SystemExit):
            command([*words, "--help"])
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
    return said.getvalue()


def _bash(commands: Sequence[Command]) -> str:
    cases = "\n".join(_bash_case(command) for command in commands)
    values = "\n".join(line for command in commands for line in _bash_values(command))
    return f"""# dragoman completion bash >> ~/.bashrc
_dragoman() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W "{" ".join(command.name for command in commands)} --help --version" -- "$word"))
        return
    fi
    case "$command $before" in
{values}
    esac
    local options="" words=""
    case "$command" in
{cases}
    esac
    if [[ $COMP_CWORD -eq 2 && $word != -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    fi
}}
complete -o default -F _dragoman dragoman
"""


def _bash_case(command: Command) -> str:
    options = " ".join(option.name for option in command.options)
    return f'        {command.name}) options="{options}"; words="{" ".join(command.words)}" ;;'


def _bash_values(command: Command) -> Iterator[str]:
    for option in command.options:
        if option.argument != "none":
            files = "-d" if option.argument == "directory" else "-f"
            source = f'-W "{" ".join(option.choices)}"' if option.choices else files
            pattern = f'        "{command.name} {option.name}")'
            yield f'{pattern} COMPREPLY=($(compgen {source} -- "$word")); return ;;'


def _zsh(commands: Sequence[Command]) -> str:
    names = "\n".join(f"        {_quote(f'{command.name}:{command.help}')}" for command in commands)
    cases = "\n".join(_zsh_case(command) for command in commands)
    return f"""#compdef dragoman
# dragoman completion zsh > "${{fpath[1]}}/_dragoman"
_dragoman() {{
    local -a commands
    commands=(
{names}
    )
    if (( CURRENT == 2 )); then
        _describe 'command' commands
        return
    fi
    local command="$words[2]"
    shift words
    (( CURRENT-- ))
    case "$command" in
{cases}
    esac
}}
if [[ $funcstack[1] == _dragoman ]]; then
    _dragoman "$@"
else
    compdef _dragoman dragoman
fi
"""


def _zsh_case(command: Command) -> str:
    specs = [_quote(_zsh_spec(option)) for option in command.options]
    if command.words:
        specs.append(_quote(f"1:word:({' '.join(command.words)})"))
    return f"        {command.name}) _arguments {' '.join([*specs, _quote('*:file:_files')])} ;;"


def _zsh_spec(option: Option) -> str:
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    takes = {"none": "", "any": ":value: ", "file": ":file:_files", "directory": ":directory:_files -/"}
    value = f":value:({' '.join(option.choices)})" if option.choices else takes[option.argument]
    return f"*{option.name}[{text}]{value}"


def _fish(commands: Sequence[Command]) -> str:
    lines = ["# dragoman completion fish > ~/.config/fish/completions/dragoman.fish"]
    first = "__fish_use_subcommand"
    lines += [f"complete -c dragoman -f -n {first} -a {name} -d {_quote(text)}" for name, text in COMMANDS.items()]
    for command in commands:
        when = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c dragoman -f {when} -a {_quote(' '.join(command.words))}")
        for option in command.options:
            takes = {"none": "", "any": " -x", "file": " -r", "directory": " -x -a '(__fish_complete_directories)'"}
            value = f" -x -a {_quote(' '.join(option.choices))}" if option.choices else takes[option.argument]
            lines.append(f"complete -c dragoman {when} -l {option.name[2:]}{value} -d {_quote(option.help)}")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """Quote a text so that each of the shells takes it as it is."""
    return "'" + text.replace("'", "'\\''") + "'"


_SHELLS: Mapping[str, Callable[[Sequence[Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman completion",
        description="Print a script that lets a shell complete dragoman's commands and their options.",
        epilog="bash: dragoman completion bash >> ~/.bashrc. zsh: dragoman completion zsh > _dragoman, in a directory "
        "of $fpath. fish: dragoman completion fish > ~/.config/fish/completions/dragoman.fish.",
    )
    parser.add_argument("shell", choices=list(_SHELLS), help="for which shell")
    return parser
