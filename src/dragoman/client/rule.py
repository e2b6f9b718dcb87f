"""Rules that allow, deny or ask, by path, command and title.

As text a rule is `VERDICT:WHAT[:PATTERN]`:

    allow:read:src/**       files, as in a .gitignore: with a slash from the cwd, or absolute; without, at any depth
    allow:write:*.md
    deny:run:rm *           commands: a glob over the whole command, or the words that it begins with
    allow:run:git status
    ask:tool:Search*        whatever is none of these, by a glob over the title that the agent gives it
    deny:any                everything

Each part of what a call does is judged by the first rule that matches that part, and what comes out worst holds.
A rule that allows is taken narrowly: a path has to lie inside the session's directories, unless the rule names it from
the top; every command of a shell text has to match, and one that is not plain (redirections to files, substitutions,
assignments) matches only `allow:run` with no pattern or `*`; a command that runs another, such as `env` or `find`, only
word by word; and a title, which is but a claim, allows nothing of which more is known.
A rule that denies is taken widely. On commands that is a guard rail, no wall: one program can do what another does.
"""

import os
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast, get_args

import msgspec

from dragoman.client.action import Foreign, Read, Run, SingleAction, Write
from dragoman.client.command import SimpleCommand, parse_command
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Verdict = Literal["allow", "deny", "ask"]
What = Literal["read", "write", "run", "tool", "any"]

WRAPPERS = frozenset(
    """sudo doas env nohup nice ionice timeout xargs exec command builtin stdbuf setsid busybox chroot unshare watch
    parallel find""".split()  # noqa: SIM905 -- a column of quotes would hide the words
)
"""Commands that run another one, which is named somewhere among their arguments."""


_HARMLESS_VARIABLES = frozenset(("TERM", "LANG", "LC_ALL", "TZ", "CI", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"))
"""Variables that change how a program looks; most others can make it run another one."""


class BadRule(DragomanError):
    """A rule that cannot be understood."""

    def __init__(self, rule: str, problem: str) -> None:
        self.rule = rule
        self.problem = problem
        super().__init__(
            f"the rule {rule!r} {problem}; "
            "a rule is written VERDICT:WHAT:PATTERN, such as allow:read:src/** or deny:run:rm *"
        )


class PolicyRule(msgspec.Struct, frozen=True, dict=True):
    """One rule; `path` is for `read` and `write`, `command` for `run`, and `title` narrows any of them."""

    verdict: Verdict
    what: What = "any"
    path: str | None = None
    command: str | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def paths(self) -> "GitIgnoreSpec":
        """The paths that it is about."""
        from pathspec import GitIgnoreSpec

        return GitIgnoreSpec.from_lines([self.path or "*"])

    def __str__(self) -> str:
        pattern = self.path or self.command or (self.title if self.what == "tool" else None)
        return ":".join(part for part in (self.verdict, self.what, pattern) if part)


def parse_rule(text: str) -> PolicyRule:
    """Read a rule as it is written on the command line; raises BadRule."""
    verdict, _, rest = text.partition(":")
    what, colon, pattern = rest.partition(":")
    if verdict not in get_args(Verdict):
        raise BadRule(text, f"begins with {verdict!r} instead of allow, deny or ask")
    if what not in get_args(What):
        raise BadRule(text, f"says {what!r} instead of read, write, run, tool or any")
    if colon and not pattern.strip():
        raise BadRule(text, "ends with an empty pattern: leave out its last colon if it is meant for everything")
    if colon and what == "any":
        raise BadRule(text, "gives `any` a pattern, of a path or of a command: say read, write, run or tool instead")
    field = {"read": "path", "write": "path", "run": "command", "tool": "title"}.get(what)
    try:
        return PolicyRule(cast("Verdict", verdict), cast("What", what), **({field: pattern} if field and colon else {}))
    except BadRule as error:
        raise BadRule(text, error.problem) from None


def first_matches(
    rules: Sequence[PolicyRule], action: SingleAction, title: str, cwd: str
) -> list[tuple[SingleAction, PolicyRule | None]]:
    """Return the parts of a action, each with the first rule that matches it, if one does."""
    if not isinstance(action, Run):
        base = os.path.normpath(cwd)
        return [(action, next((rule for rule in rules if _matches(rule, action, title, base)), None))]
    parts = parse_command(action.command)
    if not _HARMLESS_VARIABLES.issuperset(action.variables):
        parts = tuple(SimpleCommand(part.words, sure=False, named=part.named) for part in parts)
    return [
        (
            Run(shlex.join(part.words) if part.named else action.command, action.cwd),
            next((rule for rule in rules if _covers(rule, "run", title) and _command_fits(rule, part)), None),
        )
        for part in parts
    ]


def _check(rule: PolicyRule) -> None:
    if rule.path is not None and rule.what not in ("read", "write"):
        raise BadRule(str(rule), f"has a path, and that is for read and write, not for {rule.what}")
    if rule.command is not None and rule.what != "run":
        raise BadRule(str(rule), f"has a command, and that is for run, not for {rule.what}")
    if rule.path is not None and (rule.path.startswith(("!", "#", "~")) or ".." in rule.path.split("/")):
        raise BadRule(str(rule), "has a path that begins with ! or # or ~, or goes up: write the path itself")


def _matches(rule: PolicyRule, action: Read | Write | Foreign, title: str, cwd: str) -> bool:
    match action:
        case Foreign():
            return _covers(rule, "tool", title)
        case Read():
            return _covers(rule, "read", title) and _path_fits(rule, action, cwd)
        case Write():
            return _covers(rule, "write", title) and _path_fits(rule, action, cwd)


def _covers(rule: PolicyRule, what: What, title: str) -> bool:
    if rule.title is not None:
        is_claim_alone = rule.verdict == "allow" and rule.what == "any" and what != "tool"
        if is_claim_alone or not fnmatchcase(title, rule.title):
            return False
    return rule.what in (what, "any")


def _path_fits(rule: PolicyRule, action: Read | Write, cwd: str) -> bool:
    pattern = rule.path
    if pattern is None or "/" not in pattern.rstrip("/"):
        if rule.verdict == "allow" and action.root is None:
            return rule.what == "any"
        return pattern is None or rule.paths.match_file(_below(action.path, action.root or "/"))
    if pattern.startswith("/"):
        return rule.paths.match_file(_below(action.path, "/"))
    return _is_below(action.path, cwd) and rule.paths.match_file(_below(action.path, cwd))


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _below(path: str, directory: str) -> str:
    return path.removeprefix(directory.rstrip("/") + "/") if path != directory else "."


def _command_fits(rule: PolicyRule, part: SimpleCommand) -> bool:
    pattern = rule.command
    if pattern is None or pattern.strip() == "*":
        return True
    if rule.verdict != "allow":
        return not part.named or any(_pattern_fits(pattern, words) for words in _runnable(part.words))
    if not part.sure:
        return False
    if _name(part.words[0]) in WRAPPERS:
        return list(part.words) == _split(pattern)
    return _pattern_fits(pattern, part.words)


def _runnable(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return every command that may run: behind `sudo` and its like any word may be the name of one."""
    starts = range(len(words) if _name(words[0]) in WRAPPERS else 1)
    return [found for start in starts for found in (words[start:], (_name(words[start]), *words[start + 1 :]))]


def _pattern_fits(pattern: str, words: tuple[str, ...]) -> bool:
    if not any(sign in pattern for sign in "*?["):
        wanted = _split(pattern)
        return list(words[: len(wanted)]) == wanted
    text = shlex.join(words)
    return fnmatchcase(text, pattern) or (pattern.endswith(" *") and fnmatchcase(text, pattern[:-2]))


def _split(pattern: str) -> list[str]:
    try:
        return shlex.split(pattern)
    except ValueError:
        return pattern.split()


def _name(word: str) -> str:
    return os.path.basename(word)  # noqa: PTH119 -- a word, no file
