"""Search: finds the tools, rules and references that a prompt needs. How, and how well: `docs/tool-search.md`."""

from dragoman.agent.search.index import Hit, Index
from dragoman.agent.search.item import Item, Passage, paragraphs, text_item, tool_item, tool_text
from dragoman.agent.search.selection import Selected, select

__all__ = [
    "Hit",
    "Index",
    "Item",
    "Passage",
    "Selected",
    "paragraphs",
    "select",
    "text_item",
    "tool_item",
    "tool_text",
]
