"""`dragoman completion`: print a script that completes our commands, their actions and their options.

The script is generated once from the parsers. Asking us at every Tab would start Python each time.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from dragoman.cli import COMMANDS
from dragoman.cli.commands import build_parser
from dragoman.cli.parser import CommandParser

ArgumentKind = Literal["none", "any", "file", "directory"]


class OptionCompletion(msgspec.Struct, frozen=True):
    """An option and the kind of its argument."""

    name: str
    argument: ArgumentKind
    choices: tuple[str, ...] = ()
    help: str = ""


class CommandCompletion(msgspec.Struct, frozen=True):
    """A command or one of its actions, with its options and the words that can come first."""

    name: str
    """`mcp`, or `mcp add`."""
    options: tuple[OptionCompletion, ...]
    words: Mapping[str, str] = {}
    actions: tuple["CommandCompletion", ...] = ()


def main(options: argparse.Namespace) -> int:
    """Print the completion script."""
    print(_SCRIPTS[options.shell](list_completions()), end="")
    return 0


def list_completions() -> list[CommandCompletion]:
    """Return the completions of all commands."""
    return [_read_parser(build_parser(name)) for name in COMMANDS]


def _read_parser(parser: CommandParser) -> CommandCompletion:
    return CommandCompletion(
        parser.name,
        tuple(_read_option(name, action) for action in parser.options() for name in _long_names(action)),
        parser.words,
        tuple(map(_read_parser, parser.actions.values())),
    )


def _long_names(action: argparse.Action) -> list[str]:
    return [name for name in action.option_strings if name.startswith("--")]


def _read_option(name: str, action: argparse.Action) -> OptionCompletion:
    kinds: dict[object, ArgumentKind] = {"FILE": "file", "DIR": "directory"}
    kind = "none" if action.nargs == 0 else kinds.get(action.metavar, "any")
    return OptionCompletion(name, kind, tuple(map(str, action.choices or ())), action.help or "")


def _with_actions(commands: Sequence[CommandCompletion]) -> Iterator[CommandCompletion]:
    for command in commands:
        yield command
        yield from command.actions


def _bash(commands: Sequence[CommandCompletion]) -> str:
    everything = list(_with_actions(commands))
    cases = "\n".join(map(_bash_case, everything))
    values = "\n".join(line for command in everything for line in _bash_values(command))
    actions = "|".join(f'"{action.name}"' for command in commands for action in command.actions)
    return f"""# dragoman completion bash >> ~/.bashrc
_dragoman() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
    local first=2 i
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W "{" ".join(command.name for command in commands)} --help --version" -- "$word"))
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        [[ ${{COMP_WORDS[i]}} == -- ]] && return
    done
    if [[ $COMP_CWORD -gt 2 ]]; then
        case "$command ${{COMP_WORDS[2]}}" in
            {actions}) command="$command ${{COMP_WORDS[2]}}"; first=3 ;;
        esac
    fi
    case "$command $before" in
{values}
    esac
    local options="" words=""
    case "$command" in
{cases}
    esac
    if [[ $COMP_CWORD -eq $first && $word != -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    fi
}}
complete -o default -F _dragoman dragoman
"""


def _bash_case(command: CommandCompletion) -> str:
    options = " ".join(option.name for option in command.options)
    return f'        "{command.name}") options="{options}"; words="{" ".join(command.words)}" ;;'


def _bash_values(command: CommandCompletion) -> Iterator[str]:
    for option in command.options:
        if option.argument != "none":
            files = "-d" if option.argument == "directory" else "-f"
            source = f'-W "{" ".join(option.choices)}"' if option.choices else files
            pattern = f'        "{command.name} {option.name}")'
            yield f'{pattern} COMPREPLY=($(compgen {source} -- "$word")); return ;;'


def _zsh(commands: Sequence[CommandCompletion]) -> str:
    names = "\n".join(f"        {_quote(f'{name}:{text}')}" for name, text in COMMANDS.items())
    cases = "\n".join(line for command in commands for line in _zsh_case(command))
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
    if (( CURRENT > 2 )); then
        case "$command $words[2]" in
            {"|".join(f'"{action.name}"' for command in commands for action in command.actions)})
                command="$command $words[2]"
                shift words
                (( CURRENT-- ))
                ;;
        esac
    fi
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


def _zsh_case(command: CommandCompletion) -> Iterator[str]:
    specs = [_quote(_zsh_spec(option)) for option in command.options]
    if command.words:
        specs.append(_quote(f"1:word:({' '.join(command.words)})"))
    yield f"        {_quote(command.name)}) _arguments {' '.join([*specs, _quote('*:file:_files')])} ;;"
    for action in command.actions:
        yield from _zsh_case(action)


def _zsh_spec(option: OptionCompletion) -> str:
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    takes = {"none": "", "any": ":value: ", "file": ":file:_files", "directory": ":directory:_files -/"}
    value = f":value:({' '.join(option.choices)})" if option.choices else takes[option.argument]
    return f"*{option.name}[{text}]{value}"


def _fish(commands: Sequence[CommandCompletion]) -> str:
    lines = [
        "# dragoman completion fish > ~/.config/fish/completions/dragoman.fish",
        "function __dragoman_at",
        "    set -l given (commandline -opc)",
        "    set -e given[1]",
        "    set -l wanted (count $argv)",
        "    test $wanted -eq 0; and return 0",
        "    test (count $given) -ge $wanted; or return 1",
        "    set -l start $given[1..$wanted]",
        '    test "$start" = "$argv"',
        "end",
        "function __dragoman_next",
        "    __dragoman_at $argv; and test (count (commandline -opc)) -eq (math (count $argv) + 1)",
        "end",
    ]
    lines += [
        f"complete -c dragoman -f -n __dragoman_next -a {name} -d {_quote(text)}" for name, text in COMMANDS.items()
    ]
    for command in _with_actions(commands):
        lines += _fish_lines(command)
    return "\n".join(lines) + "\n"


def _fish_lines(command: CommandCompletion) -> Iterator[str]:
    for word, text in command.words.items():
        yield f"complete -c dragoman -f -n '__dragoman_next {command.name}' -a {word} -d {_quote(text)}"
    not_below = "".join(f"; and not __dragoman_at {action.name}" for action in command.actions)
    when = f"-n '__dragoman_at {command.name}{not_below}'"
    takes = {"none": "", "any": " -x", "file": " -r", "directory": " -x -a '(__fish_complete_directories)'"}
    for option in command.options:
        value = f" -x -a {_quote(' '.join(option.choices))}" if option.choices else takes[option.argument]
        yield f"complete -c dragoman {when} -l {option.name[2:]}{value} -d {_quote(option.help)}"


def _quote(text: str) -> str:
    """Quote a text for bash, zsh and fish."""
    return "'" + text.replace("'", "'\\''") + "'"


_SCRIPTS: Mapping[str, Callable[[Sequence[CommandCompletion]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
