from dragoman.text.title import MAX_TITLE_CHARS, make_title
from tests.table import each_row


@each_row(
    ("prompt", "title"),
    [
        ("Tidy the\n\tnotes ", "Tidy the notes"),
        (" \n", ""),
        ("use sk-ant-api03-abcdefghijklmnop please", "use [hidden] please"),
        ("push with ghp_abcdefghijklmnop1234", "push with [hidden]"),
        ("AKIAABCDEFGHIJKLMNOP is mine", "[hidden] is mine"),
        ("read eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "read [hidden]"),
        ("OPENAI_API_KEY=hunter22 fails", "OPENAI_API_KEY=[hidden] fails"),
        ('password: "two words" fails', "password: [hidden] fails"),
        ("clone https://me:hunter22@host/x", "clone https://[hidden]@host/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc", "[hidden]"),
        ("set colour=red and key: value", "set colour=red and key: [hidden]"),
        ("the skills of sk-learn", "the skills of sk-learn"),
        ("a\u202eb", r"a\u202eb"),
    ],
)
def test_title_is_one_line_without_secrets(prompt, title):
    assert make_title(prompt) == title


def test_long_title_ends_in_an_ellipsis():
    assert make_title("word " * 1_000_000) == f"{'word ' * 15}word…"
    assert len(make_title("x" * 5_000)) == MAX_TITLE_CHARS
