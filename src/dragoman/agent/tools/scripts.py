"""The scripts that a command names: approving the command is approving what they hold now.

A command whose text is the same may do something else tomorrow, because the script it names was rewritten
(CVE-2026-32978). So the content of each script inside the workspace that a command runs by name belongs to what is
approved: `./run.sh`, `python x.py`, `sh -e x.sh`, `. env.sh`, also after `cd`, `env`, assignments and `&&`.

What this does not see: what a script loads in turn, programs found on PATH, makefiles, and names that only the shell
knows (`$X`, `*.sh`). It binds an approval closer to what was seen; it is no sandbox.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Iterator

from dragoman.agent.tools.tool import ToolFailure
from dragoman.agent.workspace.workspace import Workspace

MAX_SCRIPTS = 16
"""Programs in one command that are looked at."""

_SEPARATORS = ";&|()\n"
_WRAPPERS = frozenset({"env", "exec", "nohup", "time", "nice", "sudo", "command", "!", "if", "then", "else", "do", "{"})
_INTERPRETER = re.compile(
    r"(?:(?:ba|da|z|k|fi)?sh|python[0-9.]*|pypy[0-9.]*|node|bun|deno|ruby|perl|php|lua|Rscript|awk|gawk|source|\.)"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


async def fingerprint(workspace: Workspace, command: str) -> str:
    """Return a digest of the scripts that a command names, with their paths; empty when it names none."""
    seen: dict[str, str] = {}
    for path in find_scripts(command, workspace.cwd):
        if len(seen) == MAX_SCRIPTS:
            break
        try:
            spot = await workspace.find(path)
        except ToolFailure:
            continue
        digest = await workspace.digest(spot) if spot.inside else None
        if digest is not None:
            seen[spot.path] = digest
    if not seen:
        return ""
    listed = "\0".join(f"{path}\0{digest}" for path, digest in sorted(seen.items()))
    return f"sha256:{hashlib.sha256(listed.encode(errors='surrogateescape')).hexdigest()}"


def find_scripts(command: str, cwd: str) -> Iterator[str]:
    """Give the absolute paths that may be scripts which the command runs; whether they exist is not looked at."""
    directory = cwd
    for words in _split(command):
        program = _strip(words)
        if program[:1] == ["cd"] and len(program) == 2:
            directory = os.path.join(directory, program[1])  # noqa: PTH118 -- links and `..` are followed later
            continue
        name = _script(program)
        if name:
            yield os.path.join(directory, name)  # noqa: PTH118 -- as above


def _split(command: str) -> Iterator[list[str]]:
    """Give the simple commands of a text, as words; none when its quotes do not match."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_SEPARATORS)
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set(_SEPARATORS):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:
        return
    yield words


def _strip(words: list[str]) -> list[str]:
    """Take away what only stands before a program."""
    while words and (words[0] in _WRAPPERS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[1:]
    return words


def _script(words: list[str]) -> str | None:
    if not words:
        return None
    if _INTERPRETER.fullmatch(words[0].rpartition("/")[2]):
        return next((word for word in words[1:] if not word.startswith("-")), None)
    return words[0] if "/" in words[0] else None
