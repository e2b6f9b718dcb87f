"""The tools of servers: which of them a request means, by its name or by the words of the tool search."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from dragoman.assistant.models.guide.arguments import ArgumentReader
from dragoman.assistant.models.guide.prompt import TOKEN, Words, without_courtesy
from dragoman.assistant.models.guide.routines import GuideRoutine, call_tool, say
from dragoman.assistant.models.guide.talk import shown_name
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.models.tool_index import own_name
from dragoman.assistant.search.item import Passage, tool_text
from dragoman.assistant.search.lexical import LexicalIndex
from dragoman.assistant.search.thesaurus import STOP_WORDS, all_words, load_thesaurus, split_name, stem
from dragoman.text.excerpt import shorten

BUILT_IN = frozenset(
    ("read_file", "write_file", "edit_file", "list_directory", "search_files", "run_command", "update_plan")
)
MIN_COVERAGE = 0.5
"""The share of a request's words, by their weight, that a tool must have to be called."""
MIN_COVERAGE_BY_MEANING = 0.75
"""The same for a tool that shares no telling word with the request, only what one means."""
MIN_LEAD = 0.05
"""How much better than the next tool the best one must be; nearer ones are asked about."""
MISSING_COST = 0.1
"""A tool whose arguments are missing counts for less than one that can be called."""
MAX_COMPARED = 5

GivenValues = Mapping[str, Mapping[str, Any]]
"""Values that a person gave when asked, by the names of the tool and the parameter."""

_USE = re.compile(r"\A(?:use|call|invoke|try)\s+(?:the\s+)?(?:tool\s+)?", re.IGNORECASE)
_ASKED = re.compile(r"To use `[^`]+` \(`(?P<tool>[^`]+)`\) I need `(?P<parameter>[^`]+)`")


class ServerTools:
    """The tools of a session's servers, indexed once for a conversation."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self.tools = [tool for tool in tools if tool.name not in BUILT_IN]
        self._index: LexicalIndex | None = None

    def find(self, words: Words, given: GivenValues) -> GuideRoutine | None:
        """Return the routine that calls the tool a request means, or asks for what is missing."""
        if not self.tools:
            return None
        text = words.part(without_courtesy(words.text))
        named = self._find_named(text)
        if len(named) > 1:
            return _ask_which(tool for tool, _ in named)
        covered = self._find_covered(text, given)
        if not named:
            return covered
        tool, rest = named[0]
        reader = ArgumentReader(tool, rest, given.get(tool.name, {})).read(is_named=True)
        is_ordinary_word = own_name(tool).isalpha()  # "add a note" does not mean the tool `add`
        return covered if covered and reader.missing and is_ordinary_word else _use(tool, reader)

    def _find_named(self, words: Words) -> list[tuple[ToolDefinition, Words]]:
        """Return the tools whose names the request begins with, the longest names alone, and the words behind them."""
        text = _USE.sub("", words.text, count=1)
        found: list[tuple[int, ToolDefinition, Words]] = []
        for tool in self.tools:
            for name in (tool.name, own_name(tool)):
                pattern = r"[\s_-]+".join(map(re.escape, split_name(name).split())) or re.escape(name)
                match = re.match(rf"{pattern}(?!\w)", text, re.IGNORECASE)
                if match:
                    found.append((match.end(), tool, words.part(text[match.end() :])))
                    break
        longest = max((end for end, _, _ in found), default=0)
        return [(tool, rest) for end, tool, rest in found if end == longest]

    def _find_covered(self, words: Words, given: GivenValues) -> GuideRoutine | None:
        """Return the routine of the tool that has most of the request's words, those aside that are its values."""
        if self._index is None:
            self._index = LexicalIndex()
            self._index.replace([_passage(tool) for tool in self.tools])
        likely = self._index.cover(_content(words.text))
        ranked: list[tuple[float, int, ArgumentReader]] = []
        for place in sorted(likely, key=lambda place: -likely[place])[:MAX_COMPARED]:
            tool = self.tools[place]
            reader = ArgumentReader(tool, words, given.get(tool.name, {})).read(is_named=False)
            covered = self._index.cover(_content(reader.rest)).get(place, 0.0)
            if covered >= _min_coverage(tool, reader.rest):
                ranked.append((covered - MISSING_COST * len(reader.missing), place, reader))
        if not ranked:
            return None
        ranked.sort(key=lambda one: -one[0])
        near = [self.tools[place] for score, place, _ in ranked if ranked[0][0] - score < MIN_LEAD]
        return _ask_which(near) if len(near) > 1 else _use(near[0], ranked[0][2])


class AskedParameter(msgspec.Struct, frozen=True):
    """A parameter that the guide asked for in its last words."""

    tool: str
    parameter: str


def read_question(said: str) -> AskedParameter | None:
    """Return the parameter that the guide asked for, if it did."""
    found = _ASKED.search(said)
    return AskedParameter(found["tool"], found["parameter"]) if found else None


def _use(tool: ToolDefinition, reader: ArgumentReader) -> GuideRoutine:
    if not reader.missing:
        return call_tool(tool.name, shown_name(tool), **reader.values)
    wanted = reader.missing[0]
    about = f": {shorten(wanted.description, 160).rstrip('.')}" if wanted.description else ""
    return say(f"To use `{shown_name(tool)}` (`{tool.name}`) I need `{wanted.name}`{about}.", is_done=False)


def _ask_which(tools: Iterable[ToolDefinition]) -> GuideRoutine:
    names = " or ".join(f"`{tool.name}`" for tool in islice(tools, MAX_COMPARED))
    return say(f"Several tools fit. Begin the request with the name of one: {names}.", is_done=False)


_VERBS = frozenset(
    map(stem, re.findall(r"\w+", "get list search find read show fetch query describe print take run execute do tool"))
)
"""Words in the names of tools that say little: a request has to share another one."""
_CHANGES = frozenset(
    map(
        stem,
        re.findall(r"\w+", "create delete remove update send move add write post set merge close toggle reset commit"),
    )
)
"""Words in the names of tools that change something: a request has to say so."""
_ASKING = frozenset(("tell", "show", "know", "see", "current", "currently"))


def _content(text: str) -> str:
    """Return the words of a request that tell which tool is meant: no quoted pieces, no stop words."""
    return " ".join(word for word in all_words(re.sub(TOKEN, " ", text)) if word not in STOP_WORDS | _ASKING)


def _min_coverage(tool: ToolDefinition, text: str) -> float:
    """Return the coverage that a tool needs: by a telling word of its name that the request has, or means.

    A tool that changes something needs a request that says so.
    """
    own = {stem(word) for word in all_words(split_name(own_name(tool)))}
    name = {stem(word): word for word in all_words(f"{split_name(tool.name)} {tool.title}")}
    asked = {stem(word) for word in all_words(text)}
    changes = own & _CHANGES
    telling = name.keys() - _VERBS - _CHANGES or name.keys()
    if changes and not changes & asked:
        return math.inf
    if telling & asked:
        return MIN_COVERAGE
    thesaurus = load_thesaurus()
    concepts = thesaurus.concepts(all_words(_content(text)))
    is_meant = any(concepts & thesaurus.concepts([name[word]]) for word in telling)
    return MIN_COVERAGE_BY_MEANING if is_meant else math.inf


def _passage(tool: ToolDefinition) -> Passage:
    own = own_name(tool)
    server = tool.name.removesuffix(own).removesuffix("__")
    return tool_text(server, own, tool.title.partition(": ")[2], tool.description, tool.parameters)
