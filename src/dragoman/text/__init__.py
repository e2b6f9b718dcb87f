"""Foreign text made safe to show; `text.width` has how wide it is in a terminal."""

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
