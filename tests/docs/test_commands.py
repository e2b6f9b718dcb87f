"""The documented commands and options exist. test_run_commands.py runs the commands in blocks."""

import importlib.util
import json
import re
import shlex
import tomllib
from itertools import takewhile

from dragoman.cli.commands import build_parser
from dragoman.cli.completion import list_completions
from tests.docs.pages import PAGES, ROOT, blocks_of, commands_of, prose_of
from tests.table import each_row

COMMANDS = {
    command.name: {option.name for option in command.options}
    for top in list_completions()
    for command in (top, *top.actions)
}
OPTIONS = set().union(*COMMANDS.values())
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
TARGETS = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
LANGUAGES = {"", "text", "sh", "console", "python", "json", "yaml", "toml"}
PROGRAMS = r"(?:dragoman|pip|pipx|uvx?|npm|npx|docker|podman|make|git|python3?|ssh|curl|sudo|mkdir|export) "
ARGUMENT = r"[a-zA-Z~/.\"'-][\w~/.\"'-]*(?:\s|$)"
# Pages whose text has prompts and agents' commands in backticks.
OF_AGENTS = {"models.md", "permissions.md", "quickstart.md"}
# Prefixes of a command: a shell prompt, a workflow step, variables, a clone, a package or a container.
BEFORE = r"(?:\$ |- run: |[A-Z_]+=\S+ )*(?:\.venv/bin/|uvx (?:--from \S+ )?|docker compose exec dragoman )?"


def per_page(pages):
    return each_row("page", pages)


def spans_of(page):
    """Return the code spans of a page, and each line of its commands and workflows."""
    spans = [span.strip() for _, span in re.findall(r"(`+)(.+?)\1", prose_of(page))]
    commands = [part for part in commands_of(page) if isinstance(part, list)]
    steps = [line for block in blocks_of(page) if block.language == "yaml" for line in block.text.splitlines()]
    return [*spans, *(command.text for part in commands for command in part), *(step.strip() for step in steps)]


def words_of(text):
    """Split a command up to the next shell command."""
    words = shlex.split(text, comments=True)
    return list(takewhile(lambda word: word not in {"|", "||", "&", "&&", ">", ">>", "<"}, words))


def invocations_of(page):
    """Return the arguments of every dragoman call on a page: in text, commands and editor settings."""
    for span in spans_of(page):
        for command in re.findall(rf"(?:^|\| |&& ){BEFORE}dragoman (?=[a-z-])(.*)", span):
            yield words_of(command)
    for block in blocks_of(page):
        if block.language == "json":
            yield from entries_of(json.loads(block.text))


def entries_of(value):
    """Return the arguments of each editor entry that starts dragoman."""
    if isinstance(value, dict):
        if str(value.get("command", "")).endswith("dragoman"):
            yield value["args"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from entries_of(each)


def is_mention(words):
    """Return whether a command is only named, without arguments."""
    return " ".join(words) in COMMANDS or words in (["--version"], ["--help"])


@per_page(PAGES)
def test_documented_commands_are_valid(page):
    for words in invocations_of(page):
        if not is_mention(words):
            assert words[0] in COMMANDS, words
            build_parser(words[0]).read(words[1:])


@per_page(PAGES)
def test_documented_options_exist(page):
    cells = re.findall(r"^\| (`--[^|]*) \|", page.read_text(), re.MULTILINE)
    named = {option for cell in cells for option in re.findall(r"`(--[a-z][a-z-]*)", cell)}
    assert named <= OPTIONS


def test_every_command_is_documented():
    shown = {words[0] for page in PAGES for words in invocations_of(page)}
    assert {name.split()[0] for name in COMMANDS} <= shown


@per_page(PAGES)
def test_documented_targets_extras_and_programs_exist(page):
    spans = [] if page.name in OF_AGENTS else spans_of(page)
    assert {target for span in spans for target in re.findall(r"^make ([a-z-]+)", span)} <= TARGETS
    extras = {name for names in re.findall(r"dragoman\[([a-z,-]+)\]", page.read_text()) for name in names.split(",")}
    assert extras <= EXTRAS
    for span in spans:
        for module in re.findall(r"^python3? -m ([\w.]+)", span):
            assert importlib.util.find_spec(module), module
        for file in re.findall(r"^\S*python3? ([\w./]+/\w+\.py)", span):
            assert (ROOT / file).exists(), file


@per_page(PAGES)
def test_commands_are_in_sh_or_console_blocks(page):
    """Commands in other blocks would not be run."""
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"line {block.line}"
        if block.language in ("", "text"):
            assert not re.search(rf"^\s*{BEFORE}{PROGRAMS}{ARGUMENT}", block.text, re.MULTILINE), f"line {block.line}"
    assert not re.search(rf"^(?: {{4}}|\t)\s*{BEFORE}{PROGRAMS}", prose_of(page), re.MULTILINE)


def test_exit_codes_of_run_are_documented():
    codes = re.findall(r"\b(\d+)\s[a-z]", build_parser("run").format_help().partition("Exit codes:")[2])
    assert codes == ["0", "1", "2", "3", "4", "5", "6", "124", "130"]
    page = (ROOT / "docs" / "ci.md").read_text()
    assert [code for code in codes if f"\n| {code} | " not in page] == []
