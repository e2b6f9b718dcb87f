"""The commands and options that the documentation names exist; those of its blocks are run by test_run_commands.py."""

import importlib.util
import json
import re
import shlex
import tomllib
from itertools import takewhile

import pytest

from dragoman.cli.commands import build_parser
from dragoman.cli.completion import list_completions
from tests.docs.pages import GENERATED, PAGES, ROOT, blocks_of, commands_of, name_of, prose_of

COMMANDS = {
    command.name: {option.name for option in command.options}
    for top in list_completions()
    for command in (top, *top.actions)
}
OPTIONS = set().union(*COMMANDS.values())
WITH_EXAMPLES = [page for page in PAGES if page.name not in GENERATED]
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
TARGETS = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
LANGUAGES = {"", "text", "sh", "console", "python", "json", "yaml", "toml"}
PROGRAMS = r"(?:dragoman|pip|pipx|uvx?|npm|npx|docker|podman|make|git|python3?|ssh|curl|sudo|mkdir|export) "
ARGUMENT = r"[a-zA-Z~/.\"'-][\w~/.\"'-]*(?:\s|$)"
# Pages whose text has prompts, and commands of agents, in backticks.
OF_AGENTS = {"guide.md", "tools.md"}
# In front of a command: the prompt of a shell, a step of a workflow, variables; a clone, a package, a container.
BEFORE = r"(?:\$ |- run: |[A-Z_]+=\S+ )*(?:\.venv/bin/|uvx (?:--from \S+ )?|docker compose exec dragoman )?"


def per_page(pages):
    return pytest.mark.parametrize("page", pages, ids=name_of)


def spans_of(page):
    """Give what stands in backticks in the text of a page, and each line of its commands and its workflows."""
    spans = [span.strip() for _, span in re.findall(r"(`+)(.+?)\1", prose_of(page))]
    commands = [part for part in commands_of(page) if isinstance(part, list)]
    steps = [line for block in blocks_of(page) if block.language == "yaml" for line in block.text.splitlines()]
    return [*spans, *(command.text for part in commands for command in part), *(step.strip() for step in steps)]


def words_of(text):
    """Split a command as far as the shell's next one."""
    words = shlex.split(text, comments=True)
    return list(takewhile(lambda word: word not in {"|", "||", "&", "&&", ">", ">>", "<"}, words))


def invocations_of(page):
    """Give the arguments of every dragoman on a page, in text, in commands and in entries of editors."""
    for span in spans_of(page):
        for command in re.findall(rf"(?:^|\| |&& ){BEFORE}dragoman (?=[a-z-])(.*)", span):
            yield words_of(command)
    for block in blocks_of(page):
        if block.language == "json":
            yield from entries_of(json.loads(block.text))


def entries_of(value):
    """Give the arguments of each entry that starts dragoman."""
    if isinstance(value, dict):
        if str(value.get("command", "")).endswith("dragoman"):
            yield value["args"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from entries_of(each)


def is_mention(words):
    """Say whether a command is only named, without an argument."""
    return " ".join(words) in COMMANDS or words in (["--version"], ["--help"])


@per_page(WITH_EXAMPLES)
def test_a_command_is_one_that_its_parser_takes(page):
    for words in invocations_of(page):
        if not is_mention(words):
            assert words[0] in COMMANDS, words
            build_parser(words[0]).read(words[1:])


@per_page(PAGES)
def test_a_table_of_options_has_options_that_exist(page):
    cells = re.findall(r"^\| (`--[^|]*) \|", page.read_text(), re.MULTILINE)
    named = {option for cell in cells for option in re.findall(r"`(--[a-z][a-z-]*)", cell)}
    assert named <= OPTIONS


def test_the_pages_show_every_command():
    shown = {words[0] for page in WITH_EXAMPLES for words in invocations_of(page)}
    assert {name.split()[0] for name in COMMANDS} <= shown


@per_page(PAGES)
def test_targets_extras_and_programs_of_the_repository_exist(page):
    spans = [] if page.name in OF_AGENTS else spans_of(page)
    assert {target for span in spans for target in re.findall(r"^make ([a-z-]+)", span)} <= TARGETS
    extras = {name for names in re.findall(r"dragoman\[([a-z,-]+)\]", page.read_text()) for name in names.split(",")}
    assert extras <= EXTRAS
    for span in spans:
        for module in re.findall(r"^python3? -m ([\w.]+)", span):
            assert importlib.util.find_spec(module), module
        for file in re.findall(r"^\S*python3? ([\w./]+/\w+\.py)", span):
            assert (ROOT / file).exists(), file


@per_page(WITH_EXAMPLES)
def test_commands_stand_in_blocks_of_sh_or_console(page):
    """Others would not be run."""
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"line {block.line}"
        if block.language in ("", "text"):
            assert not re.search(rf"^\s*{BEFORE}{PROGRAMS}{ARGUMENT}", block.text, re.MULTILINE), f"line {block.line}"
    assert not re.search(rf"^(?: {{4}}|\t)\s*{BEFORE}{PROGRAMS}", prose_of(page), re.MULTILINE)


def test_every_exit_code_of_the_help_of_run_is_on_its_page():
    codes = re.findall(r"\b(\d+)\s[a-z]", build_parser("run").format_help().partition("Exit codes:")[2])
    assert codes == ["0", "1", "2", "3", "4", "5", "6", "124", "130"]
    page = (ROOT / "docs" / "run.md").read_text()
    assert [code for code in codes if f"\n| {code} | " not in page] == []
