"""The changed lines of a file, as a diff shows them."""

from itertools import islice

from dragoman.protocol import v1

_HEAD_LINES = 2
"""`---` and `+++` with the names of the files, which a change of such a line could be taken for."""


def split_lines(text: str) -> list[str]:
    """Split a text at its newlines alone: `str.splitlines` knows more kinds of ends than editors do."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def hunk_lines(diff: v1.Diff, *, context: int = 3) -> list[str]:
    """Return the hunks of a change, without the names of the files."""
    from difflib import unified_diff

    texts = (diff.old_text or "", diff.new_text)
    if all(text.count("\r\n") == text.count("\n") for text in texts):  # of other files the `\r` may be the change
        texts = (text.replace("\r\n", "\n") for text in texts)
    old, new = map(split_lines, texts)
    return list(islice(unified_diff(old, new, n=context, lineterm=""), _HEAD_LINES, None))
