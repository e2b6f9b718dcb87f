"""The files that a command names: approving the command is approving their present content.

A command whose text is the same may do something else tomorrow, because a script that it names was rewritten
(CVE-2026-32978). So each word that names a regular file inside the session's directories is part of what is approved,
whatever the program does with it: `./run.sh`, `timeout 5 sh run.sh`, `make -f x.mk`, `--config=x.toml`, `< x`.

What is not read with certainty is approved once and never for good: see `plain_command` for the grammar and `programs`
for what is known of programs. The same holds when a command names too much, and when what it runs may have been made by
the command before it (`make && ./prog`).

It does not see the files that a program or a script loads in turn (a makefile, package.json, an imported module). It
binds an approval to the files that it sees; it is no sandbox.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dragoman.assistant.tools.named_files import NamedFiles, ancestors
from dragoman.assistant.tools.plain_command import PlainCommand, UnclearCommand, parse
from dragoman.assistant.tools.programs import Program, find_program

MAX_DEPTH = 3
"""Of texts for shells in each other."""

MAX_MENTIONS = 1_000
"""Parts of a command that is not understood that may be files; most have a few."""

PROGRAM_DIRECTORIES = ("node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin")
"""Where `npx`, `uv run` and their like look up programs, in the project."""

_MENTION = re.compile(r"[^\s'\"`;|&()<>$\\*?\[\]{}#!]+")


class Binding(msgspec.Struct, frozen=True):
    """The digest that an approval of a command is bound to, beside its text and its directory."""

    digest: str = ""
    """Of the files that it names, with their paths; empty when it names none."""
    certain: bool = True
    """Whether the programs of the command are certain; if not, it may be allowed once, and never for good."""


def bind(command: str, cwd: str, roots: Sequence[str]) -> Binding:
    """Find the binding of an approval for a command in a directory; reads files, so not for the event loop."""
    files = NamedFiles(roots)
    try:
        _Survey(cwd, files).follow(parse(command))
        return Binding(files.digest())
    except UnclearCommand:
        return Binding(_digest_mentions(command, cwd, NamedFiles(roots)), certain=False)


def _digest_mentions(command: str, cwd: str, files: NamedFiles) -> str:
    """Bind a command that is not understood as far as possible: most changes between question and run are seen."""
    for mention in list(dict.fromkeys(_MENTION.findall(command)))[:MAX_MENTIONS]:
        try:
            files.collect([mention], [cwd])
        except UnclearCommand:
            continue
    return files.digest()


class _Survey:
    """Goes through the commands of a text in their order, with the directories that each may be in."""

    def __init__(self, cwd: str, files: NamedFiles) -> None:
        self._cwd = cwd
        self._files = files
        self._current: list[str] = [cwd]
        """Where the command at hand may be."""
        self._possible: list[str] = [cwd]
        """Where any command so far may have been."""
        self._written = False
        """Whether a command before may have written files."""

    def follow(self, commands: Sequence[PlainCommand], depth: int = 0) -> None:
        """Note the files of these commands; raises UnclearCommand."""
        if depth > MAX_DEPTH:
            raise UnclearCommand("texts for shells are in each other")
        for command in commands:
            if command.joined_by not in ("", "&&"):
                self._current = list(self._possible)
            if command.words[0] == "cd":
                self._change_directory(command)
            else:
                self._look_at(command, find_program(command), depth)

    def _change_directory(self, command: PlainCommand) -> None:
        """Follow `cd`: a command after its `&&` runs there; any other may run where the commands before did."""
        target = command.words[1] if len(command.words) == 2 else ""
        more = (
            command.assignments or command.inputs or command.outputs or "|" in (command.joined_by, command.followed_by)
        )
        if more or not target or target.startswith("-") or ".." in target.split("/") or os.environ.get("CDPATH"):
            raise UnclearCommand("where cd leads is not clear")
        there = self._places(target)
        self._possible = list(dict.fromkeys([*self._possible, *there]))
        # In `cd a || cd b && c`, c may run in a: the second cd is skipped.
        certain = command.followed_by == "&&" and command.joined_by != "||"
        self._current = there if certain else list(self._possible)

    def _look_at(self, command: PlainCommand, program: Program, depth: int) -> None:
        words = [*program.words, *command.assignments, *command.inputs]
        any_files, named = self._files.collect(words, self._current, self._searched(), whole=program.inert)
        if self._written and not program.inert:
            self._check_not_made(program, any_files=any_files or bool(command.inputs or program.modules))
        for script in program.scripts:
            if not all(map(os.path.isfile, self._places(script))):
                raise UnclearCommand(f"there is no script {script}")
        for module in program.modules:
            _check_not_in(module, [*self._current, *named])
        for target in command.outputs:
            for place in self._places(target):
                self._files.note_target(place)
        for text in program.texts:
            self._follow_text(text, named, depth + 1)
        self._written |= program.writes

    def _follow_text(self, text: str, named: Sequence[str], depth: int) -> None:
        """Follow a text for a shell, which may run in a directory that another word names: `env -C sub sh -c ./x`."""
        current, possible = self._current, self._possible
        self._current, self._possible = [*current, *named], [*possible, *named]
        self.follow(parse(text), depth)
        self._current, self._possible = current, possible

    def _check_not_made(self, program: Program, *, any_files: bool) -> None:
        """Refuse a word that may run a file of an earlier command; a plain name that is no file may pass."""
        paths = [word for word in program.words if "." in word or "/" in word]
        if any_files or not all(os.path.isdir(place) for path in paths for place in self._places(path)):  # noqa: PTH112 -- texts
            raise UnclearCommand(f"{program.words[0]} may run what was made just before")

    def _searched(self) -> Iterator[str]:
        """Give the directories inside where programs are looked up by name; raises UnclearCommand."""
        for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
            if not os.path.isabs(entry):  # noqa: PTH117 -- a Path would turn "" into "."
                raise UnclearCommand("PATH leads into the directory that the command is in")
            if self._files.is_inside(entry) or self._files.is_inside(os.path.realpath(entry)):
                yield entry
        parents = [path for path in ancestors(self._cwd) if self._files.is_inside(path)]
        for directory in dict.fromkeys([*self._current, *parents]):
            yield from filter(os.path.isdir, (f"{directory}/{name}" for name in PROGRAM_DIRECTORIES))

    def _places(self, path: str) -> list[str]:
        return [os.path.join(directory, path) for directory in self._current]  # noqa: PTH118 -- links are for the kernel


def _check_not_in(module: str, directories: Iterable[str]) -> None:
    """Refuse a module that Python would find in the project."""
    top = module.partition(".")[0]
    for directory in directories:
        for place in (directory, f"{directory}/src", f"{directory}/lib"):
            if any(name.partition(".")[0] == top for name in _list(place)):
                raise UnclearCommand(f"the module {module} is in the project")


def _list(directory: str) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 -- names, not paths
    except OSError:
        return []
