"""Search: finds the tools, rules and references that a prompt needs. How, and how well: `docs/tool-search.md`."""

from dragoman.assistant.search.index import PassageHit, SearchIndex, SelectedItem, select
from dragoman.assistant.search.item import Passage, SearchItem, paragraphs, text_item, tool_item, tool_text

__all__ = [
    "Passage",
    "PassageHit",
    "SearchIndex",
    "SearchItem",
    "SelectedItem",
    "paragraphs",
    "select",
    "text_item",
    "tool_item",
    "tool_text",
]
