"""The pages of the documentation, and the commands in them.

A block of `sh` has commands. A block of `console` has commands after `$ ` and their output. A block without a language,
or of `text`, directly after a block of `sh` is the output of that block. Other blocks must not contain commands, which
`test_commands.py` checks.
"""

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]

_FENCED = re.compile(r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_OPENING, _CLOSING = {"case", "if", "for", "while"}, {"esac", "fi", "done"}
_COMMENT = re.compile(r"\s+#\s.*$")


@dataclass(frozen=True)
class Block:
    """A fenced block. `follows` is True if only an empty line separates it from the previous block."""

    language: str
    text: str
    line: int
    follows: bool


@dataclass(frozen=True)
class Command:
    """A command as written, without its comment. `shown` is its output, if the page shows it."""

    page: str
    line: int
    text: str
    shown: str | None = None

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"


def name_of(page):
    """Return the name of a page. Two pages are called README.md, so these include the directory."""
    return str(page.relative_to(ROOT))


def blocks_of(page):
    """Return the blocks of a page in order."""
    text = page.read_text()
    found, end = [], -1
    for match in _FENCED.finditer(text):
        indent = len(match["indent"])
        lines = "".join(line[indent:] for line in match["text"].splitlines(keepends=True))
        follows = end >= 0 and not text[end : match.start()].strip()
        found.append(Block(match["language"], lines, text.count("\n", 0, match.start()) + 2, follows))
        end = match.end()
    return found


def prose_of(page):
    """Return a page without its blocks."""
    return _FENCED.sub("", page.read_text())


def commands_of(page):
    """Return the runnable parts of a page in order: a list of commands per block, and files to write."""
    blocks = blocks_of(page)
    for block, after in pairwise([*blocks, None]):
        if block.language == "sh":
            is_shown = after is not None and after.language in ("", "text") and after.follows
            yield _of_script(name_of(page), block, after.text if is_shown else None)
        elif block.language == "console":
            yield _of_console(name_of(page), block)
        elif block.language == "python" and (named := re.match(r"# (\w+\.py)\n", block.text)):
            yield named[1], block.text


def _of_script(page, block, shown):
    """Split a script into whole commands. The output of the block belongs to the last one."""
    commands, lines, start = [], [], block.line
    for number, line in enumerate(block.text.splitlines(), block.line):
        if not lines:
            start = number
        lines.append(line)
        if line.strip() and _is_whole("\n".join(lines)):
            commands.append(Command(page, start, _without_comment("\n".join(lines))))
            lines = []
    assert not lines, f"{page}:{start}: the block ends inside a command"
    if shown is not None:
        commands[-1] = Command(page, commands[-1].line, commands[-1].text, shown)
    return commands


def _of_console(page, block):
    commands = []
    for prompt in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        line = block.line + block.text.count("\n", 0, prompt.start())
        commands.append(Command(page, line, _without_comment(prompt[1]), prompt[2]))
    return commands


def _is_whole(text):
    try:
        words = shlex.split(text, comments=True, posix=False)  # keeps "done" in its quotes
    except ValueError:  # inside quotes, or after a backslash
        return False
    opened, closed = (sum(word in kind for word in words) for kind in (_OPENING, _CLOSING))
    return opened == closed and not text.endswith("\\")


def _without_comment(text):
    return text if "\n" in text else _COMMENT.sub("", text).strip()
