"""The text of `dragoman chat`: what is shown of the agent's output, and how it is broken into rows."""

import pytest

from dragoman.cli.terminal.markdown import Markdown, PlainText
from dragoman.cli.terminal.rows import Span, hard_wrap, paint, plain, wrap
from dragoman.cli.terminal.tool_calls import diff_rows, ended_rows, last_state, running_rows, with_output_of
from dragoman.client import ToolCallState
from dragoman.protocol import v1
from dragoman.text.width import cells


def test_overwritten_line_is_shown_in_its_last_state():
    assert last_state("10%\r50%\r\x1b[32m100%\x1b[0m\r\ndone\r\n") == "100%\ndone\n"


@pytest.mark.parametrize("width", [1, 2, 5, 11, 80])
def test_no_row_exceeds_the_width(width):
    text = "some words, averyveryverylongword and 漢字漢字漢字 at the end   "
    rows = wrap([Span(text)], width, "- ") + hard_wrap([Span(text)], width, [Span("│ ")])
    assert all(cells(plain(row)) <= max(width, 4) for row in rows)
    assert "".join(text.split()) in "".join(plain(row)[2:] for row in rows).replace(" ", "")


def test_trailing_blank_makes_no_extra_row():
    assert [plain(row) for row in wrap([Span("ab cd   ")], 5)] == ["ab cd"]


def render(text, width=40):
    markdown = Markdown()
    rows = markdown.feed(text, width) + markdown.finish(width)
    return [plain(row) for row in rows]


def test_markdown_is_rendered_without_its_marks():
    assert render("# Title\n\nA **bold** and *slanted* `code` ~~gone~~.\n") == [
        "Title",
        "",
        "A bold and slanted code gone.",
    ]


def test_users_text_keeps_its_marks():
    text = "# Fix `a*b*c` in **here**:\n\n```\n  code\n```"
    written = PlainText()
    rows = written.feed(text[:9], 40) + written.feed(text[9:], 40) + written.finish(40)
    assert [plain(row) for row in rows] == text.split("\n")


def test_underscores_in_names_and_stars_in_products_stay():
    assert render("snake_case_name and 2 * 3 * 4 and `a*b*c`") == ["snake_case_name and 2 * 3 * 4 and a*b*c"]


def test_link_shows_its_address():
    assert render("[bank](https://evil.example)") == ["bank (https://evil.example)"]
    assert render("[https://a.example](https://a.example)") == ["https://a.example"]


def test_lists_hang_and_nest():
    assert render("- one two three\n  - four\n1. five\n- [x] six", 10) == [
        "• one two",
        "  three",
        "  ◦ four",
        "1. five",
        "☑ six",
    ]


def test_code_breaks_only_at_the_width_and_keeps_blanks():
    assert render("```python\n  a = **b**  # x\n```\nafter", 14) == [
        "  python",
        "  │   a = **b*",
        "  │ *  # x",
        "after",
    ]


def test_tables_are_unchanged():
    assert render("| a | b |\n|---|---|\n| 1 | 2 |") == ["| a | b |", "|---|---|", "| 1 | 2 |"]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_pieces_render_like_the_whole(size):
    text = "# A *b*\n\n- c **d e**\n\n```\nx\n```\n> q\n\nlast **word"
    markdown = Markdown()
    rows = [row for start in range(0, len(text), size) for row in markdown.feed(text[start : start + size], 20)]
    assert [plain(row) for row in rows + markdown.finish(20)] == render(text, 20)


def test_unfinished_line_is_shown():
    markdown = Markdown()
    assert markdown.feed("so **far", 20) == []
    assert [plain(row) for row in markdown.partial(20)] == ["so **far"]
    markdown.feed("**", 20)
    assert [paint(row) for row in markdown.partial(20)] == ["so \x1b[1mfar\x1b[0m"]


def call(status, kind="execute", text="", content=()):
    said = [v1.Content(content=v1.TextContent(text=text))] if text else []
    return ToolCallState("t", title="Do it", kind=kind, status=status, content=(*said, *content))


def test_last_output_lines_of_a_running_call_are_shown():
    text = "```\n" + "\n".join(f"line {number}" for number in range(20)) + "\n```"
    rows = [plain(row) for row in running_rows(call("in_progress", text=text), "*", 40)]
    assert rows == ["* Do it", *(f"  │ line {number}" for number in range(15, 20))]


@pytest.mark.parametrize(("text", "count"), [("a\nb", "2 lines"), ("```\na\n\nb\n\n```", "4 lines"), ("a\n", "1 line")])
def test_read_output_is_only_counted_with_blank_lines(text, count):
    assert [plain(row) for row in ended_rows(call("completed", "read", text), 40)] == ["✓ Do it", f"  │ {count}"]


def test_output_of_a_cancelled_call_survives_its_last_update():
    running = call("in_progress", text="one\ntwo\n")
    cancelled = call("failed", text="cancelled")
    assert [plain(row) for row in ended_rows(with_output_of(running, cancelled), 40)] == [
        "✗ Do it",
        "  │ one",
        "  │ two",
        "  │ cancelled",
    ]
    kept = call("failed", text="zero\none\ntwo\n[interrupted]")
    assert with_output_of(running, kept) is kept


def test_diff_is_coloured():
    diff = v1.Diff(path="/a/b.txt", old_text="one\ntwo\n", new_text="one\n2\x1b[8m\n")
    rows = ended_rows(call("completed", "edit", content=[diff]), 40)
    painted = "\n".join(paint(row) for row in rows)
    assert "\x1b[31m-two\x1b[0m" in painted
    assert "\x1b[32m+2\\x1b[8m\x1b[0m" in painted
    assert "  /a/b.txt +1 -1" in [plain(row) for row in rows]


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("-- a comment\n", "++x\n", ["  /a +1 -1", "  │ @@ -1 +1 @@", "  │ --- a comment", "  │ +++x"]),
        (
            "a\u2028b\x0cc\n",
            "a\u2028b\x0cd\n",
            ["  /a +1 -1", "  │ @@ -1 +1 @@", r"  │ -a\u2028b\x0cc", r"  │ +a\u2028b\x0cd"],
        ),
        ("a\r\nb\r\n", "a\r\nc\r\n", ["  /a +1 -1", "  │ @@ -1,2 +1,2 @@", "  │  a", "  │ -b", "  │ +c"]),
        ("a\r\n", "a\n", ["  /a +1 -1", "  │ @@ -1 +1 @@", r"  │ -a\r", "  │ +a"]),
    ],
    ids=["signs", "other-ends", "crlf", "crlf-to-lf"],
)
def test_diff_lines_are_counted_as_in_an_editor(old, new, shown):
    assert [plain(row) for row in diff_rows(v1.Diff(path="/a", old_text=old, new_text=new), 60)] == shown


def test_long_diff_is_cut_except_in_a_question():
    diff = v1.Diff(path="/a", new_text="\n".join(map(str, range(100))))
    assert len(diff_rows(diff, 40, 10)) == 12
    assert len(diff_rows(diff, 40)) == 102
