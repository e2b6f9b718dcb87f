"""Finds the code that a command runs besides its program: the script of an interpreter, a shell text or a module.

Any word may be the name of a program (`timeout 5 sh run.sh`, `git -c core.pager=less`), so all words are checked. Three
kinds of programs are listed, because they run code that no word names, or no code at all:

- Shells and languages run a script. Only the form `sh [-e] FILE` says which one.
- Some programs accept code (`awk`, `sed`), or find the programs they run (`xargs`, `find -exec`). They are never clear.
- Inert programs run nothing else, with any arguments. Only they may read from a pipe, because other programs may run
  their input.

A program that is not listed may have only plain words. They contain no character with a meaning for a shell or a
language, because a word may be code that the program runs.
"""

import re
from collections.abc import Sequence

import msgspec

from dragoman.assistant.tools.plain_command import PlainCommand, UnclearCommandError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


HARMLESS_VARIABLES = _names(
    "CI COLUMNS DEBUG FORCE_COLOR GOARCH GOOS LANG LANGUAGE LINES LOG_LEVEL NODE_ENV NO_COLOR PYTHONDONTWRITEBYTECODE "
    "PYTHONUNBUFFERED RUST_BACKTRACE RUST_LOG TERM TZ V VERBOSE LC_ALL LC_CTYPE"
)
"""Variables that a command may set. They select no program, library or directory."""

INERT = _names(
    "basename cat cmp comm cut date df diff dirname du echo egrep false fgrep fold grep head id jq ls md5sum nl "
    "printenv pwd rev seq sha1sum sha256sum sleep stat tac tail tr true type uname wc which whoami"
)
"""Programs that run nothing else and write no file, with any arguments."""

_FILTERS = INERT | {"base64", "column", "sort", "tee", "uniq"}
"""Programs that may follow a pipe, because they treat its output only as data."""

_READ_ONLY = INERT | {"cd", "printf", "test"}
"""Programs that write no file."""

_SHELL_WORDS = _names(
    ". : alias autoload bg bind break builtin caller case chdir command compgen complete compopt continue coproc "
    "declare dirs disown do done elif else emulate enable esac eval exec exit export fc fg fi for foreach function "
    "functions getopts hash help history if in integer jobs kill let limit local logout mapfile nocorrect noglob popd "
    "print private pushd read readarray readonly rehash repeat return sched select set setopt shift shopt source "
    "suspend then time times trap typeset ulimit umask unalias unfunction unhash unlimit unset unsetopt until "
    "vared wait whence where while zcompile zmodload"
)
"""Words that the shell itself interprets. Some run text, others change how the rest is read."""

_POSIX_SHELL = re.compile(r"(?:ba|da|z|m?k|a)?sh")
"""Shells that read a text in the way of `plain_command`."""
_SHELL = re.compile(r"(?:r?ba|da|z|m?k|pdk|lk|a|fi|c|tc|pw)?sh(?:[-0-9].*)?|sh\.distrib|xonsh|nu|elvish|powershell")
_PYTHON = re.compile(r"(?:python|pypy)(?:[0-9].*)?")
_LANGUAGE = re.compile(
    r"(?:python|pypy|lua|luajit|node|nodejs|perl|php|ruby|tclsh|wish|guile)(?:[0-9].*)?"
    r"|bun|deno|ts-node|tsx|java|kotlin|scala|groovy|clojure|clj|bb|julia|[Rr]script|elixir|escript|erl|racket|dotnet"
    r"|swift|runghc|runhaskell|ocaml|janet|fennel|raku|crystal|expect|osascript|cscript|wscript|mono"
)
_RUNS_CODE = re.compile(
    r"[gmn]?awk|g?sed|g?xargs|parallel|rush|eval|trap|source|entr|watchexec|nodemon|vim?|nvim|view|vimdiff|ex|ed|red|emacs"
    r"|emacsclient|nano|gdb|lldb|dc|m4|sqlite3|psql|mysql|mariadb|mongosh?|redis-cli|gnuplot|octave|R|irb|pry|ipython3?"
    r"|iex|ghci|jshell|sbcl|clisp|ecl|at|batch|crontab|tmux|screen|direnv|mise|run-parts|foreach|forall"
)
_RUNS_BY_ARGUMENT = (
    (re.compile(r"find|fd|fdfind"), re.compile(r"-(?:exec|execdir|ok|okdir|x|X)|--exec(?:-batch)?(?:=.*)?")),
    (re.compile(r"git"), re.compile(r"-c.*|--config-env.*|--exec-path.*")),
    (re.compile(r"npm|pnpm|yarn"), re.compile(r"exec|explore|dlx|workspaces?")),
)
"""Programs with the arguments that make them run other programs, or run in another directory."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,@+-]*")
_PLAIN_WORD = re.compile(r"(?:[A-Za-z0-9_./,:=@%+~ -]|[^\W\x00-\x7f])*")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
"""In an address, it may encode any character."""
_PARTS = re.compile(r"[=:,@+%]")
_SHELL_OPTION = re.compile(r"-[euxvnl]+")
_SHELL_TEXT = re.compile(r"-[euxvnl]*c")
_PYTHON_OPTION = re.compile(r"-[BEIOPSsuvqb]+")
_PYTHON_MODULE = re.compile(r"-[BEIOPSsuvqb]*m(.*)")
_PYTHON_TOOLS = _names(
    "black build compileall flake8 isort json.tool mypy nox pip pylint pyright basedpyright pytest ruff tox unittest"
)
"""Modules for `python -m` that accept neither code nor another module as an argument."""
_VERSION = frozenset(("--version", "-version", "-V", "-v", "--help", "-h"))


class Program(msgspec.Struct, frozen=True):
    """The program of a command and the code that it would run, as far as its words tell."""

    words: tuple[str, ...]
    """All words, and the parts of quoted words between blanks."""
    texts: tuple[str, ...] = ()
    """Texts that a shell runs."""
    scripts: tuple[str, ...] = ()
    """Words that are clear only if they are regular files."""
    modules: tuple[str, ...] = ()
    """Python modules that are clear only if they are outside of the project."""
    inert: bool = False
    """Whether it runs nothing but itself."""
    writes: bool = True
    """Whether it may change a file."""


def find_program(command: PlainCommand) -> Program:
    """Return the program that a command would run. Raises UnclearCommandError."""
    for assignment in command.assignments:
        _check_variable(assignment)
    # The first word decides. A known inert program is safe with any arguments. A shell keyword is never clear. Each
    # word of any other program may name a second program or a script.
    name = command.words[0]
    if command.joined_by == "|" and name not in _FILTERS:
        raise UnclearCommandError(f"what {name} does with the output of another command is unknown")
    if name in INERT or command.words[:2] in (("command", "-v"), ("command", "-V")):
        return Program(command.words, inert=True, writes=bool(command.outputs))
    if name in _SHELL_WORDS:
        raise UnclearCommandError(f"{name} is a shell builtin")
    texts, rest = _split_text(command.words)
    words = tuple(part for word in rest for part in _plain_parts(word))
    scripts, modules = _find_scripts(words, has_input=bool(command.inputs))
    writes = bool(command.outputs) or name not in _READ_ONLY
    return Program(tuple(dict.fromkeys((*rest, *words))), texts, scripts, modules, writes=writes)


def _check_variable(assignment: str) -> None:
    match = _ASSIGNMENT.fullmatch(assignment)
    if match is None or match[1] not in HARMLESS_VARIABLES or not _PLAIN_VALUE.fullmatch(match[2]):
        raise UnclearCommandError(f"{assignment.partition('=')[0]} may change what runs")


def _split_text(words: Sequence[str]) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return the text of the first `sh -c TEXT`, and the words without that shell and its text."""
    for at, word in enumerate(words):
        if not _POSIX_SHELL.fullmatch(_base(word)):
            continue
        end = at + 1
        while end < len(words) and _SHELL_OPTION.fullmatch(words[end]):
            end += 1
        if end + 1 < len(words) and _SHELL_TEXT.fullmatch(words[end]) and not words[end + 1].startswith(("-", "+")):
            return (words[end + 1],), (*words[:at], *words[end + 2 :])
    return (), words


def _plain_parts(word: str) -> list[str]:
    if not _PLAIN_WORD.fullmatch(word) or _PERCENT.search(word):
        raise UnclearCommandError(f"{word!r} may be code that the program runs")
    if "PATH" in word:
        raise UnclearCommandError(f"{word!r} may change where programs are looked up")
    match = _ASSIGNMENT.fullmatch(word)
    if match is not None:
        _check_variable(word)
    return word.split()


def _find_scripts(words: Sequence[str], *, has_input: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    scripts: list[str] = []
    modules: list[str] = []
    for at, word in enumerate(words):
        base, behind = _base(word), words[at + 1 :]
        if _SHELL.fullmatch(base):
            scripts.extend(_script_of_shell(behind, has_input=has_input))
        elif _PYTHON.fullmatch(base):
            script, module = _run_by_python(behind)
            scripts.extend(script)
            modules.extend(module)
        elif _LANGUAGE.fullmatch(base):
            scripts.extend(_script_of_language(behind))
        elif _RUNS_CODE.fullmatch(base) or _holds_interpreter(word):
            raise UnclearCommandError(f"{word} runs an unknown program")
        elif any(
            program.fullmatch(base) and any(map(argument.fullmatch, behind)) for program, argument in _RUNS_BY_ARGUMENT
        ):
            raise UnclearCommandError(f"{word} runs files that it finds, or runs a program in another place")
    return tuple(scripts), tuple(modules)


def _script_of_shell(behind: Sequence[str], *, has_input: bool) -> Sequence[str]:
    at = 0
    while at < len(behind) and (_SHELL_OPTION.fullmatch(behind[at]) or behind[at : at + 2] == ("-o", "pipefail")):
        at += 1 if behind[at] != "-o" else 2
    if at == len(behind) and has_input:
        return ()
    return _script_of_language(behind[at:])


def _run_by_python(behind: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    at = 0
    while at < len(behind) and _PYTHON_OPTION.fullmatch(behind[at]) and behind[at] not in _VERSION:
        at += 1
    match = _PYTHON_MODULE.fullmatch(behind[at]) if at < len(behind) else None
    if match is None:
        return _script_of_language(behind[at:]), ()
    module = match[1] or (behind[at + 1] if at + 1 < len(behind) else "")
    if module not in _PYTHON_TOOLS:
        raise UnclearCommandError(f"the module {module} may run unknown code")
    return (), (module,)


def _script_of_language(behind: Sequence[str]) -> Sequence[str]:
    """Return the script of `python x.py …`. Raises UnclearCommandError for options before it, or without a script."""
    if behind and all(word in _VERSION for word in behind):
        return ()
    if not behind or behind[0].startswith(("-", "+")):
        raise UnclearCommandError("cannot tell which script the interpreter would run")
    return behind[:1]


def _holds_interpreter(word: str) -> bool:
    """Return whether a part of the word is an interpreter, as in `--shell=bash` or `-esh`."""
    parts = {*_PARTS.split(word), word[2:] if word.startswith("-") else ""} - {word}
    bases = [_base(part) for part in parts]
    return any(kind.fullmatch(base) for base in bases for kind in (_SHELL, _LANGUAGE, _RUNS_CODE))


def _base(word: str) -> str:
    return word.rpartition("/")[2]
