"""Rules that allow, deny or ask, by path, command and title.

As text a rule is `VERDICT:WHAT[:PATTERN]`:

    allow:read:src/**       files, as in a .gitignore: with a slash from the cwd or absolute, without one at any depth
    allow:write:*.md
    deny:run:rm *           commands: a glob over the whole command, or its first words
    allow:run:git status
    ask:tool:Search*        other actions: a glob over the title from the agent
    deny:any                everything

Each single action of a call is judged by the first rule that matches it, and the strictest verdict holds.

Rules that allow are interpreted narrowly:
- A path must be inside the session's directories, unless the rule names an absolute path.
- Every command of a shell text must match. A command with a redirection to a file, a substitution or an assignment
  matches only `allow:run` without a pattern or with `*`.
- A command that runs another one, such as `env` or `find`, must match word by word.
- A title is only a claim, so it allows nothing if more is known about the action.

Rules that deny are interpreted widely. For commands they are a guard rail and not a wall, because one program can do
the work of another.
"""

import os
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast, get_args

import msgspec

from dragoman.client.permission.action import OpaqueAction, ReadAction, RunAction, SingleAction, WriteAction
from dragoman.client.permission.command import SimpleCommand, parse_command
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Verdict = Literal["allow", "deny", "ask"]
What = Literal["read", "write", "run", "tool", "any"]

WRAPPERS = frozenset(
    """sudo doas env nohup nice ionice timeout xargs exec command builtin stdbuf setsid busybox chroot unshare watch
    parallel find""".split()  # noqa: SIM905 -- a column of quotes would hide the words
)
"""Commands that run another command, which is one of their arguments."""


_HARMLESS_VARIABLES = frozenset(("TERM", "LANG", "LC_ALL", "TZ", "CI", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"))
"""Variables that only change a program's output. Most others can make it run another program."""


class InvalidRuleError(DragomanError):
    """A rule with a mistake, named in `problem`."""

    def __init__(self, rule: str, problem: str) -> None:
        self.rule = rule
        self.problem = problem
        super().__init__(
            f"the rule {rule!r} {problem}; "
            "a rule is written VERDICT:WHAT:PATTERN, such as allow:read:src/** or deny:run:rm *"
        )


class PolicyRule(msgspec.Struct, frozen=True, dict=True):
    """One rule. `path` belongs to `read` and `write`, `command` to `run`, and `title` narrows any rule."""

    verdict: Verdict
    what: What = "any"
    path: str | None = None
    command: str | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def paths(self) -> "GitIgnoreSpec":
        """The pattern of the paths that the rule matches."""
        from pathspec import GitIgnoreSpec

        return GitIgnoreSpec.from_lines([self.path or "*"])

    def __str__(self) -> str:
        pattern = self.path or self.command or (self.title if self.what == "tool" else None)
        return ":".join(part for part in (self.verdict, self.what, pattern) if part)


def parse_rule(text: str) -> PolicyRule:
    """Parse a rule as it is written on the command line. Raises InvalidRuleError."""
    # A pattern may contain colons, so only the first two separate the parts.
    verdict, _, rest = text.partition(":")
    what, colon, pattern = rest.partition(":")
    if verdict not in get_args(Verdict):
        raise InvalidRuleError(text, f"begins with {verdict!r} instead of allow, deny or ask")
    if what not in get_args(What):
        raise InvalidRuleError(text, f"has {what!r} instead of read, write, run, tool or any")
    if colon and not pattern.strip():
        raise InvalidRuleError(text, "ends with an empty pattern; leave out the last colon to match everything")
    if colon and what == "any":
        raise InvalidRuleError(text, "has a pattern after `any`; use read, write, run or tool with a pattern")
    field = {"read": "path", "write": "path", "run": "command", "tool": "title"}.get(what)
    try:
        return PolicyRule(cast("Verdict", verdict), cast("What", what), **({field: pattern} if field and colon else {}))
    except InvalidRuleError as error:
        raise InvalidRuleError(text, error.problem) from None


def first_matches(
    rules: Sequence[PolicyRule], action: SingleAction, title: str, cwd: str
) -> list[tuple[SingleAction, PolicyRule | None]]:
    """Return the commands of a run, or any other action, each with its first matching rule or None."""
    if not isinstance(action, RunAction):
        base = os.path.normpath(cwd)
        return [(action, next((rule for rule in rules if _matches(rule, action, title, base)), None))]
    parts = parse_command(action.command)
    if not _HARMLESS_VARIABLES.issuperset(action.variables):
        parts = tuple(SimpleCommand(part.words, sure=False, named=part.named) for part in parts)
    return [
        (
            RunAction(shlex.join(part.words) if part.named else action.command, action.cwd),
            next((rule for rule in rules if _covers(rule, "run", title) and _command_fits(rule, part)), None),
        )
        for part in parts
    ]


def _check(rule: PolicyRule) -> None:
    if rule.path is not None and rule.what not in ("read", "write"):
        raise InvalidRuleError(str(rule), f"has a path, which only read and write can have, not {rule.what}")
    if rule.command is not None and rule.what != "run":
        raise InvalidRuleError(str(rule), f"has a command, which only run can have, not {rule.what}")
    if rule.path is not None and (rule.path.startswith(("!", "#", "~")) or ".." in rule.path.split("/")):
        raise InvalidRuleError(str(rule), "has a path that begins with !, # or ~, or contains ..; write the plain path")


def _matches(rule: PolicyRule, action: ReadAction | WriteAction | OpaqueAction, title: str, cwd: str) -> bool:
    match action:
        case OpaqueAction():
            return _covers(rule, "tool", title)
        case ReadAction():
            return _covers(rule, "read", title) and _path_fits(rule, action, cwd)
        case WriteAction():
            return _covers(rule, "write", title) and _path_fits(rule, action, cwd)


def _covers(rule: PolicyRule, what: What, title: str) -> bool:
    if rule.title is not None:
        trusts_only_title = rule.verdict == "allow" and rule.what == "any" and what != "tool"
        if trusts_only_title or not fnmatchcase(title, rule.title):
            return False
    return rule.what in (what, "any")


def _path_fits(rule: PolicyRule, action: ReadAction | WriteAction, cwd: str) -> bool:
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
    """Return every command that may run. After a wrapper such as `sudo`, any word may be a command name."""
    starts = range(len(words) if _name(words[0]) in WRAPPERS else 1)
    return [found for start in starts for found in (words[start:], (_name(words[start]), *words[start + 1 :]))]


def _pattern_fits(pattern: str, words: tuple[str, ...]) -> bool:
    if not any(sign in pattern for sign in "*?["):
        expected = _split(pattern)
        return list(words[: len(expected)]) == expected
    text = shlex.join(words)
    return fnmatchcase(text, pattern) or (pattern.endswith(" *") and fnmatchcase(text, pattern[:-2]))


def _split(pattern: str) -> list[str]:
    try:
        return shlex.split(pattern)
    except ValueError:
        return pattern.split()


def _name(word: str) -> str:
    return os.path.basename(word)  # noqa: PTH119 -- a word, no file
