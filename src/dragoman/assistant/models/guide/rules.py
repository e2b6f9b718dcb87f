"""The rules of the guide: patterns of requests, each with the routine that it starts.

A pattern has to match the whole request, without the polite words around it. Text for a file is used only if the user
marked it with quotes, a code block or a colon: the guide never writes words that it did not understand.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from dragoman.assistant.models.guide.named_tool import find_named
from dragoman.assistant.models.guide.prompt import QUOTED, Prompt, unquote_text, without_courtesy, without_lead
from dragoman.assistant.models.guide.routines import (
    GuideRoutine,
    call_tool,
    explain_project,
    refuse,
    replace_text,
    run,
    run_tests,
    say,
    show_entry,
    show_files,
)
from dragoman.assistant.models.guide.talk import CONNECT, NOT_UNDERSTOOD, small_talk
from dragoman.assistant.models.model import ToolDefinition

MAX_CHARS = 4_000
"""A longer prompt is pasted material, which no rule is for. Only the text of a file to write may be longer."""

_KNOWN_FILES = {"readme": "README.md", "makefile": "Makefile", "license": "LICENSE", "changelog": "CHANGELOG.md"}
_THIS = r"(?:it|this|them|(?:this|that|the) file|these files)"
_WORD = rf"(?:{QUOTED}|[^\s,;:?!]+)"
_THE = r"(?:(?:the|a|an|all|every|any|my|this|new|text|file|folder|directory|called|named|of)\s+)*"
_DIRECTORY = r"(?: (?:folder|directory))?"
_HERE = (
    r"(?:here|(?:the |this |my )?(?:current |working |whole )?(?:directory|folder|project|repo|repository|code|files))"
)
_PATH = rf"(?P<path>{_THIS}|{_WORD})"
_SHOW = r"(?:read|open|show|view|display|print|cat|see|look at)(?: me)?"
_MAKE = r"(?:write|create|make|add|save)"
_PROJECT = r"(?:project|repo|repository|codebase|code base|package|app)"
_TESTS = r"(?:(?:all|the|my|unit|project's) )*(?:tests?|test suite)"
_LINES = r"(?:lines? (?P<first>\d+)(?:(?:-| to )(?P<last>\d+))?|(?:first|top) (?P<count>\d+) lines)"
_GIT = "status|diff|log|show|branch|add|commit|push|pull|fetch|stash|switch|checkout|restore|remote|blame|init"
_ORDINARY = re.compile(r"(?:the|a|an|all|my|this|that|it|them|your|away|out|for)\b", re.IGNORECASE)
"""Words after `run` that begin no command."""


class Request(msgspec.Struct, frozen=True):
    """A request that matches a pattern. `last_path` is the file that the turns before named last."""

    prompt: Prompt
    pieces: dict[str, str | None]
    last_path: str | None

    def get(self, name: str) -> str:
        """Return the text of a group of the pattern, without the marks around it."""
        return unquote_text(self.pieces.get(name) or "")

    @property
    def path(self) -> str | None:
        """The path that the request names. "it" is the attached file, or the file that was named last."""
        piece = self.pieces.get("path")
        if piece is None or re.fullmatch(_THIS, piece, re.IGNORECASE):
            return self.prompt.files[0].path if self.prompt.files else self.last_path
        path = unquote_text(piece)
        path = path[1:] if path.startswith("@") and len(path) > 1 else path
        return _KNOWN_FILES.get(path.lower(), path)

    @property
    def is_path(self) -> bool:
        """Whether the word for the path is surely one."""
        piece, path = self.pieces.get("path") or "", self.path or ""
        is_marked = piece[:1] in tuple("@`'\"“") or piece.lower() in _KNOWN_FILES
        return is_marked or path in (".", "..", "~") or re.search(r"/|\.\w+\Z", path) is not None


def _write(request: Request) -> GuideRoutine | None:
    path = request.path
    return call_tool("write_file", path=path, content=request.get("text")) if path and request.is_path else None


def _ask_for_text(request: Request) -> GuideRoutine | None:
    if not request.is_path:
        return None
    path = request.path
    return refuse(
        f"I can't write text of my own without a language model. To create `{path}`, include its text: "
        f"`write {path}: your text`. {CONNECT}"
    )


def _replace(request: Request) -> GuideRoutine | None:
    path = request.path
    return (
        replace_text(path, request.get("old"), request.get("new")) if path and request.get("old") else _ask_for_file()
    )


def _read(request: Request) -> GuideRoutine | None:
    # An attached file needs no tool. A word that may not be a path, as in `read setup`, is looked up in the directory.
    path, piece = request.path, request.pieces.get("path")
    if piece is None or re.fullmatch(_THIS, piece, re.IGNORECASE):
        if request.prompt.files:
            return show_files(request.prompt.files)
    elif path and (file := request.prompt.find_file(path)):
        return show_files([file])
    if path is None:
        return _ask_for_file()
    if path.endswith("/") or path in (".", "..", "~"):
        return call_tool("list_directory", path=path)
    return call_tool("read_file", path=path) if piece is None or request.is_path else show_entry(path)


def _read_lines(request: Request) -> GuideRoutine | None:
    path = request.path
    if path is None:
        return _ask_for_file()
    first = max(int(request.get("first") or 1), 1)
    last = int(request.get("last") or request.get("count") or first)
    return call_tool("read_file", path=path, start_line=first, line_count=max(last - first + 1, 1))


def _list(request: Request) -> GuideRoutine | None:
    return call_tool("list_directory", path=request.path if request.pieces.get("path") else ".")


def _find(request: Request) -> GuideRoutine | None:
    word = request.get("word")
    where = {"path": request.path} if request.pieces.get("path") else {}
    if re.fullmatch(r"\*\.\w+", word):
        return call_tool("search_files", pattern=f"{re.escape(word[1:])}$", glob=word, **where)
    if re.fullmatch(r"[A-Z]{3,}s", word):
        word = word[:-1]  # the files have TODO, not TODOs
    return call_tool("search_files", pattern=re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", word), **where)


def _run(request: Request) -> GuideRoutine | None:
    return None if _ORDINARY.match(request.pieces["command"] or "") else run(request.get("command"))


def _ask_for_file() -> GuideRoutine:
    return refuse("Which file do you mean? Name it, such as `read README.md`.")


Answer = Callable[[Request], GuideRoutine | None]


def _rule(answer: Answer, *patterns: str) -> list[tuple[re.Pattern[str], Answer]]:
    spaced = [pattern.replace("'", "['\u2019]").replace(" ", r"\s+") for pattern in patterns]
    return [(re.compile(pattern, re.IGNORECASE | re.DOTALL), answer) for pattern in spaced]


_WRITE_REST = re.compile(
    rf"{_MAKE}\s+{_THE}{_PATH}(?:\s+(?:with|containing))?:\s*(?P<text>\S.*)", re.IGNORECASE | re.DOTALL
)
"""Here everything after the colon is text for the file, even if it looks like a request."""
_RULES = (
    *_rule(
        _write,
        rf"(?:write|put|save) (?P<text>{QUOTED}) (?:to|into|in|as) {_THE}{_PATH}",
        rf"{_MAKE} {_THE}{_PATH},? (?:and )?(?:with|containing|saying|that says)(?: the (?:text|content|line))?:? "
        rf"(?P<text>{QUOTED})",
        rf"{_MAKE} {_THE}empty {_THE}{_PATH}",
    ),
    *_rule(_ask_for_text, rf"{_MAKE} {_THE}{_PATH}(?: (?:with|containing|that|which|for|and) .*)?"),
    *_rule(
        _replace,
        rf"(?:(?:in|edit) {_PATH}[,:]? )?(?:replace|change|swap) (?P<old>{_WORD}) (?:by|with|to|for|->) "
        rf"(?P<new>{_WORD})",
        rf"(?:replace|change|swap) (?P<old>{_WORD}) (?:by|with|to|for|->) (?P<new>{_WORD}) in(?: {_THE}{_PATH})?",
    ),
    *_rule(lambda _: run("git status"), r"(?:show (?:me )?)?(?:the )?(?:git )?status", r"what is the git status"),
    *_rule(lambda _: run("git diff"), r"(?:show (?:me )?)?(?:the )?(?:git )?(?:diff|differences)"),
    *_rule(
        lambda _: run("git status --short --branch && git diff --stat"),
        r"what(?: has| have i| did i|'s)? changed?(?: .*)?",
        r"(?:show|list)(?: me)? (?:the |my |all |what )*(?:changes|changed(?: files)?)",
    ),
    *_rule(
        lambda _: run_tests(),
        rf"(?:run|execute|start|do) {_TESTS}",
        rf"(?:do|does|did|check (?:if|that)) {_TESTS} (?:pass|work|fail)",
        r"tests?(?: (?:it|this|everything))?",
    ),
    *_rule(
        lambda _: explain_project(),
        rf"(?:what is|what's|what does|tell me about|explain|describe|summari[sz]e) (?:the|this|my) {_PROJECT}"
        r"(?: about| do| for| to me)?",
        r"(?:give me )?an? (?:overview|summary)(?: of .*)?",
    ),
    *_rule(_run, rf"(?:run|execute)(?: the command)?:? (?P<command>{QUOTED}|\S.*)", r"\$\s*(?P<command>\S.*)"),
    *_rule(_run, rf"(?P<command>git (?:{_GIT})\b.*)"),
    *_rule(_read_lines, rf"{_SHOW} (?:the )?{_LINES} (?:of|in|from) {_PATH}", rf"{_SHOW} {_PATH},? {_LINES}"),
    *_rule(
        _list,
        rf"(?:list|ls|dir)(?: {_HERE})?",
        rf"(?:list|show(?: me)?|what|which) {_THE}files(?: (?:are|is))?(?: there| in)?(?: {_HERE})?",
        rf"(?:what is|what's) (?:in )?{_HERE}",
        rf"(?:list|ls) {_THE}(?:(?:files|contents|what is|what's) (?:in|of) {_THE})?{_PATH}{_DIRECTORY}",
        rf"(?:show me |what )(?:the )?files (?:are )?in {_THE}{_PATH}{_DIRECTORY}",
    ),
    *_rule(
        _read,
        r"(?P<path>@[^\s,;:?!]+)",
        rf"{_SHOW}(?: {_THIS})?",
        rf"{_SHOW} {_THE}(?:contents of {_THE})?{_PATH}(?: (?:file|folder|directory))?",
        rf"(?:what is|what's|whats) in {_THE}{_PATH}(?: (?:file|folder|directory))?",
        rf"what does {_THE}{_PATH} (?:say|contain)",
    ),
    *_rule(
        _find,
        rf"(?:find|search(?: for)?|grep(?: for)?|look for|where is|are there) {_THE}(?P<word>{_WORD})"
        rf"(?: defined| used)?(?: files)?(?: in (?:{_HERE}|{_THE}{_PATH}))?",
        rf"(?:search|grep|look)(?: in| through)? (?:{_HERE}|{_THE}{_PATH}) for (?P<word>{QUOTED}|\S+(?: \S+){{0,3}})",
        rf"which files (?:contain|mention|use|have) (?P<word>{_WORD})",
    ),
)


def understand(prompt: Prompt, last_path: str | None, tools: Sequence[ToolDefinition]) -> GuideRoutine:
    """Return the routine for a prompt. A prompt that no rule matches is refused."""
    words = prompt.words
    if rest := _WRITE_REST.fullmatch(without_lead(words)):
        routine = _write(Request(prompt, rest.groupdict(), last_path))
        if routine is not None:
            return routine
    if len(words) > MAX_CHARS:
        return refuse(NOT_UNDERSTOOD)
    if not words and prompt.files:
        return show_files(prompt.files)
    request = without_courtesy(words)
    talk = small_talk(words, tools) or small_talk(request, tools)
    if talk is not None:
        return say(talk)
    return (
        find_named(request, tools, is_sure=True)
        or _match_rules(request, prompt, last_path)
        or find_named(request, tools, is_sure=False)
        or refuse(NOT_UNDERSTOOD)
    )


def _match_rules(text: str, prompt: Prompt, last_path: str | None) -> GuideRoutine | None:
    for pattern, answer in _RULES:
        found = pattern.fullmatch(text)
        routine = answer(Request(prompt, found.groupdict(), last_path)) if found else None
        if routine is not None:
            return routine
    return None
