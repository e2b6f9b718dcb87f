"""The same option has one name, one meaning and one help text in all commands; old spellings go on working."""

import json
import os
import re
from collections import defaultdict
from pathlib import Path

import pytest

from dragoman.cli import COMMANDS
from dragoman.cli.commands import build_parser
from tests.commands import dragoman

DOCS = Path(__file__).parent.parent.parent / "docs"

SHARED = {
    "--cwd",
    "--mcp",
    "--policy",
    "--format",
    "--output",
    "--agent",
    "--agents",
    "--model",
    "--url",
    "--token-file",
}
WITH_DEFAULTS = {"--cwd", "--format", "--output", "--timeout"}
"""Options whose default, or whose formats, depend on the command."""


OTHER_MEANINGS = {("dragoman attach", "--agent"): "the name of an agent at the bridge; the bridge has its agent file"}


def parsers():
    for name in COMMANDS:
        parser = build_parser(name)
        yield parser
        yield from parser.actions.values()


def test_a_shared_option_has_one_help_text_and_one_argument():
    texts, metavars = defaultdict(set), defaultdict(set)
    for parser in parsers():
        for option in parser.options():
            name = option.option_strings[-1]
            if (parser.prog, name) in OTHER_MEANINGS:
                continue
            texts[name].add(re.sub(r" ?\(default.*", "", option.help) if name in WITH_DEFAULTS else option.help)
            metavars[name].add(option.metavar)
    texts["--url"].discard("the address of a server that stands in no file")  # of MCP, where the others are agents
    assert {name: texts[name] for name in SHARED - WITH_DEFAULTS if len(texts[name]) != 1} == {}
    assert len(texts["--cwd"]) == 1
    assert all(len(metavars[name]) == 1 for name in SHARED)


def test_options_with_several_values_are_repeatable_wherever_they_are():
    for parser in parsers():
        for option in parser.options():
            if option.option_strings[-1] in ("--mcp", "--policy", "--file"):
                assert option.default == [], parser.prog


def test_no_help_shows_an_old_spelling():
    for parser in parsers():
        assert not re.search(r"--(json|out)\b(?!put)", parser.format_help()), parser.prog


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["agents", "--json"], ["agents", "--format", "json"]),
        (["init", "--json"], ["init", "--format", "json"]),
        (["mcp", "--json"], ["mcp", "--format", "json"]),
        (["serve", "--json"], ["serve", "--format", "json"]),
        (["sessions", "--json"], ["sessions", "--format", "json"]),
        (["sessions", "export", "a", "--out", "f"], ["sessions", "export", "a", "--output", "f"]),
        (["tap", "--out", "f", "--", "a"], ["tap", "--output", "f", "--", "a"]),
        (["check", "trace", "f", "--format", "terminal"], ["check", "trace", "f", "--format", "text"]),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_an_old_spelling_means_the_same_as_the_new_one(old, new):
    assert read(old) == read(new)


def read(arguments):
    _, options = build_parser(arguments[0]).read(arguments[1:])
    return options


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sesions"], "there is no command 'sesions'; did you mean sessions?"),
        (["zzz"], "there is no command 'zzz'; expected one of agent, agents, attach,"),
        (["check", "agnet"], "there is no action 'agnet'; did you mean agent?"),
        (["mcp", "ad"], "there is no action 'ad'; did you mean add?"),
        (["sessions", "shwo"], "there is no action 'shwo'; did you mean show?"),
        (["run", "hi", "--modle", "guide"], "there is no option '--modle'; did you mean --model?"),
        (["run", "hi", "--modle=guide"], "there is no option '--modle'; did you mean --model?"),
        (["serve", "--prot", "1"], "there is no option '--prot'; did you mean --port?"),
        (["login", "antropic"], "there is no provider 'antropic' that takes a key; did you mean anthropic?"),
        (["run", "hi", "--model", "guid"], "there is no model 'guid'; did you mean guide?"),
        (["chat", "--model", "antropic:claude-opus-5"], "did you mean anthropic:claude-opus-5?"),
        (["serve", "--model", "anthropic"], "there is no model 'anthropic'; did you mean anthropic:NAME?"),
        (["agent", "--model", "olama:qwen3"], "there is no model 'olama:qwen3'; did you mean ollama:qwen3?"),
        (["run", "hi", "ho"], "'ho' is one word too many; dragoman run --help shows what it takes"),
        (["check"], "which action? expected one of agent, client, trace, matrix, rule"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_not_there_is_named_with_what_is_near(arguments, said):
    done = dragoman(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("arguments", [["run", "hi"], ["chat"], ["sessions"], ["serve"], ["check", "agent"]])
def test_a_name_that_is_almost_that_of_an_agent_is_not_started(arguments):
    home = Path(os.environ["DRAGOMAN_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "agents.json").write_text(json.dumps({"agents": {"nightly": {"command": "true"}}}))
    done = dragoman(*arguments, "--", "nihgtly")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no command and no agent 'nihgtly'; did you mean nightly?" in done.stderr


PAGES = {
    "agent": ["editors", "scaling"],
    "agents": ["sessions"],
    "attach": ["editors"],
    "chat": ["chat"],
    "check": ["check"],
    "completion": ["sessions"],
    "init": ["editors", "agent-file", "kit"],
    "login": ["models"],
    "logout": ["models"],
    "mcp": ["mcp"],
    "run": ["run"],
    "serve": ["browser", "network", "bridge", "scaling"],
    "sessions": ["sessions"],
    "store": ["scaling"],
    "tap": ["tap"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_on_the_page_of_its_command(command):
    page = "".join((DOCS / f"{name}.md").read_text() for name in PAGES[command])
    parser = build_parser(command)
    known = [option for each in (parser, *parser.actions.values()) for option in each.options()]
    names = {option.option_strings[-1] for option in known} - {"--help"}
    assert {name for name in names if not re.search(rf"{name}\b(?!-)", page)} == set()


def test_an_option_is_not_cut_short():
    with pytest.raises(SystemExit) as ended:
        build_parser("sessions").read(["--lon"])
    assert ended.value.code == 2
