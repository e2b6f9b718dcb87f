"""Elicitation forms and permission requests in `dragoman chat`."""

import pytest

from dragoman.cli.chat.entry import fill_in
from dragoman.cli.terminal.permission import find_choices, find_refusal, question_rows
from dragoman.cli.terminal.rows import plain
from dragoman.client import Elicitation, ToolCallState, decline
from dragoman.client.policies import (
    ActionGroup,
    Decision,
    OpaqueAction,
    PermissionQuestion,
    ReadAction,
    RunAction,
    WriteAction,
)
from dragoman.protocol import v1
from dragoman.protocol.permission_options import RememberScope, write_scopes

SCHEMA = v1.ElicitationSchema(
    properties={
        "name": v1.StringPropertySchema(title="Your name", min_length=2),
        "size": v1.StringPropertySchema(enum=["small", "large"], default="small"),
        "count": v1.IntegerPropertySchema(minimum=1),
        "sure": v1.BooleanPropertySchema(),
    },
    required=["name", "count"],
)


class User:
    """Types these lines and records the output."""

    def __init__(self, *lines):
        self._lines = iter(lines)
        self.shown = []

    def ask(self, label):
        self.shown.append(label)
        line = next(self._lines)
        if isinstance(line, type):
            raise line
        return line

    def fill_in(self, elicitation):
        return fill_in(elicitation, self.ask, self.shown.append)


def test_form_is_asked_field_by_field():
    user = User("Ada", "", "3", "yes")
    reply = user.fill_in(Elicitation("Tell me", SCHEMA))
    assert (reply.action, reply.content) == ("accept", {"name": "Ada", "size": "small", "count": 3, "sure": True})
    assert user.shown[0] == "The agent asks: Tell me"
    assert "size (small|large, optional) [small]: " in user.shown


def test_invalid_value_is_asked_again():
    user = User("A", "Ada", "large", "none", "0", "1", "")
    reply = user.fill_in(Elicitation("Tell me", SCHEMA))
    assert reply.content == {"name": "Ada", "size": "large", "count": 1}
    assert "name must have at least 2 characters" in user.shown
    assert "count must be a whole number" in user.shown


@pytest.mark.parametrize("leaving", [KeyboardInterrupt, EOFError])
def test_ctrl_c_and_ctrl_d_decline(leaving):
    assert User("Ada", leaving).fill_in(Elicitation("Tell me", SCHEMA)) == decline()


@pytest.mark.parametrize(("line", "action"), [("yes", "accept"), ("no", "decline"), ("", "decline")])
def test_page_is_accepted_with_its_full_address_shown(line, action):
    user = User(line)
    assert user.fill_in(Elicitation("Log in", url="https://x.example/\u202egolden")).action == action
    assert any(r"https://x.example/\u202egolden" in text for text in user.shown)


def options(*kinds):
    return tuple(v1.PermissionOption(option_id=kind, name=kind, kind=kind) for kind in kinds)


def question(deed, *, given=(), content=()):
    call = ToolCallState("t", title="Do it", content=content)
    return PermissionQuestion("s", call, given, "/srv", deed)


def test_agent_options_have_letters_and_numbers():
    kinds = ("allow_once", "allow_always", "allow_always", "reject_once", "reject_always")
    choices = find_choices(question(RunAction("ls"), given=options(*kinds)))
    assert [choice.keys for choice in choices] == ["y1", "a2", "3", "n4", "d5"]
    assert choices[3].decision == Decision("deny", "reject_once")


def test_y_allows_once_and_escape_rejects_once():
    asked = question(RunAction("ls"), given=options("allow_always", "reject_always", "allow_once", "reject_once"))
    choices = find_choices(asked)
    assert [choice.keys for choice in choices] == ["a1", "d2", "y3", "n4"]
    assert find_refusal(asked, choices).decision.option_id == "reject_once"


def test_without_allow_once_there_is_no_key_y():
    choices = find_choices(question(RunAction("ls"), given=options("allow_always", "reject_always")))
    assert [choice.keys for choice in choices] == ["a1", "d2"]


def test_each_scope_of_always_is_a_choice():
    scopes = write_scopes([RememberScope("session", "Here"), RememberScope("project", "In the \x1b[1mproject")])
    always = v1.PermissionOption(option_id="a", name="Here", kind="allow_always", meta=scopes)
    choices = find_choices(question(RunAction("ls"), given=(always, *options("reject_once"))))
    assert [(choice.keys, choice.name) for choice in choices] == [
        ("a1", "Here"),
        ("2", r"In the \x1b[1mproject"),
        ("n3", "reject_once"),
    ]
    assert [choice.decision.remember for choice in choices] == ["session", "project", None]


def test_only_the_first_nine_choices_have_a_number():
    choices = find_choices(question(RunAction("ls"), given=options(*["allow_always"] * 11, "reject_once")))
    assert [choice.keys for choice in choices[7:]] == ["8", "9", "", "", "n"]


def test_user_can_always_say_no():
    assert [choice.keys for choice in find_choices(question(RunAction("ls"), given=options("allow_once")))] == [
        "y1",
        "n2",
    ]
    assert [choice.keys for choice in find_choices(question(RunAction("ls")))] == ["y1", "n2"]


def test_whole_action_is_shown():
    long = "echo " + "x" * 300
    deed = ActionGroup(
        (RunAction(f"{long}\nrm \x1b[8m-rf /", "/other"), WriteAction("/etc/passwd"), ReadAction("/srv/a", "/srv"))
    )
    asked = question(deed, content=(v1.Diff(path="/etc/passwd", old_text="a\n", new_text="b\n"),))
    rows = [plain(row) for row in question_rows(asked, find_choices(asked), 40)]
    text = "".join(row.removeprefix("┃ ").strip() for row in rows)
    assert all(len(row) <= 40 and row.startswith("┃ ") for row in rows)
    assert text.count("x") >= 300
    for words in (r"rm \x1b[8m-rf /", "in /other", "write /etc/passwd", "read /srv/a", "+b", "-a"):
        assert words in "\n".join(rows) or words in text
    assert "outside the session" in text.replace("  ", " ")


def test_opaque_input_is_shown_unchanged():
    asked = question(OpaqueAction("Call", {"to": "x@example.org", "n": 3}))
    rows = [plain(row) for row in question_rows(asked, find_choices(asked), 60)]
    assert '┃     "to": "x@example.org",' in rows
