"""The action of a tool call, as far as it can be known.

A request to our own files and terminals is known exactly. Of a tool call that runs at the agent there is only the
agent's description, so a sign of danger counts for more than a claim of harmlessness: a diff is a write and a command
is a run, for every kind of call. The kind alone makes no call harmless: a read is a call of that kind that names its
files and whose input has no other member that we do not understand.
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard, cast
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.client.tool_call import ToolCallState
from dragoman.files import Boundary, FileProblem, OutsideBoundary, PathError
from dragoman.protocol import v1


class Read(msgspec.Struct, frozen=True):
    """A file or directory is read; `path` is where it leads to, and `root` the session's directory that holds it."""

    path: str
    root: str | None = None


class Write(msgspec.Struct, frozen=True):
    """A file is written; `path` is where it leads to, and `root` the session's directory that holds it."""

    path: str
    root: str | None = None


class Run(msgspec.Struct, frozen=True):
    """A command is run: a text of the shell; `variables` are the names of those that the agent sets for it."""

    command: str
    cwd: str | None = None
    variables: tuple[str, ...] = ()


class Foreign(msgspec.Struct, frozen=True):
    """Something that only the agent knows."""

    title: str
    raw_input: Any = None


class Several(msgspec.Struct, frozen=True):
    """More than one of them at once."""

    actions: "tuple[Read | Write | Run | Foreign, ...]"

    @property
    def deeds(self) -> "tuple[Read | Write | Run | Foreign, ...]":
        """The former name of `actions`."""
        return self.actions


SingleAction = Read | Write | Run | Foreign
ToolAction = SingleAction | Several
"""What an agent wants to do, as far as it can be known."""

READING = frozenset(("read", "search"))
WRITING = frozenset(("edit", "delete", "move"))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PATHS = _words(
    "path paths file files filename file_path filepath file_paths abs_path absolute_path absolutepath target_file "
    "relative_path old_path new_path directory dir folder root notebook_path uri"
)
_MOVES = _words("source destination from to src dst")
"""Paths of a move; elsewhere such words can mean anything."""

_COMMANDS = _words(
    "command commands cmd cmds cmdline command_line commandline shell shell_command bash script scripts code argv exec "
    "execute executable program eval expression javascript python sql"
)
_ARGUMENTS = ("args", "arguments")
_HARMLESS = _words(
    "offset limit line lines line_start line_end start end start_line end_line line_offset n_lines head tail encoding "
    "pattern query regex regexp glob include exclude case_sensitive case_insensitive ignore_case recursive depth "
    "max_depth max_results max_count head_limit output_mode multiline context before after type "
    "show_line_numbers respect_git_ignore include_hidden description reason explanation -a -b -c -n -i"
)
"""Members that shape a search or choose the part that is read."""

_MAX_DEPTH = 8
"""Real inputs are not nested deeper; members below this are not understood."""


def find_action(call: ToolCallState, roots: Sequence[str] = ()) -> ToolAction:
    """Return the action of a call in a session with these directories, its cwd first; without any, all is outside."""
    try:
        boundary = Boundary(roots) if roots else None
    except PathError:
        boundary = None
    return join(_find(call, boundary))


def join(actions: Iterable[SingleAction]) -> ToolAction:
    """Return one action for all of these, each of them once."""
    different: list[SingleAction] = []
    for action in actions:
        if action not in different:
            different.append(action)
    return different[0] if len(different) == 1 else Several(tuple(different))


def single_actions(action: ToolAction) -> tuple[SingleAction, ...]:
    """Return all that a action consists of."""
    return action.actions if isinstance(action, Several) else (action,)


def locate(boundary: Boundary, path: str) -> tuple[str, str | None]:
    """Follow a path, links and all, to where it leads, there or not; and say which root holds that, if any does.

    The boundary has the word on what is inside: it also refuses the links of /proc, which lead elsewhere for the agent.
    """
    try:
        boundary.stat(path)
    except OutsideBoundary:
        return resolve_path(os.path.join(boundary.roots[0], path)), None  # noqa: PTH118 -- a Path would take `..` for words
    except FileProblem:
        pass
    except PathError:
        return path, None
    real = resolve_path(boundary.resolve(path).path)
    try:
        place = boundary.resolve(real)
    except PathError:
        return real, None
    return os.path.normpath(place.path), place.root.path


def command_text(command: str, args: Sequence[str]) -> str:
    """Return the command as a text of the shell: of `sh -c TEXT` the text itself."""
    words = [command, *args]
    match words:
        case [shell, "-c" | "-lc" | "-cl", text] if os.path.basename(shell) in SHELLS:  # noqa: PTH119 -- a word, no file
            return text
        case _:
            return shlex.join(words)


SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))


def _find(call: ToolCallState, boundary: Boundary | None) -> list[SingleAction]:
    diffs = [item.path for item in call.content if isinstance(item, v1.Diff)]
    said = _Said(call.raw_input)
    paths = [*(location.path for location in call.locations), *said.paths]
    if call.kind in WRITING:
        paths += said.moves
    actions: list[SingleAction] = [Run(command, said.cwd, tuple(said.variables)) for command in said.commands]
    writes = bool(diffs) or call.kind in WRITING
    if writes:
        actions += [Write(*_locate(boundary, path)) for path in (*diffs, *paths)]
    elif paths and call.kind in READING and not said.commands and said.understood and _is_plain(call):
        actions += [Read(*_locate(boundary, path)) for path in paths]
    runs_unseen = call.kind == "execute" and not said.commands
    if not actions or runs_unseen:
        actions.append(Foreign(call.title, call.raw_input))
    return actions


def _is_plain(call: ToolCallState) -> bool:
    return all(isinstance(item, v1.Content) for item in call.content)


def _locate(boundary: Boundary | None, path: str) -> tuple[str, str | None]:
    if path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    return (path, None) if boundary is None or "://" in path else locate(boundary, path)


def resolve_path(path: str) -> str:
    """Follow a path to where it leads; one that cannot be followed stays as it is."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


class _Said:
    """The paths, commands and variables in the raw input of a call, at any depth."""

    def __init__(self, raw_input: Any) -> None:
        self.paths: list[str] = []
        self.moves: list[str] = []
        self.commands: list[str] = []
        self.cwd: str | None = None
        self.variables: list[str] = []
        self.understood = raw_input is None or isinstance(raw_input, dict)
        if isinstance(raw_input, dict):
            self._take(cast("dict[str, Any]", raw_input), 0)

    def _take(self, members: dict[str, Any], depth: int) -> None:
        for key, value in members.items():
            name = _snake(key)
            if name in ("cwd", "workdir", "working_directory"):
                self.cwd = value if isinstance(value, str) else None
            elif name in ("env", "environment") and isinstance(value, dict):
                self.variables += cast("dict[str, Any]", value)
            elif name in _COMMANDS and isinstance(value, (str, list, dict)) and value:
                self.commands += _commands(value, members)
            elif name in _PATHS and (texts := _texts(value)):
                self.paths += texts
            elif isinstance(value, (dict, list)):
                self._descend(cast("dict[str, Any] | list[Any]", value), depth)
            elif name not in _HARMLESS and value not in (None, "", False):
                self.moves += _texts(value) if name in _MOVES else []
                self.understood = False

    def _descend(self, value: dict[str, Any] | list[Any], depth: int) -> None:
        inner: Iterable[Any] = value if isinstance(value, list) else (value,)
        if depth == _MAX_DEPTH:
            self.understood = False
            return
        for item in inner:
            if isinstance(item, dict):
                self._take(cast("dict[str, Any]", item), depth + 1)
            else:
                self.understood = False


def _snake(key: str) -> str:
    """Return a key in snake case: agents write `filePath` and `file-path` as well."""
    if key.startswith("-"):
        return key.lower()
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key).lstrip("_").replace("-", "_")


def _texts(value: Any) -> list[str]:
    """Return a text as a list, or a list of texts as it is; anything else is no text."""
    if isinstance(value, str):
        return [value] if value else []
    return value if _is_words(value) else []


def _commands(value: Any, beside: dict[str, Any]) -> list[str]:
    if isinstance(value, str):
        args = next((found for name in _ARGUMENTS if _is_words(found := beside.get(name))), None)
        return [value if args is None else command_text(value, args)]
    if _is_words(value):
        return [command_text(value[0], value[1:])]
    return [msgspec.json.encode(value).decode()]


def _is_words(value: Any) -> TypeGuard[list[str]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return bool(items) and all(isinstance(item, str) for item in items)
