"""The items that can be found: tools, rules and references, as passages of text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.assistant.search.thesaurus import split_name

_BLANK_LINES = re.compile(r"\n\s*\n")
_HEADING = re.compile(r"#{1,6}\s+\S")


class Passage(msgspec.Struct, frozen=True):
    """A piece of text that can be found separately."""

    text: str
    """Searched by meaning and by words."""
    details: str = ""
    """Searched only by words, because it would blur the meaning of the text."""


class SearchItem(msgspec.Struct, frozen=True):
    """Something that can be found. It has the score of its best passage."""

    key: str
    passages: tuple[Passage, ...]


def tool_item(
    key: str,
    *,
    server: str,
    name: str,
    title: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> SearchItem:
    """Return the item of a tool. `parameters` is its JSON schema."""
    return SearchItem(key, (tool_text(server, name, title, description, parameters),))


def text_item(key: str, name: str, text: str) -> SearchItem:
    """Return the item of a rule or reference, with one passage per paragraph. The first includes the name."""
    named = f"{split_name(name)}\n\n{text}" if text.strip() else split_name(name)
    return SearchItem(key, tuple(Passage(paragraph) for paragraph in paragraphs(named)))


def tool_text(
    server: str,
    name: str,
    title: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Passage:
    """Return the passage of a tool: server, name and description, with the parameters as details."""
    called = f"{split_name(server)} {split_name(name)}".lower()
    descriptions = [part.strip() for part in (title, description) if part and part.strip()]
    return Passage(
        ": ".join([called, " ".join(descriptions)]) if descriptions else called,
        " ".join(_parameter_texts(parameters or {})),
    )


def paragraphs(text: str) -> list[str]:
    """Split a text at its blank lines. A heading stays with the paragraph after it."""
    found: list[str] = []
    heading: list[str] = []
    for block in _BLANK_LINES.split(text):
        words = block.strip()
        if not words:
            continue
        heading.append(words)
        if "\n" in words or not _HEADING.match(words):
            found.append("\n".join(heading))
            heading = []
    return [*found, "\n".join(heading)] if heading else found


def _parameter_texts(schema: Mapping[str, Any]) -> Iterator[str]:
    properties: object = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, about in cast("Mapping[object, object]", properties).items():
        yield split_name(str(name))
        if isinstance(about, Mapping):
            yield from _described(cast("Mapping[object, object]", about))


def _described(about: Mapping[object, object]) -> Iterator[str]:
    description = about.get("description")
    if isinstance(description, str):
        yield description
    choices = about.get("enum")
    if isinstance(choices, Sequence) and not isinstance(choices, str):
        yield from (split_name(choice) for choice in cast("Sequence[object]", choices) if isinstance(choice, str))
