"""Foreign text made safe to show.

`excerpt` shortens and quotes, `match` finds the closest word, `secret` hides secrets, `title` makes the title of a
session, `width` counts columns.
"""

from dragoman.text.safe import (
    TextCleaner,
    clean_text,
    drop_sequences,
    escape_json,
    is_visible,
    one_line,
    visible,
)

__all__ = [
    "TextCleaner",
    "clean_text",
    "drop_sequences",
    "escape_json",
    "is_visible",
    "one_line",
    "visible",
]
