"""The commands and options that the documentation names exist."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest

from dragoman.cli.commands import build_parser
from dragoman.cli.completion import list_completions

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted(ROOT.glob("docs/*.md"))]
COMMANDS = {
    command.name: {option.name for option in command.options}
    for top in list_completions()
    for command in (top, *top.actions)
}
OPTIONS = set().union(*COMMANDS.values())
COMMAND = re.compile(r"(?:^|[`\s/])dragoman ((?:[a-z]+)(?: [a-z]+)?)(?=[ `\n])([^`\n#|]*)")


def commands_of(page):
    """Yield the commands of a page and the options that each is given, as far as its own `--`."""
    for name, rest in COMMAND.findall(page.read_text()):
        found = name if name in COMMANDS else name.split()[0]
        if found in COMMANDS:
            yield found, re.findall(r"(?<!\S)--[a-z][a-z-]*", rest.split(" -- ")[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_is_shown_with_options_that_it_has(page):
    for name, options in commands_of(page):
        assert set(options) <= COMMANDS[name], f"dragoman {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_table_of_options_has_options_that_exist(page):
    cells = re.findall(r"^\| (`--[^|]*) \|", page.read_text(), re.MULTILINE)
    named = {option for cell in cells for option in re.findall(r"`(--[a-z][a-z-]*)", cell)}
    assert named <= OPTIONS


def test_the_pages_show_every_command():
    shown = {name.split()[0] for page in PAGES for name, _ in commands_of(page)}
    assert {name.split()[0] for name in COMMANDS} <= shown


def lines_of(page):
    """Yield the commands of the code blocks of a page, each as its words; what a shell would put in is left out."""
    for block in re.findall(r"^ *```(?:sh|text|console)?\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\s*\$ |\s*(?:[A-Z_]+=\S+ )*)dragoman (?=[a-z])(.*)", line)
            if found and "…" not in found[1]:
                yield list(
                    takewhile(
                        lambda word: word not in {"|", "||", "&", "&&", ">"}, shlex.split(found[1], comments=True)
                    )
                )


WITH_EXAMPLES = [
    page for page in PAGES if page.name != "commands.md"
]  # that one has the usage of each, from its parser


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_a_command_in_a_block_is_one_that_its_parser_takes(page):
    for name, *arguments in lines_of(page):
        assert name in COMMANDS
        build_parser(name).read(arguments)
