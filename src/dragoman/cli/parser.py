"""The parser of one command: argparse plus actions, `-- CMD` and "did you mean"."""

import argparse
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from dragoman.cli.options import describe_unknown
from dragoman.text import clean_text

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class CommandParser(argparse.ArgumentParser):
    """Parses the command line of a command or one of its actions.

    Options can be before, between and after the positional arguments. If the command accepts another command, it is
    everything after the first `--`. `options.command` has it, and is None without `--`.
    """

    def __init__(
        self,
        name: str,
        description: str,
        usage: str = "[OPTIONS]",
        epilog: str = "",
        *,
        takes_command: bool = False,
        needs_action: bool = False,
    ) -> None:
        lines = "\n       ".join(f"dragoman {name} {line}".rstrip() for line in usage.split("\n"))
        super().__init__(prog=f"dragoman {name}", usage=lines, description=description, allow_abbrev=False)
        self.name = name
        self.actions: dict[str, CommandParser] = {}
        """The parsers of the actions, by the word that selects each."""
        self.words: Mapping[str, str] = {}
        """Words that can come first, with their descriptions."""
        self._closing = epilog
        self._takes_command = takes_command
        self._needs_action = needs_action

    def add_action(self, word: str, summary: str, parser: "CommandParser") -> None:
        """Add the parser of an action."""
        self.actions[word] = parser
        self.words = {**self.words, word: summary}

    def read(self, arguments: Sequence[str]) -> tuple["CommandParser", argparse.Namespace]:
        """Return the options and the parser that read them. Exits the process if the command line is wrong."""
        first = arguments[0] if arguments else ""
        if first in self.actions:
            return self.actions[first].read(arguments[1:])
        if self.actions and first and not first.startswith("-"):
            self.error(describe_unknown("action", first, self.actions))
        own, command = self._split(arguments)
        options, rest = self.parse_known_intermixed_args(own)
        if self._needs_action:
            self.error(f"no action given; expected one of {', '.join(self.actions)}")
        if rest:
            self._refuse(rest)
        options.action = getattr(options, "action", None) or self.name.partition(" ")[2]
        options.command = command
        return self, options

    def format_help(self) -> str:
        """Return the help of argparse, then the actions and the epilog."""
        width = shutil.get_terminal_size().columns - 2
        parts = [super().format_help().rstrip()]
        if self.words:
            longest = max(map(len, self.words))
            parts.append(
                "\n".join(["actions:", *(f"  {word:<{longest}}  {does}" for word, does in self.words.items())])
            )
        if self._closing:
            parts.append(textwrap.fill(self._closing, width))
        return "\n\n".join(parts) + "\n"

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Print the help. Unlike argparse, raise BrokenPipeError if the reader of stdout is gone."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        """Print the usage and the problem, and exit with code 2. The message may quote a file."""
        super().error(clean_text(message))

    def options(self) -> list[argparse.Action]:
        """Return the options that the help shows."""
        return [action for action in self.all_options() if action.help != argparse.SUPPRESS]

    def all_options(self) -> list[argparse.Action]:
        """Return every option, including options that the help hides."""
        # argparse has no public way to list them. Completers such as argcomplete and shtab read this attribute as well.
        return [action for action in self._actions if action.option_strings]

    def _split(self, arguments: Sequence[str]) -> tuple[Sequence[str], list[str] | None]:
        if not self._takes_command or "--" not in arguments:
            return arguments, None
        cut = arguments.index("--")
        return arguments[:cut], list(arguments[cut + 1 :])

    def _refuse(self, rest: Sequence[str]) -> NoReturn:
        word = next((word for word in rest if word.startswith("-")), rest[0]).partition("=")[0]
        if word.startswith("--") and word != "--":
            names = [name for option in self.options() for name in option.option_strings if name.startswith("--")]
            self.error(f"{describe_unknown('option', word, names)}")
        takes_prompt = any(action.metavar == "PROMPT" for action in self._actions)
        step = "put a prompt of several words in quotes" if takes_prompt else f"run {self.prog} --help"
        self.error(f"{word!r} is not expected here; {step}")
