"""What an agent wants to know in `dragoman chat`, and the permission it asks for."""

import pytest

from dragoman.cli.chat.entry import fill_in
from dragoman.cli.terminal.permission import find_choices, find_refusal, question_rows
from dragoman.cli.terminal.rows import plain
from dragoman.client import Decision, Elicitation, Foreign, Question, Read, Run, Several, ToolCallState, Write, decline
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


class Person:
    """Writes these lines, and remembers what was said."""

    def __init__(self, *lines):
        self._lines = iter(lines)
        self.heard = []

    def ask(self, label):
        self.heard.append(label)
        line = next(self._lines)
        if isinstance(line, type):
            raise line
        return line

    def fill_in(self, elicitation):
        return fill_in(elicitation, self.ask, self.heard.append)


def test_a_form_is_asked_field_by_field():
    person = Person("Ada", "", "3", "yes")
    reply = person.fill_in(Elicitation("Tell me", SCHEMA))
    assert (reply.action, reply.content) == ("accept", {"name": "Ada", "size": "small", "count": 3, "sure": True})
    assert person.heard[0] == "The agent asks: Tell me"
    assert "size (small|large, may be left out) [small]: " in person.heard


def test_what_does_not_fit_is_asked_again():
    person = Person("A", "Ada", "large", "none", "0", "1", "")
    reply = person.fill_in(Elicitation("Tell me", SCHEMA))
    assert reply.content == {"name": "Ada", "size": "large", "count": 1}
    assert "name has to have at least 2 characters" in person.heard
    assert "count has to be a whole number" in person.heard


@pytest.mark.parametrize("leaving", [KeyboardInterrupt, EOFError])
def test_ctrl_c_and_ctrl_d_decline(leaving):
    assert Person("Ada", leaving).fill_in(Elicitation("Tell me", SCHEMA)) == decline()


@pytest.mark.parametrize(("line", "action"), [("yes", "accept"), ("no", "decline"), ("", "decline")])
def test_a_page_is_agreed_to_with_its_whole_address_in_sight(line, action):
    person = Person(line)
    assert person.fill_in(Elicitation("Log in", url="https://x.example/\u202egolden")).action == action
    assert any(r"https://x.example/\u202egolden" in heard for heard in person.heard)


def options(*kinds):
    return tuple(v1.PermissionOption(option_id=kind, name=kind, kind=kind) for kind in kinds)


def question(deed, *, given=(), content=()):
    call = ToolCallState("t", title="Do it", content=content)
    return Question("s", call, given, "/srv", deed)


def test_the_options_of_the_agent_have_letters_and_numbers():
    kinds = ("allow_once", "allow_always", "allow_always", "reject_once", "reject_always")
    choices = find_choices(question(Run("ls"), given=options(*kinds)))
    assert [choice.keys for choice in choices] == ["y1", "a2", "3", "n4", "d5"]
    assert choices[3].decision == Decision("deny", "reject_once")


def test_the_key_y_is_the_option_that_allows_once_and_escape_the_one_that_rejects_once():
    asked = question(Run("ls"), given=options("allow_always", "reject_always", "allow_once", "reject_once"))
    choices = find_choices(asked)
    assert [choice.keys for choice in choices] == ["a1", "d2", "y3", "n4"]
    assert find_refusal(asked, choices).decision.option_id == "reject_once"


def test_without_an_option_that_allows_once_there_is_no_key_y():
    choices = find_choices(question(Run("ls"), given=options("allow_always", "reject_always")))
    assert [choice.keys for choice in choices] == ["a1", "d2"]


def test_each_scope_of_an_always_is_a_choice():
    scopes = write_scopes([RememberScope("session", "Here"), RememberScope("project", "In the \x1b[1mproject")])
    always = v1.PermissionOption(option_id="a", name="Here", kind="allow_always", meta=scopes)
    choices = find_choices(question(Run("ls"), given=(always, *options("reject_once"))))
    assert [(choice.keys, choice.name) for choice in choices] == [
        ("a1", "Here"),
        ("2", r"In the \x1b[1mproject"),
        ("n3", "reject_once"),
    ]
    assert [choice.decision.remember for choice in choices] == ["session", "project", None]


def test_only_the_first_nine_choices_have_a_number():
    choices = find_choices(question(Run("ls"), given=options(*["allow_always"] * 11, "reject_once")))
    assert [choice.keys for choice in choices[7:]] == ["8", "9", "", "", "n"]


def test_there_is_always_a_way_to_say_no():
    assert [choice.keys for choice in find_choices(question(Run("ls"), given=options("allow_once")))] == ["y1", "n2"]
    assert [choice.keys for choice in find_choices(question(Run("ls")))] == ["y1", "n2"]


def test_all_of_what_would_be_done_is_shown():
    long = "echo " + "x" * 300
    deed = Several((Run(f"{long}\nrm \x1b[8m-rf /", "/other"), Write("/etc/passwd"), Read("/srv/a", "/srv")))
    asked = question(deed, content=(v1.Diff(path="/etc/passwd", old_text="a\n", new_text="b\n"),))
    rows = [plain(row) for row in question_rows(asked, find_choices(asked), 40)]
    text = "".join(row.removeprefix("┃ ").strip() for row in rows)
    assert all(len(row) <= 40 and row.startswith("┃ ") for row in rows)
    assert text.count("x") >= 300
    for words in (r"rm \x1b[8m-rf /", "in /other", "write /etc/passwd", "read /srv/a", "+b", "-a"):
        assert words in "\n".join(rows) or words in text
    assert "outside of the session" in text.replace("  ", " ")


def test_what_only_the_agent_knows_is_shown_as_it_was_given():
    asked = question(Foreign("Call", {"to": "x@example.org", "n": 3}))
    rows = [plain(row) for row in question_rows(asked, find_choices(asked), 60)]
    assert '┃     "to": "x@example.org",' in rows
