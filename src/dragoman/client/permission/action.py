"""The action of a tool call, as far as the client can know it.

Requests to the client's own files and terminals are known exactly. For a tool that runs inside the agent there is only
the agent's description. A sign of danger therefore outweighs a claim of harmlessness. A call with a diff is a write and
a call with a command is a run, whatever its kind. A call counts as a read only if its kind says so, it names its files,
and the client understands every other member of its input.
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard, cast
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.files import Boundary, FileAccessError, OutsideBoundaryError, PathError
from dragoman.protocol import v1


class ReadAction(msgspec.Struct, frozen=True):
    """A read of a file or directory. `path` is the target after all links, `root` the session directory around it."""

    path: str
    root: str | None = None


class WriteAction(msgspec.Struct, frozen=True):
    """A write to a file. `path` is the target after all links, `root` the session directory around it."""

    path: str
    root: str | None = None


class RunAction(msgspec.Struct, frozen=True):
    """A run of a shell command. `variables` are the names of the environment variables that the agent sets for it."""

    command: str
    cwd: str | None = None
    variables: tuple[str, ...] = ()


class OpaqueAction(msgspec.Struct, frozen=True):
    """An action that only the agent understands."""

    title: str
    raw_input: Any = None


class ActionGroup(msgspec.Struct, frozen=True):
    """Several actions of one tool call."""

    actions: "tuple[ReadAction | WriteAction | RunAction | OpaqueAction, ...]"


SingleAction = ReadAction | WriteAction | RunAction | OpaqueAction
ToolAction = SingleAction | ActionGroup
"""The action that an agent wants to perform, as far as the client can know it."""

READING = frozenset(("read", "search"))
WRITING = frozenset(("edit", "delete", "move"))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PATHS = _words(
    "path paths file files filename file_path filepath file_paths abs_path absolute_path absolutepath target_file "
    "relative_path old_path new_path directory dir folder root notebook_path uri"
)
_MOVES = _words("source destination from to src dst")
"""Members that hold the paths of a move. In other calls these words can mean anything."""

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
"""Members that restrict a search or select the part of a file to read."""

_MAX_DEPTH = 8
"""Real inputs are not nested deeper. Deeper members count as not understood."""


def find_action(call: ToolCallState, roots: Sequence[str] = ()) -> ToolAction:
    """Return the action of a call in a session with these directories, the cwd first.

    Without directories every path counts as outside.
    """
    try:
        boundary = Boundary(roots) if roots else None
    except PathError:
        boundary = None
    return join(_find(call, boundary))


def join(actions: Iterable[SingleAction]) -> ToolAction:
    """Join actions into one, without duplicates."""
    different: list[SingleAction] = []
    for action in actions:
        if action not in different:
            different.append(action)
    return different[0] if len(different) == 1 else ActionGroup(tuple(different))


def single_actions(action: ToolAction) -> tuple[SingleAction, ...]:
    """Return the single actions that an action consists of."""
    return action.actions if isinstance(action, ActionGroup) else (action,)


def locate(boundary: Boundary, path: str) -> tuple[str, str | None]:
    """Resolve a path through all links, whether its target exists or not. Return the target and the root around it.

    The boundary decides what is inside. It also refuses links below /proc, which have other targets for the agent.
    """
    try:
        boundary.stat(path)
    except OutsideBoundaryError:
        return resolve_path(os.path.join(boundary.roots[0], path)), None  # noqa: PTH118 -- a Path would take `..` for words
    except FileAccessError:
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
    """Return a command as shell text. For `sh -c TEXT` that is TEXT."""
    words = [command, *args]
    match words:
        case [shell, "-c" | "-lc" | "-cl", text] if os.path.basename(shell) in SHELLS:  # noqa: PTH119 -- a word, no file
            return text
        case _:
            return shlex.join(words)


SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))


def _find(call: ToolCallState, boundary: Boundary | None) -> list[SingleAction]:
    """Collect the actions of a call from its content, its locations and its raw input.

    Anything that writes or runs is reported, whatever the kind of the call. Reads count only if nothing in the input
    could do more. A call without a recognizable action is opaque.
    """
    # A kind of "read" is only a claim, so writes and runs are looked for first.
    diffs = [item.path for item in call.content if isinstance(item, v1.Diff)]
    facts = _InputFacts(call.raw_input)
    paths = [*(location.path for location in call.locations), *facts.paths]
    if call.kind in WRITING:
        paths += facts.moves
    actions: list[SingleAction] = [RunAction(command, facts.cwd, tuple(facts.variables)) for command in facts.commands]
    writes = bool(diffs) or call.kind in WRITING
    if writes:
        actions += [WriteAction(*_locate(boundary, path)) for path in (*diffs, *paths)]
    elif paths and call.kind in READING and not facts.commands and facts.understood and _is_plain(call):
        actions += [ReadAction(*_locate(boundary, path)) for path in paths]
    runs_unknown_command = call.kind == "execute" and not facts.commands
    if not actions or runs_unknown_command:
        actions.append(OpaqueAction(call.title, call.raw_input))
    return actions


def _is_plain(call: ToolCallState) -> bool:
    return all(isinstance(item, v1.Content) for item in call.content)


def _locate(boundary: Boundary | None, path: str) -> tuple[str, str | None]:
    if path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    return (path, None) if boundary is None or "://" in path else locate(boundary, path)


def resolve_path(path: str) -> str:
    """Resolve the links of a path. Return the path unchanged if they cannot be followed."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


class _InputFacts:
    """The paths, commands and variables in the raw input of a call, at any depth.

    There is no standard for raw input, so members are recognized by the names that real agents use. `understood` is
    False as soon as one member could mean anything else.
    """

    def __init__(self, raw_input: Any) -> None:
        self.paths: list[str] = []
        self.moves: list[str] = []
        self.commands: list[str] = []
        self.cwd: str | None = None
        self.variables: list[str] = []
        self.understood = raw_input is None or isinstance(raw_input, dict)
        if isinstance(raw_input, dict):
            self._collect(cast("dict[str, Any]", raw_input), 0)

    def _collect(self, members: dict[str, Any], depth: int) -> None:
        # Sort each member into a known group. An unknown member with a value means that the input is not understood,
        # so that the call cannot count as a mere read.
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
                self._collect(cast("dict[str, Any]", item), depth + 1)
            else:
                self.understood = False


def _snake(key: str) -> str:
    """Return a key in snake case. Some agents write `filePath` or `file-path`."""
    if key.startswith("-"):
        return key.lower()
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key).lstrip("_").replace("-", "_")


def _texts(value: Any) -> list[str]:
    """Return a text or a list of texts as a list. Return an empty list for any other value."""
    if isinstance(value, str):
        return [value] if value else []
    return value if _is_words(value) else []


def _commands(value: Any, members: dict[str, Any]) -> list[str]:
    if isinstance(value, str):
        args = next((found for name in _ARGUMENTS if _is_words(found := members.get(name))), None)
        return [value if args is None else command_text(value, args)]
    if _is_words(value):
        return [command_text(value[0], value[1:])]
    return [msgspec.json.encode(value).decode()]


def _is_words(value: Any) -> TypeGuard[list[str]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return bool(items) and all(isinstance(item, str) for item in items)
