"""Markdown with a head: a block of YAML between two lines of `---`, then the text."""

import re

import msgspec

_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class MarkdownFile(msgspec.Struct, frozen=True):
    """A text and its head, which is None when there is none; the lines of the head count as in the file."""

    text: str
    head: str | None = None


def split_head(content: str) -> MarkdownFile:
    """Take the head off a Markdown text."""
    found = _HEAD.match(content)
    if found is None:
        return MarkdownFile(content)
    return MarkdownFile(content[found.end() :], f"\n{found[1]}")
