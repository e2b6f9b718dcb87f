"""The commands and options that the documentation names exist."""

import re
from pathlib import Path

import pytest

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
