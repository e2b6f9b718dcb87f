"""Which tools a request speaks of: the words it shares with their names, servers, descriptions and parameters."""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from dragoman.assistant.models.guide.arguments import SQL
from dragoman.assistant.models.guide.idiom import plain_words
from dragoman.assistant.models.guide.literal import TOKEN, Masked
from dragoman.assistant.models.guide.path import is_url, looks_like_file, looks_like_path
from dragoman.assistant.models.guide.prompt import without_courtesy, without_ending
from dragoman.assistant.models.guide.schema import choices, parameters
from dragoman.assistant.models.guide.trade import BUILT_IN, own_name
from dragoman.assistant.models.guide.words import GENERIC, STOP, mean, meanings, split_words, vocabulary
from dragoman.assistant.models.model import ToolDefinition

MIN_POINTS = 3.0
MIN_COVERAGE = 0.55
"""How much of what a request is about a tool must account for: a tool that knows one word of five is not meant."""

MAX_SENTENCES = 2
MAX_DESCRIPTION = 600
"""Sentences and characters of a tool's description that are read: what it does stands at its beginning, and what
follows is much the same for all tools of a server."""

_VALUE = re.compile(r"[\d#@$%&*+=<>{}\[\]]|://")
_PREPOSITIONS = vocabulary(
    "in at near for of about on from to with by named called titled into as saying that regarding"
)
_CHANGING = frozenset(("create", "delete", "update", "send", "move"))
_LOOKING = frozenset(("get", "list", "search"))
_SENTENCE = re.compile(r"(?<=[.!?])\s")


class Subject(msgspec.Struct, frozen=True):
    """A word of a request; `loose` when it may as well be the value of a parameter."""

    word: str
    loose: bool


class ToolRequest(msgspec.Struct, frozen=True):
    """What a request is about, and what it holds that only some tools can take."""

    subjects: tuple[Subject, ...]
    has_url: bool = False
    has_sql: bool = False
    has_file: bool = False

    @property
    def first(self) -> str:
        """What it begins with, mostly a verb."""
        return self.subjects[0].word if self.subjects else ""


class Ranked(msgspec.Struct, frozen=True):
    """A tool and how well its texts account for a request; `coverage` is the share of it that they know."""

    tool: ToolDefinition
    points: float
    coverage: float
    is_meant: bool = False
    """Whether the words alone allow to think of it."""
    known: int = 0
    """How many of the words that say something about it are its own."""


def read_request(masked: Masked) -> ToolRequest:
    """Take what a request is about out of its words."""
    text = without_ending(without_courtesy(masked.text))
    words = masked.restore(f"{text} ").split()
    return ToolRequest(
        tuple(_subjects(plain_words(text))),
        any(is_url(word) for word in words),
        SQL.search(text) is not None,
        any(looks_like_file(word) for word in words if looks_like_path(word))
        or any(looks_like_file(masked.restore(token).rpartition(" ")[2]) for token in re.findall(TOKEN, text)),
    )


def rank(request: ToolRequest, tools: Sequence[ToolDefinition]) -> list[Ranked]:
    """Return the tools that have something to do with a request, best first; those of before go first among equals."""
    found = [one for tool in strangers(request, tools) if (one := _rank(tool, request)).points > 0]
    first = request.first
    if first not in GENERIC and any(one.is_meant and first in _facts(one.tool).name for one in found):
        found = [one for one in found if first in _facts(one.tool).texts]
    return sorted(found, key=lambda one: -one.points)


def reconsider(ranked: Ranked, request: ToolRequest, values: frozenset[str]) -> Ranked:
    """Rank a tool anew, knowing which words of the request became values of its parameters."""
    said = tuple(Subject(one.word, loose=one.loose or one.word in values) for one in request.subjects)
    return _rank(ranked.tool, msgspec.structs.replace(request, subjects=said))


def names(tool: ToolDefinition, word: str) -> bool:
    """Tell whether a word is in a tool's own name."""
    return word in _facts(tool).name


def strangers(request: ToolRequest, tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """Return the tools that words choose: not the built-in ones, nor a server's of the same name unless it is named."""
    here = {tool.name for tool in tools} & BUILT_IN
    said = {subject.word for subject in request.subjects}
    return [
        tool
        for tool in tools
        if tool.name not in BUILT_IN and (own_name(tool) not in here or meanings(_server(tool)) & said)
    ]


def changes_unasked(tool: ToolDefinition, request: ToolRequest) -> bool:
    """Tell whether one of the two would change something that the other does not speak of."""
    facts = _facts(tool)
    words, first = {subject.word for subject in request.subjects}, request.first
    if first == "memory":  # to remember is to create, by another word
        words.add("create")
    changes = facts.name & _CHANGING
    if first in _LOOKING and not changes and facts.deed in _CHANGING:
        return True
    return (first in _CHANGING and first not in facts.name | facts.about) or (bool(changes) and not changes & words)


# --- calling by name

CALLS = re.compile(r"(?:use|call|invoke|try)\s+(?:the\s+)?(?:tool\s+)?(?P<name>[\w./-]+)", re.IGNORECASE)


def named_tools(text: str, tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """Return the tools that a text calls by their name: several, when servers have tools of the same one."""
    words = {word.strip(".,:;!?()'\"`") for word in text.split()}
    first = re.match(r"[\w-]+", text)
    called = CALLS.match(text)
    openings = {first[0]} if first is not None else set[str]()
    if called is not None:
        openings.add(called["name"])
    for tool in tools:
        if tool.name in words and ("_" in tool.name or tool.name in openings):
            return [tool]
    found = [tool for tool in tools if "__" in tool.name and _is_called(own_name(tool), words, openings)]
    said = set(split_words(text))
    own = [tool for tool in found if set(split_words(_server(tool))) - set(split_words(own_name(tool))) & said]
    return own if len(own) == 1 else found


def _is_called(own: str, words: set[str], openings: set[str]) -> bool:
    return (own in words and "_" in own) or (own in openings and own.lower() not in STOP)


# --- subjects


def _subjects(text: str) -> list[Subject]:
    """Return what a request is about, without its values."""
    found: dict[str, bool] = {}
    after = after_colon = False
    for position, word in enumerate(re.sub(TOKEN, " ", text).split()):
        plain = word.strip(".,:;!?()'\"\u2019")
        after = after or plain.lower() in _PREPOSITIONS or after_colon
        after_colon = after_colon or word.endswith(":")
        if not plain or _VALUE.search(plain) or looks_like_path(plain):
            continue
        loose = after or (position > 0 and plain[:1].isupper())
        for part in split_words(re.sub(r"['\u2019]s\Z", "", plain)):
            if part not in STOP:
                found[mean(part)] = found.get(mean(part), True) and loose
    return [Subject(word, loose) for word, loose in found.items()]


# --- points


class _Facts(msgspec.Struct, frozen=True):
    """What a tool's texts speak of."""

    name: frozenset[str]
    server: frozenset[str]
    about: frozenset[str]
    inputs: frozenset[str]
    verb: str
    deed: str
    """What the description begins with: `Records changes …`."""
    takes_words: bool
    speaks_of_sql: bool

    @property
    def texts(self) -> frozenset[str]:
        return self.name | self.server | self.about | self.inputs


def _facts(tool: ToolDefinition) -> _Facts:
    title = tool.title.partition(": ")[2]
    return _read_facts(tool.name, title, tool.description, msgspec.json.encode(tool.parameters))


@lru_cache(2048)
def _read_facts(full_name: str, title: str, description: str, schema: bytes) -> _Facts:
    tool = ToolDefinition(full_name, description, msgspec.json.decode(schema))
    known, own = parameters(tool), own_name(tool)
    numbers = sum(1 for one in known if one.required and one.kind in ("number", "integer"))
    name = meanings(own)
    if "add" in split_words(own) and numbers > 1:
        name |= {"sum"}
    verb = split_words(own)[:1]
    texts = any(one.kind in ("string", "array") and not choices(one.schema) for one in known)
    values = [str(choice) for one in known for choice in choices(one.schema)]
    said = " ".join(_SENTENCE.split(tool.description)[:MAX_SENTENCES])
    return _Facts(
        name,
        meanings(_server(tool)),
        meanings(plain_words(f"{title}. {said[:MAX_DESCRIPTION]}")),
        meanings(" ".join([one.name for one in known] + values)),
        mean(verb[0]) if verb else "",
        mean(next(iter(split_words(said)), "")),
        texts,
        "sql" in description.lower(),
    )


def _server(tool: ToolDefinition) -> str:
    return tool.name.rpartition("__")[0]


def _rank(tool: ToolDefinition, request: ToolRequest) -> Ranked:
    if changes_unasked(tool, request):
        return Ranked(tool, 0.0, 0.0)
    facts = _facts(tool)
    points, telling = _special(facts, request)
    matched = total = 0.0
    known = 0
    leads = bool(request.subjects) and request.first == facts.verb and facts.verb not in GENERIC
    for subject in request.subjects:
        word, generic = subject.word, subject.word in GENERIC
        in_name, in_text = word in facts.name or word in facts.server, word in facts.about or word in facts.inputs
        share = 1.0 if in_name else 0.6 if in_text else 0.0
        points += _weight(in_own_name=word in facts.name, in_name=in_name, in_text=in_text, generic=generic)
        points += 1.0 if in_name and in_text and not generic else 0.0
        matched += share
        known += bool(share) and not generic
        excused = (subject.loose and facts.takes_words) or leads
        total += 0.0 if excused and not in_name else 0.5 if generic and not in_name else 1.0
        telling += 0.0 if generic else 1.0 if in_name else 0.5 * bool(share)
    if telling < 1:
        return Ranked(tool, min(points, MIN_POINTS - 1), 0.0, known=known)
    unsaid = facts.name - {subject.word for subject in request.subjects} - ({"file"} if request.has_file else set())
    penalty = sum(0.1 if word in GENERIC else 0.3 for word in unsaid)
    coverage = matched / total if total else 1.0
    return Ranked(tool, points - penalty, coverage, points >= MIN_POINTS and coverage >= MIN_COVERAGE, known)


def _weight(*, in_own_name: bool, in_name: bool, in_text: bool, generic: bool) -> float:
    if in_name:
        return 1.2 if generic else 3.0 if in_own_name else 2.0
    return (0.4 if generic else 1.0) if in_text else 0.0


def _special(facts: _Facts, request: ToolRequest) -> tuple[float, float]:
    """Return the points, and how telling it is, that a request holds what a tool is for."""
    if request.has_url and facts.inputs & {"url", "uri"}:
        return 2.5, 1.0
    if request.has_sql and facts.speaks_of_sql and facts.inputs & {"search", "sql", "statement"}:
        return 2.5, 1.0
    if request.has_file and request.first in facts.name & GENERIC and "file" in facts.name | facts.inputs:
        return 2.0, 1.0
    return 0.0, 0.0
