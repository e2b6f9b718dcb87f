"""The changed lines of a file as hunks of a unified diff."""

from itertools import islice

from dragoman.protocol import v1

_HEAD_LINES = 2
"""The `---` and `+++` lines with the file names. They are removed, because a changed line can look like them."""


def split_lines(text: str) -> list[str]:
    """Split a text only at newlines, as editors do. `str.splitlines` splits at more characters."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def hunk_lines(diff: v1.Diff, *, context: int = 3) -> list[str]:
    """Return the lines of all hunks, without the file names."""
    from difflib import unified_diff

    texts = (diff.old_text or "", diff.new_text)
    if all(text.count("\r\n") == text.count("\n") for text in texts):  # with mixed line ends, `\r` may be the change
        texts = (text.replace("\r\n", "\n") for text in texts)
    old, new = map(split_lines, texts)
    return list(islice(unified_diff(old, new, n=context, lineterm=""), _HEAD_LINES, None))
