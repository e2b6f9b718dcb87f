"""Makes foreign text safe to show.

`excerpt` shortens and quotes text. `match` finds the closest word. `secret` redacts secrets. `title` builds session
titles. `width` counts terminal columns.
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
