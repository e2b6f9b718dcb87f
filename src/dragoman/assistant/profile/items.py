"""The keys `rules` and `references`: named texts for the model, inline, in a file or in a directory of files.

    rules:                                   # a mapping,
      tests: Run the tests before you say that something works.
      style: {file: style.md, include: agent, priority: 100}
    references:                              # or a list, which may contain a folder of Markdown files
      - {name: api, file: docs/api.md, description: What the server answers, include: manual}
      - {dir: docs/references, include: agent}

A file in a folder may have front matter with `name`, `description`, `priority` and `include`. Its default name comes
from the file name. Prompts refer to the names with `@rule:NAME` and `@ref:NAME`.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile.sources import ProfileError, Sources, split_head
from dragoman.assistant.yaml import KeyConflictError, YamlError, printable, read_yaml

FOLDER = "dir"
"""In a mapping, this key has the path of a folder if its value is text."""

SUFFIX = ".md"
DEFAULT_PRIORITY = 500

ITEM_NAME = r"[\w-]+(\.[\w-]+)*"
ITEM_NAME_EXPECTED = "a name of letters, digits, _ and -, with dots between"

Priority = Annotated[
    int,
    Meta(ge=0, le=999, description="The order in the model's context: low numbers first, then by name."),
]
Mode = Annotated[
    Include,
    Meta(
        description="always: in every turn. manual: when the user adds it. agent: when the search finds it "
        "for the prompt."
    ),
]


class TextItem(msgspec.Struct, frozen=True):
    """A rule or reference as the agent uses it."""

    name: str
    text: str
    description: str = ""
    priority: int = DEFAULT_PRIORITY
    include: Include = "always"


class ItemHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The front matter of a Markdown file. Missing keys have the values of its folder."""

    name: Annotated[str, Meta(pattern=f"^{ITEM_NAME}$", extra={"expected": ITEM_NAME_EXPECTED})] | None = None
    description: str = ""
    priority: Priority | None = None
    include: Mode | None = None


class ItemSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule or reference in a mapping, under its name."""

    text: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description="The text.")] = None
    file: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="The path of a file with the text, relative to the agent file."),
    ] = None
    description: Annotated[str, Meta(description="A description, for users and for the search.")] = ""
    priority: Priority = DEFAULT_PRIORITY
    include: Mode = "always"

    def __post_init__(self) -> None:
        if (self.text is None) == (self.file is None):
            raise KeyConflictError("text", "expected either text or file")


class ListedItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule or reference in a list, or a directory of them."""

    name: Annotated[
        Annotated[str, Meta(pattern=f"^{ITEM_NAME}$", extra={"expected": ITEM_NAME_EXPECTED})] | None,
        Meta(description="The name, for @rule:NAME or @ref:NAME in a prompt."),
    ] = None
    text: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description="The text.")] = None
    file: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="The path of a file with the text, relative to the agent file."),
    ] = None
    dir: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="A directory whose Markdown files become one item each, instead of a name and a text."),
    ] = None
    description: Annotated[str, Meta(description="A description, for users and for the search.")] = ""
    priority: Priority = DEFAULT_PRIORITY
    include: Mode = "always"

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.text, self.file, self.dir)) != 1:
            raise KeyConflictError("text", "expected one of text, file and dir")
        if self.dir is None and self.name is None:
            raise KeyConflictError("name", "is missing")
        if self.dir is not None and (self.name is not None or self.description):
            raise KeyConflictError("dir", "can be combined only with priority and include; the files provide the names")


Items = list[ListedItem] | dict[str, str | ItemSettings]


def gather_items(key: str, items: Items, sources: Sources) -> tuple[TextItem, ...]:
    """Return the items of a key in order, with their files read. Raises ProfileError."""
    found: dict[str, TextItem] = {}
    for at, item in _each(key, items, sources):
        if not re.fullmatch(ITEM_NAME, item.name):
            raise sources.refuse(at, f"expected {ITEM_NAME_EXPECTED}")
        if item.name in found:
            raise sources.refuse(at, f"{printable(item.name)} occurs twice; each needs its own name")
        found[item.name] = item
    return sort_items(found.values())


def sort_items(items: Iterable[TextItem]) -> tuple[TextItem, ...]:
    """Sort items as the model gets them: by priority, then by name."""
    return tuple(sorted(items, key=lambda item: (item.priority, item.name)))


def name_of_file(path: str) -> str:
    """Return an item name for a file name. Invalid characters become dashes."""
    return re.sub(r"[^\w.-]+|\.{2,}", "-", Path(path).stem).strip(".") or "unnamed"


def _each(key: str, items: Items, sources: Sources) -> Iterator[tuple[str, TextItem]]:
    if isinstance(items, list):
        for index, listed in enumerate(items):
            yield from _listed(f"{key}[{index}]", listed, sources)
        return
    for name, item in items.items():
        at = f"{key}.{name}"
        if isinstance(item, ItemSettings):
            text = item.text if item.file is None else sources.read_text(f"{at}.file", item.file)
            yield at, TextItem(name, text or "", item.description, item.priority, item.include)
        elif name == FOLDER:
            yield from _folder(at, item, TextItem("", ""), sources)
        else:
            yield at, TextItem(name, item)


def _listed(at: str, listed: ListedItem, sources: Sources) -> Iterator[tuple[str, TextItem]]:
    item = TextItem(listed.name or "", listed.text or "", listed.description, listed.priority, listed.include)
    if listed.dir is not None:
        yield from _folder(f"{at}.{FOLDER}", listed.dir, item, sources)
    elif listed.file is not None:
        yield at, msgspec.structs.replace(item, text=sources.read_text(f"{at}.file", listed.file))
    else:
        yield at, item


def _folder(at: str, folder: str, default: TextItem, sources: Sources) -> Iterator[tuple[str, TextItem]]:
    for file in sources.list_folder(at, folder, SUFFIX):
        yield at, _from_markdown(file, sources.read_text(at, file), default, sources)


def _from_markdown(file: str, content: str, default: TextItem, sources: Sources) -> TextItem:
    markdown = split_head(content)
    try:
        head = ItemHead() if markdown.head is None else read_yaml(markdown.head, ItemHead).value
    except YamlError as misread:
        raise ProfileError(str(sources.path_of(file)), misread.problems) from None
    return TextItem(
        head.name or name_of_file(file),
        markdown.text.strip(),
        head.description,
        default.priority if head.priority is None else head.priority,
        head.include or default.include,
    )
