"""The files that a command names. Approving the command means approving their current content.

The same command may do something else tomorrow, because a script that it names was rewritten (CVE-2026-32978). So each
word that names a regular file inside the session's directories is part of the approval, however the program uses
it: `./run.sh`, `timeout 5 sh run.sh`, `make -f x.mk`, `--config=x.toml`, `< x`.

A command that cannot be read with certainty is approved only once, never permanently. `plain_command` has the grammar
and `programs` the known programs. The same applies if a command names too much, or may run a file that the command
before it created (`make && ./prog`).

This does not see files that a program or script loads itself (a makefile, package.json, an imported module). It binds
an approval to the files that it sees, and is not a sandbox.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dragoman.assistant.tools.named_files import NamedFiles, ancestors
from dragoman.assistant.tools.plain_command import PlainCommand, UnclearCommandError, parse
from dragoman.assistant.tools.programs import Program, find_program

MAX_DEPTH = 3
"""How deeply shell texts may be nested."""

MAX_MENTIONS = 1_000
"""Parts of an unclear command that are tried as files. Most commands have a few."""

PROGRAM_DIRECTORIES = ("node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin")
"""Directories of a project in which `npx`, `uv run` and similar tools look up programs."""

_MENTION = re.compile(r"[^\s'\"`;|&()<>$\\*?\[\]{}#!]+")


class Binding(msgspec.Struct, frozen=True):
    """The digest to which an approval is bound, besides the command's text and directory."""

    digest: str = ""
    """The digest of the named files and their paths. Empty if there are none."""
    certain: bool = True
    """Whether the programs are certain. If not, the command may be allowed once, but not permanently."""


def bind(command: str, cwd: str, roots: Sequence[str]) -> Binding:
    """Return the binding of an approval for a command in a directory. Reads files, so call it in a thread."""
    files = NamedFiles(roots)
    try:
        _Survey(cwd, files).follow(parse(command))
        return Binding(files.digest())
    except UnclearCommandError:
        return Binding(_digest_mentions(command, cwd, NamedFiles(roots)), certain=False)


def _digest_mentions(command: str, cwd: str, files: NamedFiles) -> str:
    """Bind an unclear command as far as possible, so that most changes between question and run are noticed."""
    for mention in list(dict.fromkeys(_MENTION.findall(command)))[:MAX_MENTIONS]:
        try:
            files.collect([mention], [cwd])
        except UnclearCommandError:
            continue
    return files.digest()


class _Survey:
    """Follows the commands of a text in order, with the directories in which each may run."""

    def __init__(self, cwd: str, files: NamedFiles) -> None:
        self._cwd = cwd
        self._files = files
        self._current: list[str] = [cwd]
        """The directories in which the current command may run."""
        self._possible: list[str] = [cwd]
        """The directories in which any command so far may have run."""
        self._written = False
        """Whether an earlier command may have written files."""

    def follow(self, commands: Sequence[PlainCommand], depth: int = 0) -> None:
        """Collect the files of these commands. Raises UnclearCommandError."""
        if depth > MAX_DEPTH:
            raise UnclearCommandError("shell commands are nested in each other")
        for command in commands:
            if command.joined_by not in ("", "&&"):
                self._current = list(self._possible)
            if command.words[0] == "cd":
                self._change_directory(command)
            else:
                self._look_at(command, find_program(command), depth)

    def _change_directory(self, command: PlainCommand) -> None:
        """Follow `cd`. A command after `&&` runs there. Any other may also run in the earlier directories."""
        target = command.words[1] if len(command.words) == 2 else ""
        has_more = (
            command.assignments or command.inputs or command.outputs or "|" in (command.joined_by, command.followed_by)
        )
        if has_more or not target or target.startswith("-") or ".." in target.split("/") or os.environ.get("CDPATH"):
            raise UnclearCommandError("cannot tell which directory cd would change to")
        there = self._places(target)
        self._possible = list(dict.fromkeys([*self._possible, *there]))
        # In `cd a || cd b && c`, c may run in a: the second cd is skipped.
        certain = command.followed_by == "&&" and command.joined_by != "||"
        self._current = there if certain else list(self._possible)

    def _look_at(self, command: PlainCommand, program: Program, depth: int) -> None:
        # Bind every file that a word may name. Then check the cases that binding does not cover: files that an earlier
        # command created, missing scripts, and modules that Python would find in the project.
        words = [*program.words, *command.assignments, *command.inputs]
        any_files, named = self._files.collect(words, self._current, self._searched(), whole=program.inert)
        if self._written and not program.inert:
            self._check_not_made(program, any_files=any_files or bool(command.inputs or program.modules))
        for script in program.scripts:
            if not all(map(os.path.isfile, self._places(script))):
                raise UnclearCommandError(f"the script {script} does not exist")
        for module in program.modules:
            _check_not_in(module, [*self._current, *named])
        for target in command.outputs:
            for place in self._places(target):
                self._files.add_target(place)
        for text in program.texts:
            self._follow_text(text, named, depth + 1)
        self._written |= program.writes

    def _follow_text(self, text: str, named: Sequence[str], depth: int) -> None:
        """Follow a shell text, which may run in a directory that another word names: `env -C sub sh -c ./x`."""
        current, possible = self._current, self._possible
        self._current, self._possible = [*current, *named], [*possible, *named]
        self.follow(parse(text), depth)
        self._current, self._possible = current, possible

    def _check_not_made(self, program: Program, *, any_files: bool) -> None:
        """Raise if a word may run a file that an earlier command created. A plain name that is not a file may pass."""
        paths = [word for word in program.words if "." in word or "/" in word]
        if any_files or not all(os.path.isdir(place) for path in paths for place in self._places(path)):  # noqa: PTH112 -- faster for text
            raise UnclearCommandError(f"{program.words[0]} may run a file that was just created")

    def _searched(self) -> Iterator[str]:
        """Yield the directories inside the project that are searched for programs. Raises UnclearCommandError."""
        for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
            if not os.path.isabs(entry):  # noqa: PTH117 -- a Path would turn "" into "."
                raise UnclearCommandError("PATH contains a directory of the project")
            if self._files.is_inside(entry) or self._files.is_inside(os.path.realpath(entry)):
                yield entry
        parents = [path for path in ancestors(self._cwd) if self._files.is_inside(path)]
        for directory in dict.fromkeys([*self._current, *parents]):
            yield from filter(os.path.isdir, (f"{directory}/{name}" for name in PROGRAM_DIRECTORIES))

    def _places(self, path: str) -> list[str]:
        return [os.path.join(directory, path) for directory in self._current]  # noqa: PTH118 -- the kernel resolves links


def _check_not_in(module: str, directories: Iterable[str]) -> None:
    """Raise if Python would find the module in the project."""
    top = module.partition(".")[0]
    for directory in directories:
        for place in (directory, f"{directory}/src", f"{directory}/lib"):
            if any(name.partition(".")[0] == top for name in _list(place)):
                raise UnclearCommandError(f"the module {module} is in the project")


def _list(directory: str) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 -- names, not paths
    except OSError:
        return []
