"""Words made comparable: split, lower case, lightly stemmed, and one word for many of the same meaning."""

import re
from functools import lru_cache

_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


def vocabulary(words: str) -> frozenset[str]:
    """Return the words of a list that is written as a text."""
    return frozenset(words.split())


STOP = vocabulary(
    "a an the this that these those it its is are was were be been am do does did doing done can could would will "
    "shall should may might must i me my we us our you your he she they them their what which who whom whose when "
    "where why how of to in on at by for from with without into onto about as and or but not no yes so if then "
    "than there here please just also too very really now again some any all each every both more most other such "
    "only own same ok okay s t d ll re ve m lets let want need like know have has had one using use via up out "
    "over under thing called named titled right currently today tomorrow yesterday per much many long far go "
    "going give tell kindly everything last latest recent newest"
)

_GROUPS = {
    "get": "get show display view print read fetch retrieve obtain return see check download pull look dump",
    "list": "list enumerate ls",
    "search": "search find query lookup locate grep seek",
    "create": "create add make new write insert store save record open put post schedule book",
    "delete": "delete remove drop erase forget clear unset",
    "update": "update change edit modify set replace patch alter",
    "run": "run execute call start launch invoke perform trigger",
    "send": "send notify",
    "move": "move rename",
}
_NOUNS = {
    "directory": "directory folder dir",
    "file": "file document",
    "image": "image picture photo",
    "event": "event meeting appointment",
    "issue": "issue bug ticket",
    "repository": "repository repo repositories",
    "page": "page webpage website site",
    "weather": "weather forecast temperature warm cold hot rain rainy sunny snow degrees",
    "time": "time clock hour",
    "difference": "difference diff change",
    "note": "note memo",
    "memory": "memory remember memorize memorise",
    "database": "database db",
    "pull": "pr",
    "sum": "sum plus total",
    "city": "city town",
    "environment": "environment env",
    "variable": "variable var",
    "status": "status state",
    "log": "log history",
    "info": "info information metadata detail stat",
    "echo": "echo repeat",
    "tiny": "tiny small little",
}
GENERIC = frozenset(_GROUPS)
"""The verbs that many tools share: they say little about which one is meant."""

_ENDINGS = (
    ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("ation", "at"), ("ing", ""), ("ed", "")
)  # fmt: skip
_MEANING = {word: name for name, group in (_NOUNS | _GROUPS).items() for word in group.split()}


@lru_cache(8192)
def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a name or a sentence, in lower case: `getCurrentTime` has three."""
    return tuple(word.lower() for word in _SPLIT.findall(text))


@lru_cache(8192)
def stem(word: str) -> str:
    """Return a word without a common ending."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + instead
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word


@lru_cache(8192)
def mean(word: str) -> str:
    """Return the one word that stands for this and its like."""
    stemmed = stem(word)
    return _MEANING.get(word) or _MEANING.get(stemmed) or _root(stemmed)


def _root(stemmed: str) -> str:
    """Return what `stage`, `staged` and `staging`, or `log` and `logging`, have in common."""
    is_doubled = len(stemmed) > 3 and stemmed[-1] == stemmed[-2] and stemmed[-1] not in "aeiouls"
    if is_doubled or (len(stemmed) > 4 and stemmed.endswith("e")):
        stemmed = stemmed[:-1]
    return _MEANING.get(stemmed, stemmed)


@lru_cache(4096)
def meanings(text: str) -> frozenset[str]:
    """Return what a text is about, without the words that are in every text."""
    return frozenset(mean(word) for word in split_words(text) if word not in STOP)
