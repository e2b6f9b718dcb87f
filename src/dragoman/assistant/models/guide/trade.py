"""Which of the tools at hand does what a phrase means, and under which names it takes the phrase's roles."""

import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman.assistant.models.guide.phrase import Phrase
from dragoman.assistant.models.guide.schema import Parameter, misfit, parameters
from dragoman.assistant.models.guide.words import split_words
from dragoman.assistant.models.model import ToolDefinition

PLAN_TOOL = "update_plan"


class Trade(msgspec.Struct, frozen=True):
    """A kind of work: the tool made for it here, words in the names of others, and what it cannot do without."""

    tool: str
    verbs: frozenset[str]
    nouns: frozenset[str]
    needs: tuple[str, ...]


TRADES = {
    "read": Trade("read_file", frozenset(("read", "view", "cat", "open")), frozenset(("file", "text")), ("path",)),
    "list": Trade(
        "list_directory", frozenset(("list", "ls")), frozenset(("directory", "dir", "folder", "files")), ("path",)
    ),
    "search": Trade(
        "search_files",
        frozenset(("search", "grep", "find")),
        frozenset(("file", "files", "code", "text")),
        ("pattern",),
    ),
    "write": Trade("write_file", frozenset(("write", "create", "save")), frozenset(("file",)), ("path", "content")),
    "edit": Trade("edit_file", frozenset(("edit", "replace", "update")), frozenset(("file", "text")), ("path", "old")),
    "run": Trade(
        "run_command",
        frozenset(("run", "execute", "exec", "bash", "shell")),
        frozenset(("command", "shell", "bash")),
        ("command",),
    ),
    "plan": Trade(PLAN_TOOL, frozenset(("update", "write", "set")), frozenset(("plan", "todo")), ("entries",)),
}
BUILT_IN = frozenset(trade.tool for trade in TRADES.values())
"""Tools that phrases alone choose: words in common are not enough to touch a file."""

_NAMES = {
    "path": ("path", "filepath", "file", "filename", "directory", "dir", "directorypath", "folder"),
    "content": ("content", "contents", "text", "data"),
    "pattern": ("pattern", "query", "regex", "search", "text"),
    "glob": ("glob", "include", "filepattern", "globpattern"),
    "command": ("command", "cmd", "script"),
    "start_line": ("startline", "line", "offset", "start", "firstline"),
    "line_count": ("linecount", "limit", "lines", "count"),
    "entries": ("entries", "todos", "items", "plan"),
    "old": ("old", "oldtext", "oldstring", "oldstr", "search", "find"),
    "new": ("new", "newtext", "newstring", "newstr", "replace", "replacement"),
}


class Fit(msgspec.Struct, frozen=True):
    """A tool for a phrase, the arguments so far, and the required ones that are missing."""

    tool: ToolDefinition
    arguments: dict[str, Any]
    missing: tuple[Parameter, ...] = ()


def own_name(tool: ToolDefinition) -> str:
    """Return a tool's name without its server's."""
    return tool.name.rpartition("__")[2] or tool.name


def find_fit(phrase: Phrase, tools: Sequence[ToolDefinition]) -> Fit | None:
    """Return the best tool for a phrase that can take it."""
    ranked = sorted((-_rank(phrase.kind, tool), position) for position, tool in enumerate(tools))
    for rank, position in ranked:
        if rank >= 0:
            return None
        fit = _bind(phrase, tools[position])
        if fit is not None:
            return fit
    return None


def trade_of(tool: ToolDefinition) -> str | None:
    """Return the kind of work that a tool does, if it is one of these."""
    ranks = {kind: _rank(kind, tool) for kind in TRADES}
    best = max(ranks, key=lambda kind: ranks[kind])
    return best if ranks[best] > 0 else None


def _rank(kind: str, tool: ToolDefinition) -> float:
    trade = TRADES[kind]
    if tool.name == trade.tool:
        return 100
    words = set(split_words(own_name(tool)))
    if not (words & trade.verbs and words & trade.nouns):
        return 0
    return 10 - len(words - trade.verbs - trade.nouns)


def _bind(phrase: Phrase, tool: ToolDefinition) -> Fit | None:
    known = parameters(tool)
    arguments: dict[str, Any] = {}
    for role, given in phrase.roles.items():
        if role in ("old", "new"):
            continue
        parameter = _called(_NAMES[role], known)
        if parameter is None and role in TRADES[phrase.kind].needs:
            return None
        value = given if parameter is None else _shaped(role, parameter, given)
        if parameter is not None and misfit(value, parameter.schema, tool.parameters) is None:
            arguments[parameter.name] = value
    if "old" in phrase.roles and not _bind_edit(phrase, known, arguments):
        return None
    if phrase.kind == "search":
        _bind_place(known, arguments)
    missing = tuple(one for one in known if one.required and one.name not in arguments)
    if any(_role_of(one) not in TRADES[phrase.kind].needs for one in missing):
        return None
    return Fit(tool, arguments, missing)


def _called(names: Sequence[str], known: Sequence[Parameter]) -> Parameter | None:
    by_name = {re.sub(r"[^a-z]", "", one.name.lower()): one for one in reversed(known)}
    return next((by_name[name] for name in names if name in by_name), None)


def _role_of(parameter: Parameter) -> str | None:
    name = re.sub(r"[^a-z]", "", parameter.name.lower())
    return next((role for role, names in _NAMES.items() if name in names), None)


def _bind_place(known: Sequence[Parameter], arguments: dict[str, Any]) -> None:
    path = _called(_NAMES["path"], known)
    if path is not None and path.required:
        arguments.setdefault(path.name, ".")


def _bind_edit(phrase: Phrase, known: Sequence[Parameter], arguments: dict[str, Any]) -> bool:
    old, new = phrase.roles["old"], phrase.roles["new"]
    plain_old, plain_new = _called(_NAMES["old"], known), _called(_NAMES["new"], known)
    if plain_old is not None and plain_new is not None:
        arguments.update({plain_old.name: old, plain_new.name: new})
        return True
    for parameter in known:
        inner = (
            parameters(ToolDefinition("", "", parameter.schema.get("items") or {})) if parameter.kind == "array" else []
        )
        inner_old, inner_new = _called(_NAMES["old"], inner), _called(_NAMES["new"], inner)
        if inner_old is not None and inner_new is not None:
            arguments[parameter.name] = [{inner_old.name: old, inner_new.name: new}]
            return True
    return False


_EXPRESSION = re.compile(r"\.[*+?]|\||\\[bwsdBWSD.(]|\[[^\]]+\]|\A\^|\$\Z|\(\?")


def _shaped(role: str, parameter: Parameter, value: Any) -> Any:
    """Return a role's value in the shape that a parameter takes."""
    if role == "entries":
        return _entries(parameter, value)
    if role == "pattern" and re.search("regex|regular expression", parameter.description, re.IGNORECASE):
        return _expression(value)
    return value


def _expression(text: str) -> str:
    """Return a regular expression for a text, which it may be already; not `re.escape`: ripgrep's are stricter."""
    if _EXPRESSION.search(text):
        try:
            re.compile(text)
        except re.error:
            pass
        else:
            return text
    return re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text)


def _entries(parameter: Parameter, contents: Sequence[str]) -> list[Any]:
    items = parameter.schema.get("items")
    if isinstance(items, dict) and cast("dict[str, Any]", items).get("type") == "string":
        return list(contents)
    return [plan_entry(content, "pending") for content in contents]


def plan_entry(content: str, status: str) -> dict[str, str]:
    """Return an entry of a plan."""
    return {"content": content, "priority": "medium", "status": status}
