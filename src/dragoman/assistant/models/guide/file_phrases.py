"""Phrases about files: writing, changing, reading, listing and searching."""

import re
from shlex import quote

from dragoman.assistant.models.guide import routines
from dragoman.assistant.models.guide.phrases import ENDINGS, KNOWN_FILES, PhraseBook, Request, Trust
from dragoman.assistant.models.guide.prompt import TOKEN, without_courtesy
from dragoman.assistant.models.guide.results import escape_pattern, name_pattern
from dragoman.assistant.models.guide.routines import GuideRoutine, call_tool, run, say
from dragoman.assistant.search.thesaurus import STOP_WORDS

FILE_PHRASES = PhraseBook()

# ── writing: first, because all that follows a colon is the text ────────────────────────────────────


@FILE_PHRASES.add(
    r"<make> <called><path>(?: with| containing)?:\s*(?P<content>.+)",
    r"<make> <the>(?:new |text )*file <called><name>(?: with| containing)?:\s*(?P<content>.+)",
    verbatim=True,
)
def _write_after_colon(request: Request) -> GuideRoutine | None:
    path = request.path
    return call_tool("write_file", path=path, content=request.get("content")) if path else _ask_which_file()


@FILE_PHRASES.add(
    "(?:write|put|save|store) (?:the (?:text|line|words?) )?<text> (?:to|into|in|as) <name>",
    "<make> (?:<the>(?:new |text )*file )?<called><name>,?"
    " (?:and )?(?:with|containing|saying|that (?:says|contains)|which contains|put|write)"
    "(?: <the>(?:text|contents?|line|words?|code))?(?: in(?:to)? it)?:? <text>",
)
def _write_quoted(request: Request) -> GuideRoutine | None:
    path = request.path
    return call_tool("write_file", path=path, content=request.get("text")) if path else _ask_which_file()


@FILE_PHRASES.add(r"<make> <the>(?:new )?(?:empty|blank) (?:new )?(?:\w+ )?file <called><name>", "touch <name>")
def _write_empty(request: Request) -> GuideRoutine | None:
    path = request.path
    return call_tool("write_file", path=path, content="") if path else _ask_which_file()


@FILE_PHRASES.add("<make> <the>(?:new )?<folder> <called><name>", "mkdir <name>")
def _make_directory(request: Request) -> GuideRoutine | None:
    return run(f"mkdir -p {quote(request.path or '')}")


@FILE_PHRASES.add(
    r"<make> <the>(?:new )?(?:\w+ )?file(?: <called><name>(?: .*)?)?",
    "<make> <called><path>(?: (?:with|containing|saying|that|which|for|and) .*)?",
)
def _ask_for_content(request: Request) -> GuideRoutine | None:
    path = request.path if request.get("path").lower() not in STOP_WORDS else None
    question = f"What shall `{path}` contain?" if path else "Which file, and what shall it contain?"
    name = path or "notes.txt"
    ways = f"say `write {name}: your text`, quote the text, or say `create an empty file {name}`"
    return say(f"{question} I write no text of my own: {ways}.", is_done=False)


@FILE_PHRASES.add("(?:append|add) (?:the |a )?(?:line |text )?<text> (?:to|at) (?:the end of )?<path>")
def _append(request: Request) -> GuideRoutine | None:
    path = request.path
    return run(f"printf '%s\\n' {quote(request.get('text'))} >> {quote(path)}") if path else _ask_which_file()


# ── changing ────────────────────────────────────────────────────────────────────────────────────────


@FILE_PHRASES.add(
    "(?:in|inside) <path>,? <replace> <word> <by> <other>",
    "<replace> <word> <by> <other> in <name>",
    "edit <path>[:,]? (?:and )?<replace> <word> <by> <other>",
)
def _replace(request: Request) -> GuideRoutine | None:
    path = request.path
    if path is None:
        return _ask_which_file()
    return routines.replace_text(path, request.get("word"), request.get("other")) if request.get("word") else None


@FILE_PHRASES.add("<remove> <text> (?:from|in) <path>")
def _remove_text(request: Request) -> GuideRoutine | None:
    path = request.path
    return routines.replace_text(path, request.get("text"), "") if path and request.get("text") else _ask_which_file()


@FILE_PHRASES.add("<remove> <path>")
def _remove_file(request: Request) -> GuideRoutine | None:
    return run(f"rm {quote(request.path)}") if request.path else _ask_which_file()


@FILE_PHRASES.add("(?P<verb>move|rename|mv|copy|cp|duplicate) <path> (?:to|as|into) <other>")
def _move_file(request: Request) -> GuideRoutine | None:
    program = "cp" if request.get("verb").lower() in ("copy", "cp", "duplicate") else "mv"
    path = request.path
    return run(f"{program} {quote(path)} {quote(request.get('other'))}") if path else _ask_which_file()


def _ask_which_file() -> GuideRoutine:
    return say("Which file do you mean? Name it, as in `read README.md`.", is_done=False)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────

_LINES = (
    r"(?:lines? (?P<first>\d+)(?: ?(?:-|to|until|through) ?(?P<last>\d+))?"
    r"|(?:from|starting at) line (?P<start>\d+)|(?:the )?(?:first|top) <count> lines)"
)


@FILE_PHRASES.add(
    f"(?:<show> )?(?:the )?{_LINES} <in> <path>",
    f"(?:<show> )?<path>,? (?:at )?{_LINES}",
    r"(?:<show> )?<path>:(?P<first>\d+)(?:-(?P<last>\d+))?",
)
def _read_lines(request: Request) -> GuideRoutine | None:
    path = request.path
    if path is None:
        return _ask_which_file()
    if count := request.get("count"):
        return routines.read(path, start_line=1, line_count=max(int(count), 1))
    if start := request.get("start"):
        return routines.read(path, start_line=max(int(start), 1))
    first, last = sorted((int(request.get("first")), int(request.get("last") or request.get("first"))))
    return routines.read(path, start_line=max(first, 1), line_count=last - max(first, 1) + 1) if last else None


@FILE_PHRASES.add("(?:<show> )?(?:the )?last <count> lines <in> <path>")
def _read_end(request: Request) -> GuideRoutine | None:
    return run(f"tail -n {request.get('count')} {quote(request.path)}") if request.path else _ask_which_file()


@FILE_PHRASES.add(
    "(?:<show> )?(?:what<is> |what (?:does|do) )?<the>(?:contents? of |inside (?:of )?|in )?<the><path>"
    "(?: file)?(?: say| contain| look like| have in it)?",
    "let me see <the><path>",
)
def _read(request: Request) -> GuideRoutine | None:
    path = request.path
    if path is None:
        return _ask_which_file()
    if path.endswith("/") or path in (".", "..", "~"):
        return call_tool("list_directory", path=path)
    is_file = request.is_quoted("path") or "." in path.rsplit("/", 1)[-1] or path in KNOWN_FILES.values()
    return routines.read(path) if is_file else None


@FILE_PHRASES.add("<show>(?: the file| a file)?")
def _read_nothing(_: Request) -> GuideRoutine | None:
    return _ask_which_file()


@FILE_PHRASES.add("(?:show|show me|open|view|look at|look into|go to) (?:the )?<name>(?: <folder>)?", trust=Trust.GUESS)
def _show_entry(request: Request) -> GuideRoutine | None:
    path = request.path
    is_name = path is not None and path.lower() not in STOP_WORDS and not _THE.search(request.words.text)
    return routines.show_entry(path) if path and is_name else None


_THE = re.compile(r"\bthe\s+\S+\Z", re.IGNORECASE)
"""An article before the last word, which is then a thing and no name: "open the door"."""


@FILE_PHRASES.add("(?:read|cat) <name>", trust=Trust.GUESS)
def _read_name(request: Request) -> GuideRoutine | None:
    path = request.path
    return routines.read(path) if path and path.lower() not in STOP_WORDS else None


@FILE_PHRASES.add(
    "(?:how many|count(?: the)?|number of) lines(?: of code)?(?: are)?(?: there)?(?: <in>| has| have| does)? <path>"
    "(?: has| have)?",
    "how (?:long|big) is <path>",
)
def _count_lines(request: Request) -> GuideRoutine | None:
    return routines.count_lines(request.path) if request.path else _ask_which_file()


@FILE_PHRASES.add(
    "(?:how many|count(?: the)?|number of) lines(?: of code)?(?: are there| is it| in <here>| do(?:es)? .*)?"
)
def _count_all_lines(_: Request) -> GuideRoutine | None:
    return run("git ls-files -z | xargs -0 wc -l")


# ── listing ─────────────────────────────────────────────────────────────────────────────────────────

_THERE = "(?:<is>)?(?: there)?(?: do (?:we|i|you) have)?(?: exist)?"


@FILE_PHRASES.add(
    r"(?:<list> |<find> |which |what |how many |count )?<the>(?:\*\.(?P<ending>\w+)|<kind>)(?: source| code)?"
    rf"(?P<noun> (?:files?|scripts?|modules?))?{_THERE}(?: <in> (?:<here>|<name>))?",
)
def _find_kind(request: Request) -> GuideRoutine | None:
    ending = request.get("ending")
    if not ending and not request.get("noun"):
        return None
    glob = f"*.{ending or ENDINGS[request.get('kind').lower()]}"
    where = {"path": request.path} if request.path else {}
    return call_tool("search_files", pattern=name_pattern(glob), glob=glob, **where)


@FILE_PHRASES.add(
    "(?:<list>|what|which|how many) <the>(?:files?|contents?|everything|directory|folder|stuff)"
    f"(?: and (?:folders|directories))?{_THERE}(?: <in> <here>| here)?",
    "(?:list|ls|dir)(?: <here>)?",
    "(?:(?:list|show|tell)(?: me)? )?what<is> (?:here|in <here>)",
)
def _list_here(_: Request) -> GuideRoutine | None:
    return call_tool("list_directory", path=".")


_LISTED = (
    "list <the>(?:<folder> )?{0}(?: <folder>)?",
    "ls {0}",
    "<list> <the>(?:<folder> {0}|{0} <folder>)",
    f"(?:<list>|what|which|how many) <the>(?:files|contents?|everything){_THERE} <in> <the>{{0}}(?: <folder>)?",
    "(?:(?:list|show|tell)(?: me)? )?what<is> (?:in|inside) <the>{0}(?: <folder>)?",
)


@FILE_PHRASES.add(*(pattern.format("<path>") for pattern in _LISTED if pattern.count("{0}") == 1))
@FILE_PHRASES.add(*(pattern.format("<name>") for pattern in _LISTED if pattern.count("{0}") == 1), trust=Trust.GUESS)
@FILE_PHRASES.add("<list> <the><folder> <name>", "<list> <the><name> <folder>", trust=Trust.GUESS)
def _list(request: Request) -> GuideRoutine | None:
    path = request.path
    return call_tool("list_directory", path=path) if path and path.lower() not in STOP_WORDS | {"tools"} else None


# ── searching ───────────────────────────────────────────────────────────────────────────────────────

_MATTER = (
    "(?:(?:word|text|string|phrase|uses?|usages?|occurrences?|mentions?|lines?|function|class|method|variable)"
    "(?: of| with| named| called)? )*"
)
_WHERE = (
    r"(?: <in> (?:<here>|all (?:the )?files|<the><kind> files|(?P<glob>\S*\*\S*)"
    r"|<the>(?:<folder> )?<name>(?: <folder>)?)"
    r"| everywhere| anywhere)*"
)
_CONTAIN = "(?:contains?|mentions?|uses?|ha(?:ve|s)|imports?|references?|is|are)"
_NO_PLACES = frozenset(("web", "internet", "google", "world"))


@FILE_PHRASES.add(
    f"(?:in )?(?:which|what) files? {_CONTAIN} <the>{_MATTER}<word>(?: in(?: it| them)?)?",
    f"<find> (?:(?:the|all|every|any|an?) )*{_MATTER}<word>(?:(?:<is>)? <defined>)?{_WHERE}",
    f"(?:find|show me|tell me) where <the>{_MATTER}<word>(?:<is>) (?:<defined>|from){_WHERE}",
    f"(?:search|grep|look) (?:in |through |inside )?(?:<here>|<the><name>) for <the>{_MATTER}"
    rf"(?P<word>{TOKEN}|\S+(?: \S+){{0,3}})",
    f"(?:is there|are there|do we have) <the>{_MATTER}<word>(?: left)?{_WHERE}",
    f"where (?:do|does|did) (?:we|i|you|it) (?:use|call|define|import) <the>{_MATTER}<word>{_WHERE}",
    trust=Trust.GUESS,
)
def _find(request: Request) -> GuideRoutine | None:
    word, path = request.get("word"), request.path
    asks = re.match(r"(?:where|is there|are there|do we)", without_courtesy(request.words.text), re.IGNORECASE)
    is_talk = word.isalpha() and (word.islower() or word.istitle()) if asks else word.lower() in STOP_WORDS
    if (is_talk and not request.is_quoted("word")) or (path and path.lower() in _NO_PLACES):
        return None
    where = {"path": path} if path else {}
    if glob := request.get("glob"):
        where["glob"] = glob
    elif kind := request.get("kind"):
        where["glob"] = f"*.{ENDINGS[kind.lower()]}"
    if re.fullmatch(r"[A-Z]{3,}s", word) and not request.is_quoted("word"):
        word = word[:-1]  # of TODOs, the singular is in the files
    is_pattern = len(word) > 2 and word.startswith("/") and word.endswith("/")
    return call_tool("search_files", pattern=word[1:-1] if is_pattern else escape_pattern(word), **where)


@FILE_PHRASES.add(
    "(?:<find>|list|show me|is there) <the>files? (?:named|called|with the name) <word>(?: <in> (?:<here>|<name>))?"
)
def _find_named(request: Request) -> GuideRoutine | None:
    where = {"path": request.path} if request.path else {}
    return call_tool("search_files", pattern=escape_pattern(request.get("word")), **where)
