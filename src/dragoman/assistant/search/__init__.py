"""The search for the tools, rules and references that a prompt needs. User guide: `docs/agent-file.md`."""

from dragoman.assistant.search.index import SearchIndex, SelectedItem, select
from dragoman.assistant.search.item import Passage, SearchItem, paragraphs, text_item, tool_item, tool_text

__all__ = [
    "Passage",
    "SearchIndex",
    "SearchItem",
    "SelectedItem",
    "paragraphs",
    "select",
    "text_item",
    "tool_item",
    "tool_text",
]
