"""The same option has one name, one meaning and one help text in all commands."""

import json
import os
import re
from collections import defaultdict
from pathlib import Path

import pytest

from dragoman.cli import COMMANDS
from dragoman.cli.commands import build_parser
from dragoman.testing import steps
from tests.commands import dragoman, scripted

SCRIPTED = ["--", *scripted([steps.Say("hello")])]

DOCS = Path(__file__).parent.parent.parent / "docs"

DEPEND_ON_COMMAND = {
    "--agent-name",
    "--cwd",
    "--format",
    "--output",
    "--protocol",
    "--start-timeout",
    "--store",
    "--yes",
}
"""Options with one meaning, whose help names the default, values or object of each command."""


def parsers():
    for name in COMMANDS:
        parser = build_parser(name)
        yield parser
        yield from parser.actions.values()


def test_option_has_one_meaning_in_all_commands():
    texts, metavars = defaultdict(set), defaultdict(set)
    for parser in parsers():
        for option in parser.options():
            name = option.option_strings[-1]
            texts[name].add(option.help)
            metavars[name].add(option.metavar)
    assert {name for name, known in texts.items() if len(known) > 1} == DEPEND_ON_COMMAND
    assert {name for name, known in metavars.items() if len(known) > 1} == set()


def test_multi_value_options_are_repeatable_everywhere():
    for parser in parsers():
        for option in parser.options():
            if option.option_strings[-1] in ("--mcp", "--policy", "--file"):
                assert option.default == [], parser.prog


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
        (["run", "hi", "--modell", "guide"], "there is no option '--modell'; did you mean --model?"),
        (["run", "hi", "--modell=guide"], "there is no option '--modell'; did you mean --model?"),
        (["serve", "--prot", "1"], "there is no option '--prot'; did you mean --port?"),
        (["login", "antropic"], "there is no provider 'antropic' that needs a key; did you mean anthropic?"),
        (["run", "hi", "--model", "guid"], "there is no model 'guid'; did you mean guide?"),
        (["chat", "--model", "antropic:claude-opus-5"], "did you mean anthropic:claude-opus-5?"),
        (["serve", "--model", "anthropic"], "there is no model 'anthropic'; did you mean anthropic:NAME?"),
        (["run", "hi", "--model", "gpt-5"], "there is no model 'gpt-5'; did you mean openai:gpt-5?"),
        (["run", "hi", "--model", "o3"], "there is no model 'o3'; did you mean openai:o3?"),
        (["run", "hi", "--model", "claude"], "there is no model 'claude'; did you mean anthropic:NAME?"),
        (["run", "hi", "--model", "claude:opus"], "there is no model 'claude:opus'; did you mean anthropic:opus?"),
        (["chat", "--model", "qwen3:8b"], "there is no model 'qwen3:8b'; did you mean ollama:qwen3:8b?"),
        (["agent", "--model", "olama:qwen3"], "there is no model 'olama:qwen3'; did you mean ollama:qwen3?"),
        (["run", "hi", "ho"], "'ho' is not expected here; put a prompt of several words in quotes"),
        (["chat", "ho"], "'ho' is not expected here; run dragoman chat --help"),
        (["check"], "no action given; expected one of agent, client, trace, matrix, rule"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_unknown_name_is_reported_with_a_similar_one(arguments, said):
    done = dragoman(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("arguments", [["run", "hi"], ["chat"], ["sessions"], ["serve"], ["check", "agent"]])
def test_name_similar_to_an_agent_is_not_started(arguments):
    home = Path(os.environ["DRAGOMAN_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "agents.json").write_text(json.dumps({"agents": {"nightly": {"command": "true"}}}))
    done = dragoman(*arguments, "--", "nihgtly")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no command and no agent 'nihgtly'; did you mean nightly?" in done.stderr


PAGES = {
    "agent": ["editors", "scaling", "extensions"],
    "agents": ["sessions"],
    "attach": ["editors"],
    "chat": ["terminal"],
    "check": ["check"],
    "completion": ["sessions"],
    "editor": ["editors"],
    "init": ["agent-file"],
    "login": ["models"],
    "logout": ["models"],
    "mcp": ["mcp"],
    "new": ["kit"],
    "run": ["ci"],
    "schema": ["agent-file"],
    "serve": ["browser", "network", "container", "scaling", "models", "agent-file", "editors"],
    "sessions": ["sessions"],
    "store": ["scaling"],
    "tap": ["tap"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_on_the_page_of_its_command(command):
    page = "".join((DOCS / f"{name}.md").read_text() for name in PAGES[command])
    parser = build_parser(command)
    known = [option for each in (parser, *parser.actions.values()) for option in each.options()]
    names = {option.option_strings[-1] for option in known} - {"--help", "--format"}
    assert {name for name in names if not re.search(rf"{name}\b(?!-)", page)} == set()


def test_options_cannot_be_abbreviated():
    with pytest.raises(SystemExit) as ended:
        build_parser("sessions").read(["--lon"])
    assert ended.value.code == 2


JSON_COMMANDS = [
    ["agents"],
    ["editor", "zed"],
    ["init"],
    ["mcp"],
    ["new", "my-notes"],
    ["run", "hi", *SCRIPTED],
    ["run", "hi", "--model", "guide"],
    ["sessions"],
    ["store", "prune", "--delete-after", "1d"],
]


def keys_of(value):
    """Yield every key of our objects. `content` and `parameters` contain the protocols' objects."""
    for each in value if isinstance(value, list) else ():
        yield from keys_of(each)
    for name, each in value.items() if isinstance(value, dict) else ():
        yield name
        if name not in ("content", "parameters"):
            yield from keys_of(each)


@pytest.mark.parametrize("command", JSON_COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_json_keys_are_in_snake_case(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_STORE", raising=False)
    at = command.index("--") if "--" in command else len(command)
    done = dragoman(*command[:at], "--format", "json", *command[at:])
    assert done.returncode == 0, done.stderr
    keys = set(keys_of(json.loads(done.stdout)))
    assert {key for key in keys if not re.fullmatch("[a-z0-9_]+", key)} == set()
