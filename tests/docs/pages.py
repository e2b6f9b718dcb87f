"""The pages of the documentation, and the commands in them.

A block of `sh` has commands. A block of `console` has commands behind `$ `, and their output. The block without a
language, or of `text`, that follows a block of `sh` with nothing between them is the output of that block. In no other
block are there commands: `test_commands.py` holds the pages to this.
"""

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
# The help of each command, from its parser; these have no examples.
GENERATED = {"commands.md"}

_FENCED = re.compile(r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_OPENING, _CLOSING = {"case", "if", "for", "while"}, {"esac", "fi", "done"}
_COMMENT = re.compile(r"\s+#\s.*$")


@dataclass(frozen=True)
class Block:
    """A fenced block; `follows` says that nothing but an empty line is between it and the block before."""

    language: str
    text: str
    line: int
    follows: bool


@dataclass(frozen=True)
class Command:
    """A command as it is written, without its comment; `shown` is its output, where the page shows one."""

    page: str
    line: int
    text: str
    shown: str | None = None

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"


def name_of(page):
    """Name a page as people do: two of them are called README.md."""
    return str(page.relative_to(ROOT))


def blocks_of(page):
    """Give the blocks of a page, in order."""
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
    """Give a page without its blocks."""
    return _FENCED.sub("", page.read_text())


def commands_of(page):
    """Give the parts of a page that are to be run, in order: a list of commands for each block, and files to write."""
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
    """Split a script into whole commands; the output of all is that of the last."""
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
        words = shlex.split(text, comments=True, posix=False)  # which leaves "done" in its quotes
    except ValueError:  # inside quotes, or behind a backslash
        return False
    opened, closed = (sum(word in kind for word in words) for kind in (_OPENING, _CLOSING))
    return opened == closed and not text.endswith("\\")


def _without_comment(text):
    return text if "\n" in text else _COMMENT.sub("", text).strip()
