"""Untrusted text in questions to the user: it stays in its line, and nothing in it is hidden.

The questions are whether to use a project's agent file, whether a tool call may run, and whether to install an agent.
"""

import contextlib
import io

from dragoman.agent.sessions.permission import describe_grant
from dragoman.agent.turns.prepared_call import Action, ProposedCall
from dragoman.assistant.profile import AgentServer, Profile, TextItem, describe_changes
from dragoman.assistant.profile.servers import Argument, ToolSettings
from dragoman.assistant.profile.settings import ModelOptions, ModelSettings, Secret
from dragoman.catalog.registry import Manifest, PackageCommand
from dragoman.cli.agents.install import print_entry
from dragoman.cli.terminal.permission import find_choices, question_rows
from dragoman.cli.terminal.rows import plain
from dragoman.client import ToolCallState
from dragoman.client.policies import OpaqueAction, PermissionQuestion, RunAction, WriteAction
from dragoman.protocol import v1
from dragoman.text import visible

MAX_CHARS = 200
WIDTH = 100_000
"""Width of a terminal in which no line wraps."""


def check(data):
    """Check one text in all questions."""
    text = data.decode(errors="replace")[:MAX_CHARS]
    _judge([text] * 8)


def check_made(provider):
    """Check several texts."""
    _judge([provider.ConsumeUnicode(provider.ConsumeIntInRange(0, 40)) for _ in range(8)])


def _judge(words):
    _judge_agent_file(words)
    _judge_permission(words)
    _judge_install(words)


def _judge_agent_file(words):
    """Check that each change of an agent file is one line, even if its parser would refuse the text."""
    one, two, three, four, five, six, seven, eight = words
    local = AgentServer(
        one, two, tuple(map(_argument, (three, four))), {five: Secret("x")}, six, tools={seven: ToolSettings("agent")}
    )
    far = AgentServer(eight, url=f"https://a.example/{one}", headers={two: Secret("x")}, transport="http")
    model = ModelSettings(
        three, base_url=f"https://a.example/{four}", options=ModelOptions(headers={five: Secret("x")})
    )
    items = (TextItem(six, seven), TextItem(eight, one))
    profile = Profile(model, two, servers=(local, far), rules=items, references=items)
    for change in (*describe_changes(profile), *describe_changes(Profile(), profile)):
        _assert_shown(change)


def _argument(word):
    return Argument(word.removeprefix("env://"))  # the parser checks variable names


def _judge_permission(words):
    """Check that a title and a grant are one line, and a command keeps its lines."""
    one, two, three, *_ = words
    _assert_shown(ProposedCall(one, "other").title)
    for action in (Action("write", f"/work/{one}\0{two}"), Action("read", three), Action("tool", one, two)):
        _assert_shown("".join(describe_grant(action, "/work")))
    options = [v1.PermissionOption(option_id=word, name=word, kind="allow_once") for word in words]
    for action, lines in (
        (RunAction(one, two), one.count("\n") + 2),
        (WriteAction(one), 1),
        (OpaqueAction(one, {two: three}), 3),
    ):
        call = ToolCallState("id", title=one)
        asked = PermissionQuestion("s", call, tuple(options), "/work", action)
        choices = find_choices(asked)
        rows = [plain(row) for row in question_rows(asked, choices, WIDTH)]
        for row in rows:
            _assert_shown(row)
        assert len(rows) <= 1 + lines + 1 + len(choices), rows


def _judge_install(words):
    """Check that the question before an installation has one line per fact."""
    one, two, three, four, *_ = words
    way = PackageCommand("uvx", one, [two, three], {"A": four})
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        print_entry(Manifest(one, None, two, three, four), (f"uvx: {one}",), way.command, way.env)
    lines = shown.getvalue().split("\n")
    assert len(lines) == 5, lines
    for line in lines:
        _assert_shown(line)


def _assert_shown(line):
    assert visible(line) == line, ascii(line)
