"""Phrases about the project: its overview, its tests, git, commands and plans."""

import re
from shlex import quote

from dragoman.assistant.models.guide import routines
from dragoman.assistant.models.guide.phrases import PhraseBook, Request, Trust
from dragoman.assistant.models.guide.prompt import TOKEN
from dragoman.assistant.models.guide.routines import GuideRoutine, call_tool, run, say
from dragoman.assistant.search.thesaurus import STOP_WORDS

PROJECT_PHRASES = PhraseBook()

_INTERPRETERS = {"py": "python3", "sh": "sh", "js": "node", "rb": "ruby"}
_GIT = (
    "add|apply|blame|branch|checkout|cherry-pick|clean|clone|commit|config|describe|diff|fetch|grep|init|log|ls-files|"
    "merge|mv|pull|push|rebase|reflog|remote|reset|restore|revert|rm|show|stash|status|submodule|switch|tag|worktree"
)
_PROGRAMS = (
    "ls|pwd|cd|make|npm|npx|pnpm|yarn|node|deno|bun|python3?|pip3?|pytest|uv|poetry|tox|ruff|mypy|pyright|cargo|rustc|"
    "docker|kubectl|mvn|gradle|tree|wc|du|df|head|tail|whoami|uname|date|sed|awk|curl|cmake|gcc|java|ruby|bundle"
)
"""Programs whose names begin a command that is typed as it is."""
_GO = "build|env|fmt|get|install|mod|run|test|version|vet"
_WORDS = "cat|echo|find|grep|rg|sort"
"""Programs whose names are words of requests too: a command of theirs has an option, a pipe or a redirection."""


# ── the project ─────────────────────────────────────────────────────────────────────────────────────

_PROJECT = "(?:project|repo|repository|code ?base|program|app|application|library|package)"


@PROJECT_PHRASES.add(
    "(?:what<is>|what does|what about|tell me (?:more )?about|explain|describe|summari[sz]e|introduce|show me)"
    f" (?:what )?<the>(?:whole |current )?{_PROJECT}(?: here)?(?: is| does)?(?: about| for| do| all| structure)*",
    "(?:(?:give|show)(?: me)? )?(?:an? |the )?(?:overview|summary|structure|tour)(?: of <here>)?",
    "what<is> (?:this|it) (?:all )?(?:about|for)",
    "where am i|what am i looking at(?: here)?",
)
def _explain_project(_: Request) -> GuideRoutine | None:
    return routines.explain_project()


_TESTS = "<the>(?:(?:unit|integration|whole|full|python|project's) )*(?:tests?|test suite|suite)"


@PROJECT_PHRASES.add(
    f"(?:run|execute|start|do|launch|try) {_TESTS}",
    f"(?:(?:check|see|tell me) (?:if|whether|that)|do|does|did|are|will) {_TESTS}"
    " (?:pass|passing|passed|ok|green|work|run|succeed|fail|failing)",
    "tests?(?: (?:it|everything|this|<here>))?",
)
def _run_tests(_: Request) -> GuideRoutine | None:
    return routines.run_task("test")


@PROJECT_PHRASES.add(
    "(?:(?:run|do|start) )?<the>(?P<task>build|compile|install)"
    "(?: (?:it|everything|this|<the>(?:dependencies|requirements|packages)|<here>))?",
)
def _run_task(request: Request) -> GuideRoutine | None:
    return routines.run_task("install" if request.get("task").lower() == "install" else "build")


# ── git ─────────────────────────────────────────────────────────────────────────────────────────────

_RECENT = "(?:(?:recent|latest|last|previous|uncommitted|local|pending|current|full|git) )*"
_CHANGED = "(?:changed?|changes|modified|edited|different|new|touched|modifications)"


@PROJECT_PHRASES.add(
    "(?:what|which(?: files?)?)(?: has| have| did i| did we|<is>)? <the>(?:files? |things? )?"
    f"{_CHANGED}(?: (?:since|recently|lately|so far|here|in <here>|today|yesterday|locally).*)?",
    f"(?:show|list|see|view|display|tell)(?: me)? (?:what |which files )?<the>{_RECENT}{_CHANGED}"
    "(?: files)?(?: (?:i|we) made)?",
    f"(?:what are |are there )?<the>{_RECENT}changes",
)
def _show_changes(_: Request) -> GuideRoutine | None:
    return run("git status --short --branch && git diff --stat")


_SHOWN = "(?:(?:show|list|see|view|display|give|print|what<is>)(?: me)? )?"


@PROJECT_PHRASES.add(f"{_SHOWN}<the>{_RECENT}(?P<what>status|diff|differences?)(?: of <here>)?")
def _show_status(request: Request) -> GuideRoutine | None:
    return run("git status" if request.get("what").lower() == "status" else "git diff")


@PROJECT_PHRASES.add(
    f"{_SHOWN}<the>{_RECENT}(?:<count> )?(?:commit |project |git )*(?:logs?|history|commits?)"
    "(?: of <here>| messages?)*",
    "(?:who|what)(?: has been| have i|<is>)? committ?ed(?: .*)?",
)
def _show_log(request: Request) -> GuideRoutine | None:
    return run(f"git log --oneline -n {request.get('count') or '20'}")


@PROJECT_PHRASES.add(
    f"(?:(?:show|list|see)(?: me)? |what(?:<is>)? |which )?<the>{_RECENT}branch(?:es)?"
    "(?: (?:am i on|are we on|is this|is it|are there|do we have|exist))?"
)
def _show_branches(_: Request) -> GuideRoutine | None:
    return run("git branch")


@PROJECT_PHRASES.add("(?:create|make|start|add) <the>(?:new )?(?:git )?branch <called><word>")
def _make_branch(request: Request) -> GuideRoutine | None:
    return run(f"git switch -c {quote(request.get('word'))}")


@PROJECT_PHRASES.add(
    "(?:switch|change|go|check ?out)(?: to)? <the>(?:git )?branch <word>",
    "(?:switch|change|go|check ?out)(?: to)? <the><word> branch",
)
def _switch_branch(request: Request) -> GuideRoutine | None:
    return run(f"git switch {quote(request.get('word'))}")


_ALL = "(?: (?:everything|it|this|all|<the>(?:changes|work|changed files|files|edits|updates|commits?)))?"


@PROJECT_PHRASES.add(
    f"(?:git )?commit{_ALL}(?:,? (?:with|as|using|and)(?: <the>(?:commit )?(?:message|comment))?:?)? <text>",
    rf"(?:git )?commit{_ALL}(?:,? (?:with|as|using))? <the>(?:commit )?message:? (?P<rest>\S.*)",
    f"(?:commit|check in){_ALL}(?: (?:in|to) git)?",
    "(?:make|create|do) <the>(?:new )?(?:git )?commit(?: (?:of|with) (?:everything|<the>changes))?",
)
def _commit(request: Request) -> GuideRoutine | None:
    return routines.commit(request.get("text") or request.get("rest") or None)


@PROJECT_PHRASES.add(f"(?P<verb>push|pull){_ALL}(?: (?:to|from) <the>(?:git|github|origin|remote|server))?")
def _push(request: Request) -> GuideRoutine | None:
    return run(f"git {request.get('verb').lower()}")


@PROJECT_PHRASES.add("(?:stage|git add) (?:everything|all|<the>(?:files|changes|changed files))")
def _stage(_: Request) -> GuideRoutine | None:
    return run("git add --all")


# ── commands ────────────────────────────────────────────────────────────────────────────────────────


@PROJECT_PHRASES.add("(?:run|execute|start) <path>")
def _run_file(request: Request) -> GuideRoutine | None:
    path = request.path
    if request.is_quoted("path"):
        return None
    if path is None:
        return say("What shall I run? Say the command, as in `run make test`.", is_done=False)
    program = _INTERPRETERS.get(path.rpartition(".")[2])
    return run(f"{program} {quote(path)}" if program and not path.startswith("./") else quote(path))


@PROJECT_PHRASES.add(
    f"(?:run|execute|exec|start)(?: <the>(?:shell )?command)?:? (?P<command>{TOKEN})(?: in (?:<here>|<the><name>))?",
    r"[$!] ?(?P<command>\S.*)",
)
@PROJECT_PHRASES.add(
    r"(?:run|execute|exec)(?: <the>(?:shell )?command)?(?:: ?| )(?P<command>\S.*)", trust=Trust.COMMAND
)
def _run_command(request: Request) -> GuideRoutine | None:
    command, path = request.get("command"), request.path
    if not request.is_quoted("command") and _is_talk(request.pieces["command"] or ""):
        return None
    return run(f"cd {quote(path)} && {command}" if path else command)


@PROJECT_PHRASES.add(
    rf"(?P<command>git (?:{_GIT})\b.*|go (?:{_GO})\b.*|(?:{_PROGRAMS})(?: .*)?|\./\S+.*"
    rf"|(?:{_WORDS}) .*(?:(?<=\s)-\w|[|<>]).*)"
)
def _run_typed(request: Request) -> GuideRoutine | None:
    piece = request.pieces["command"] or ""
    lists = re.fullmatch(r"ls(?:\s+[^\s*-][^\s*|;&>]*)?", piece)  # there is a tool for that, which asks for nothing
    return None if lists or _is_talk(piece) or re.search(r"\s(?:in|a)\s", piece) else run(request.get("command"))


_IN_COMMANDS = "a all as at do for if in just let m make more no not now on one only re s t then up who"
_TALK = STOP_WORDS - set(re.findall(r"\w+", _IN_COMMANDS))


def _is_talk(text: str) -> bool:
    """Tell whether words behind `run` or a program's name are ordinary language, by a word that no command has."""
    words = re.split(r"[\s,]+", text.lower())
    return words[0] in ("a", "all") or any(word in _TALK for word in words)


@PROJECT_PHRASES.add(r"(?:make a |set a )?(?:plan|todo|to-do)(?: list)?:\s*(?P<rest>\S.*)", verbatim=True)
def _plan(request: Request) -> GuideRoutine | None:
    texts = [text.strip(" -*\t") for text in re.split(r"[;\n]", request.get("rest"))]
    entries = [{"content": text, "priority": "medium", "status": "pending"} for text in texts if text]
    return call_tool("update_plan", entries=entries) if entries else None
