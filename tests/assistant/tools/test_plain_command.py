import pytest

from dragoman.assistant.tools.plain_command import PlainCommand, UnclearCommandError, parse
from tests.table import each_row


def words_of(text):
    return [list(command.words) for command in parse(text)]


@each_row(
    ("text", "words"),
    [
        ("make test", [["make", "test"]]),
        (" \tmake\ttest ", [["make", "test"]]),
        ("a 'b c' \"d e\" f'g'\"h\"", [["a", "b c", "d e", "fgh"]]),
        ("a '' \"\"", [["a", "", ""]]),
        ("a '$X `b` \\ *'", [["a", "$X `b` \\ *"]]),
        ('a "it\'s * ok"', [["a", "it's * ok"]]),
        ("a --x=1 HEAD~1 user@host:p 50%", [["a", "--x=1", "HEAD~1", "user@host:p", "50%"]]),
        ("a && b || c; d | e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a;", [["a"]]),
        ("\n\na\n\nb\n", [["a"], ["b"]]),
        ("a &&\n\n b |\nc", [["a"], ["b"], ["c"]]),
        ("", []),
    ],
)
def test_words_and_commands_are_found(text, words):
    assert words_of(text) == words


def test_redirections_are_separated_from_words():
    [command] = parse("<in sort 2>>err -u >out 2>&1 x 3<more")
    assert command == PlainCommand(("sort", "-u", "x"), inputs=("in", "more"), outputs=("err", "out"))


def test_number_belongs_to_a_redirection_only_without_a_blank():
    assert words_of("a 2 > x b2> y '2'> z") == [["a", "2", "b2", "2"]]


def test_assignments_come_before_the_program():
    [command] = parse("A=1 B='x y' make C=2")
    assert (command.assignments, command.words) == (("A=1", "B=x y"), ("make", "C=2"))


def test_operators_around_a_command_are_recorded():
    joins = [(command.joined_by, command.followed_by) for command in parse("a && b || c | d; e\nf")]
    assert joins == [("", "&&"), ("&&", "||"), ("||", "|"), ("|", ";"), (";", "\n"), ("\n", "")]


@each_row(
    "text",
    [
        *("$X", "a $X", 'a "$X"', "a ${X}", "a $(b)", "a `b`", 'a "`b`"', "a $'b'", 'a $"b"', "a $((1))", "a $"),
        *("a *", "a ?", "a [b]", "a {b,c}", "a ~", "a ~/b", "a '~/b'", "a b=~/c", "a b:~c", "=ls", "a !b", "a ^b"),
        *("a \\b", 'a "\\b"', "a \\\n b", "a 'b", 'a "b', "a # b", "# b", "a#b"),
        *("a & b", "a &", "a |& b", "a &> b", "a >& b", "a >&- b", "a <&3", "a >| b", "a <> b", "a << b", "a <<< b"),
        *("a <(b)", "(a)", "{ a; }", "a() { b; }", "a;; b", "; a", "&& a", "a && ; b", "a ||", "a |", "a &&"),
        *("a > ", "< && a", "> 2>&1 a", "A=1", "A=1 B=2", "A=1 > x", "PATH+=x", "> x"),
        *("a\rb", "a\x0bb", "a\x0cb", "a\u00a0b", "a\u3000b", "a\u200bb", "ä", "a\x1bb", "a\x00b", "a\ufeff"),
    ],
)
def test_everything_else_is_unclear(text):
    with pytest.raises(UnclearCommandError):
        parse(text)
