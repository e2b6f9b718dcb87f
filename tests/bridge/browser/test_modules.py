"""The page's modules: Markdown, diffs, terminal output, markup, forms, errors and files."""

import random
import re
import sys
from html import unescape as html_unescape

import pytest

from dragoman.bridge.front.markdown import to_html
from dragoman.text import clean_text, one_line, visible
from tests.bridge.browser.modules import WEB

POEM = (
    "# Title\n\nOne paragraph\nof two lines.\n\n1. first\n\n2. second\n   - inner\n\nAfter.\n"
    "```python\nx = 1\n\ny = 2\n```\nThen\n\n- a\n- b\n\n~~~\n```\n~~~\n## End\nlast words"
)


# ── splitting of Markdown ────────────────────────────────────────────────────────────────────────


async def blocks_of(modules, text, cuts):
    """Parse a text in pieces. Return its blocks, and for each piece the certain length and the found ends."""
    body = """
      const [text, cuts] = values;
      const scanner = new m.BlockScanner();
      const readings = cuts.map((cut) => {
        const ends = scanner.read(text.slice(0, cut));
        return { sure: scanner.safeEnd, ends };
      });
      const starts = [0, ...readings.flatMap(({ ends }) => ends)];
      return [starts.map((start, n) => text.slice(start, starts[n + 1] ?? text.length)), readings];
    """
    return await modules.run("text/blocks", body, text, cuts)


async def test_markdown_is_split_only_between_blocks(modules):
    blocks, _ = await blocks_of(modules, POEM, [len(POEM)])
    assert blocks == [
        "# Title\n\n",
        "One paragraph\nof two lines.\n\n",
        "1. first\n\n2. second\n   - inner\n\n",
        "After.\n",
        "```python\nx = 1\n\ny = 2\n```\n",
        "Then\n\n",
        "- a\n- b\n\n",
        "~~~\n```\n~~~\n",
        "## End\nlast words",
    ]


async def test_markdown_splits_do_not_depend_on_pieces(modules):
    whole, _ = await blocks_of(modules, POEM, [len(POEM)])
    chance = random.Random(7)
    for _ in range(40):
        cuts = sorted({*chance.sample(range(1, len(POEM)), chance.randrange(1, 60)), len(POEM)})
        assert (await blocks_of(modules, POEM, cuts))[0] == whole


async def test_shown_text_never_moves_to_the_next_block(modules):
    _, readings = await blocks_of(modules, POEM, list(range(1, len(POEM) + 1)))
    shown = 0
    for reading in readings:
        assert all(end >= shown for end in reading["ends"])
        shown = reading["sure"]


MARKS = """\
# A *small* title

Some **bold words**, `co**de`, __more__, ~~gone~~ and a [link with *marks*](https://example.org/a_(b)) to ![it](x.png).
Then 2 * 3, snake_case_name, \\*escaped\\* and ***both*** &amp; `` a`b `` <https://example.org>.

- **first** item
- [x] done `ls | wc`
  1. inner _one_

> quoted **words**

| head | `two` |
|:-----|------:|
| **a** | b |

```python
x = "**"  # * `
```
Last
===
"""


async def test_partial_marks_are_never_rendered(modules):
    """Each prefix of a text shows a prefix of the final words, and no marks."""
    body = "return [...values[0]].map((_, n) => m.settle(values[0].slice(0, n + 1)));"
    shown = [words_of(to_html(text, 0)) for text in await modules.run("text/unfinished", body, MARKS)]
    whole = words_of(to_html(MARKS, 0))
    assert [text for text in shown if not whole.startswith(text)] == []
    assert len(set(shown)) > len(whole) / 2


def words_of(html):
    return "".join(html_unescape(re.sub("<[^>]*>", "", html)).split())


# ── diffs ────────────────────────────────────────────────────────────────────────────────────────


ROWS = "const { hunks } = m.compareTexts(...values, 1e9); return hunks.flatMap(m.rowsOf);"


async def diff_of(modules, old, new):
    return await modules.run("conversation/diff", ROWS, old, new)


def sides(rows):
    """Return the old and the new lines of diff rows."""
    return (
        [row["text"] for row in rows if row["kind"] != "add"],
        [row["text"] for row in rows if row["kind"] != "del"],
    )


def common_lines(old, new):
    """Return the length of the longest common subsequence."""
    lengths = [0] * (len(new) + 1)
    for line in old:
        above = lengths.copy()
        for n, other in enumerate(new, start=1):
            lengths[n] = above[n - 1] + 1 if line == other else max(above[n], lengths[n - 1])
    return lengths[-1]


async def test_diff_is_minimal_and_reproduces_both_texts(modules):
    chance = random.Random(11)
    pairs = [[[chance.choice("abcdef") for _ in range(chance.randrange(1, 25))] for _ in range(2)] for _ in range(60)]
    body = "return values.map(([old, fresh]) => m.compareTexts(old, fresh, 1e9).hunks.flatMap(m.rowsOf));"
    found = await modules.run("conversation/diff", body, *(["\n".join(each) for each in pair] for pair in pairs))
    for (old, new), rows in zip(pairs, found, strict=True):
        if old == new:
            continue
        assert sides(rows) == (old, new)
        assert [row["old"] for row in rows if row["old"]] == list(range(1, len(old) + 1))
        assert [row["new"] for row in rows if row["new"]] == list(range(1, len(new) + 1))
        assert sum(row["kind"] == "same" for row in rows) == common_lines(old, new)


async def test_large_diff_counts_only_changed_lines(modules):
    chance = random.Random(3)
    old = [f"line {chance.randrange(500)}" for _ in range(20_000)]
    new = [f"line {n} is new" if n % 20 == 0 else line for n, line in enumerate(old)]
    body = "const { added, removed, hunks } = m.compareTexts(...values); return [added, removed, hunks.length];"
    assert await modules.run("conversation/diff", body, "\n".join(old), "\n".join(new)) == [1000, 1000, 1000]


async def test_shuffled_large_text_is_compared(modules):
    old = [str(n) for n in range(20_000)]
    new = random.Random(5).sample(old, len(old))
    body = """
      const rows = m.compareTexts(...values, 1e9).hunks.flatMap(m.rowsOf);
      const side = (kind) => rows.filter((row) => row.kind !== kind).map(({ text }) => text).join("\\n");
      return [side("add") === values[0], side("del") === values[1]];
    """
    assert await modules.run("conversation/diff", body, "\n".join(old), "\n".join(new)) == [True, True]


async def test_unrelated_texts_are_replaced_as_a_whole(modules):
    rows = await diff_of(modules, "\n".join(f"o{n}" for n in range(3000)), "\n".join(f"n{n}" for n in range(3000)))
    assert [row["kind"] for row in rows] == ["del"] * 3000 + ["add"] * 3000


async def test_diff_of_a_new_file_is_all_added(modules):
    assert [row["kind"] for row in await diff_of(modules, "", "a\nb\n")] == ["add", "add"]


async def test_unchanged_lines_are_collapsed_with_a_count(modules):
    old = [f"line {n}" for n in range(1, 41)]
    new = [*old[:19], "changed", *old[20:]]
    body = """
      const { hunks, skippedAfter } = m.compareTexts(...values);
      return [hunks.map((hunk) => [hunk.skipped, hunk.oldStart, m.rowsOf(hunk).length]), skippedAfter];
    """
    assert await modules.run("conversation/diff", body, "\n".join(old), "\n".join(new)) == [[[16, 16, 8]], 17]


async def test_side_by_side_diff_aligns_changed_lines(modules):
    body = """
      const rows = m.compareTexts(...values).hunks.flatMap(m.rowsOf);
      return m.toPairs(rows).map((pair) => [pair.old?.text ?? null, pair.new?.text ?? null]);
    """
    pairs = await modules.run("conversation/diff", body, "a\nold\nb\n", "a\nnew\nmore\nb\n")
    assert pairs == [["a", "a"], ["old", "new"], [None, "more"], ["b", "b"]]


# ── terminal output ──────────────────────────────────────────────────────────────────────────────


async def pieces_of(modules, text):
    pieces = await modules.run("conversation/ansi", "return m.parseAnsi(values[0]).pieces;", text)
    return [(piece["text"], piece["classes"]) for piece in pieces]


async def test_ansi_colours_become_classes(modules):
    text = "a\x1b[1;31mb\x1b[22mc\x1b[92;44md\x1b[0me"
    assert await pieces_of(modules, text) == [
        ("a", ""),
        ("b", "ansi-bold ansi-fg-1"),
        ("c", "ansi-fg-1"),
        ("d", "ansi-fg-10 ansi-bg-4"),
        ("e", ""),
    ]


async def test_larger_palettes_map_to_sixteen_colours(modules):
    text = "\x1b[38;5;196ma\x1b[38;2;0;180;5mb\x1b[48;5;231mc"
    assert [classes for _, classes in await pieces_of(modules, text)] == [
        "ansi-fg-1",
        "ansi-fg-2",
        "ansi-fg-2 ansi-bg-15",
    ]


async def test_other_escape_sequences_are_removed(modules):
    link = "\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x1b\\"
    text = f"a\x1b[2K\x1b[?25l\x1b]0;title\x07b{link}\x1b(Bc\x00\x07\x9bd\x1b[3"
    assert "".join(text for text, _ in await pieces_of(modules, text)) == "ablinkcd"


async def test_style_continues_in_the_next_piece(modules):
    body = "const { style } = m.parseAnsi('\\x1b[35m'); return m.parseAnsi('x', style).pieces[0].classes;"
    assert await modules.run("conversation/ansi", body) == "ansi-fg-5"


async def test_growing_output_equals_the_whole_output(modules):
    text = "\x1b[32mone\r\ntwo 10%\rtwo 99%\x1b[0m\nthree\x1b[31m!\n" * 20
    body = """
      const [text] = values;
      const grown = new m.Output(), whole = new m.Output();
      for (let end = 1; end <= text.length; end += 1) grown.update(text.slice(0, end));
      whole.update(text);
      const runs = ({ element }) => [...element.querySelectorAll("pre *:not(:has(*))")]
        .map((span) => [span.className, span.textContent]).filter(([name]) => name);
      const joined = (list) => list.map(([name, words]) => name.repeat(words.length)).join("");
      return [grown.element.textContent === whole.element.textContent, joined(runs(grown)) === joined(runs(whole)),
        grown.element.textContent.slice(0, 24)];
    """
    assert await modules.run("conversation/output", body, text) == [True, True, "one\ntwo 99%\nthree!\none\nt"]


async def test_replaced_output_is_rendered_again(modules):
    body = """
      const output = new m.Output();
      output.update("first\\nsecond\\n"); output.update("other\\n");
      return output.element.textContent;
    """
    assert await modules.run("conversation/output", body) == "other\n"


async def test_very_long_output_shows_its_end(modules):
    body = """
      const output = new m.Output();
      output.update(values[0]);
      const shown = output.element.querySelector("pre").textContent;
      const isSaid = output.element.textContent.includes("not shown");
      return [shown.length < 200_000, shown.endsWith("line 49999\\n"), isSaid];
    """
    text = "".join(f"line {n}\n" for n in range(50_000))
    assert await modules.run("conversation/output", body, text) == [True, True, True]


# ── markup ───────────────────────────────────────────────────────────────────────────────────────


async def test_unlisted_markup_is_removed(modules):
    html = (
        '<p onclick="x()">a<script>x()</script><img src=x onerror="x()"><iframe src="//e"></iframe>'
        '<a href="javascript:x()">b</a><a href="https://e.org/" ping="//e">c</a><span style="x" class="k">d</span></p>'
    )
    body = """
      const box = document.createElement("div");
      box.append(m.renderedNodes(values[0]));
      return box.innerHTML;
    """
    assert await modules.run("text/sanitize", body, html) == (
        '<p>ax()<a>b</a><a href="https://e.org/" rel="noopener noreferrer" target="_blank">c</a>'
        '<span class="k">d</span></p>'
    )


async def test_links_allow_only_web_and_mail_addresses(modules):
    addresses = [
        "https://e.org",
        "mailto:a@e.org",
        "javascript:x()",
        "data:text/html,x",
        "file:///x",
        "/here",
        "x:y",
        "",
    ]
    body = "return values[0].map((address) => m.safeAddress(address) !== null);"
    assert await modules.run("text/sanitize", body, addresses) == [True, True, *[False] * 6]


async def test_only_known_image_types_are_shown(modules):
    body = """
      return values[0].map((mimeType) => m.contentElement({ type: "image", mimeType, data: "AAAA" }).localName);
    """
    kinds = ["image/png", "image/svg+xml", "text/html", 'image/png"onerror="x']
    assert await modules.run("conversation/content", body, kinds) == ["img", "img", "span", "span"]


async def test_fence_is_removed_only_around_a_whole_text(modules):
    texts = ["```py\na\n```", "~~~~\na\n~~~~\n", "```\n```", "```\na\n```\nb\n```\nc\n```", "a", "```\na"]
    body = "return values[0].map((text) => m.unfenced(text));"
    assert await modules.run("conversation/tool_content", body, texts) == ["a", "a", "", None, None, None]


# ── forms ────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {
    "type": "object",
    "required": ["name", "parts"],
    "properties": {
        "name": {"type": "string", "minLength": 3},
        "way": {
            "type": "string",
            "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}],
            "default": "b",
        },
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
        "mail": {"type": "string", "format": "email"},
        "parts": {"type": "array", "minItems": 1, "items": {"enum": ["x", "y"]}},
        "sure": {"type": "boolean", "default": True},
    },
}


async def fill_form(modules, body):
    """Create a form, fill it by label with `body`, and return its values and messages."""
    code = """
      const form = new m.SchemaForm(values[0]);
      document.body.replaceChildren(form.element);
      const of = (name) => [...document.querySelectorAll("label")]
        .find((label) => label.textContent.trim().split(" ")[0] === name);
      const control = (name) => of(name).control ?? of(name).querySelector("input");
      FILL
      const content = form.read();
      const said = [...document.querySelectorAll(".field-error:not([hidden])")].map((one) => one.textContent);
      return { content, said };
    """
    return await modules.run("questions/form", code.replace("FILL", body), SCHEMA)


async def test_form_starts_with_defaults_and_sends_its_values(modules):
    read = await fill_form(modules, 'control("name").value = "Ada"; control("y").checked = true;')
    assert read == {"content": {"name": "Ada", "way": "b", "count": 5, "parts": ["y"], "sure": True}, "said": []}


async def test_invalid_form_reports_problems_and_sends_nothing(modules):
    read = await fill_form(
        modules, 'control("name").value = "A"; control("count").value = "12"; control("mail").value = "nobody";'
    )
    assert read["content"] is None
    assert read["said"] == [
        "Enter at least 3 characters.",
        "The value must be at most 9.",
        "Enter an e-mail address.",
        "This field is required.",
    ]


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("message", "data", "words"),
    [
        ("Invalid params", {"details": "no such session"}, "no such session"),
        ("Invalid params: no such session", {"problem": "no such session"}, "no such session"),
        ("Internal error: one tw…", "one\n  two", "one\n  two"),
        ("Authentication required", "Please run `auggie login` first", "Please run `auggie login` first"),
        ("Authentication required", None, "Authentication required"),
        ('"Method not found": x/y', None, "Method not found: x/y"),
        ("Resource not found: there is no session x", None, "there is no session x"),
        ("Internal error", {"error": {"message": "the disk is full"}}, "the disk is full"),
        ("it failed", "the disk is full", "it failed: the disk is full"),
        ("Internal error", None, "Internal error"),
        ("Gone", None, "Gone"),
    ],
)
async def test_error_is_explained_once_in_its_own_words(modules, message, data, words):
    body = "return values.map((one) => m.explain(one));"
    assert await modules.run("connection/failure", body, {"message": message, "data": data}) == [words]


# ── files to mention ─────────────────────────────────────────────────────────────────────────────


async def paths_of(modules, *items, cwd="/work"):
    """Return the paths that these items name, relative to a directory."""
    full = [{"version": 1, "terminals": {}, **item} for item in items]
    body = """
        const [items, cwd] = values;
        for (const item of items) item.terminals = new Map(Object.entries(item.terminals));
        return m.knownPaths([{ items }], cwd);
    """
    return await modules.run("composer/paths", body, full, cwd)


def call(**fields):
    return {"type": "tool", "call": fields}


def text_message(role, text):
    return {"type": "message", "role": role, "blocks": [{"type": "text", "text": text}]}


async def test_mentioned_files_are_listed_newest_first(modules):
    link = {"type": "resource_link", "uri": "file:///work/my%20notes.md", "name": "notes"}
    found = await paths_of(
        modules,
        call(locations=[{"path": "/work/src/a.py"}]),
        call(content=[{"type": "diff", "path": "/work/b.py", "newText": ""}]),
        call(rawInput={"file_path": "/elsewhere/c.txt", "pattern": "*.py", "paths": ["d.py"]}),
        {"type": "message", "role": "user", "blocks": [link]},
        text_message("agent", "It is in `./src/e.js`, not in example.org or `and/or`, e.g. here."),
        call(content=[{"type": "content", "content": {"type": "text", "text": "src/f.rs:12: error\n M src/g.rs\n"}}]),
        {"type": "tool", "call": {}, "terminals": {"t": "lib/h.c\nhttps://example.org/i.html\n"}},
    )
    assert found == [
        "lib/h.c",
        "src/f.rs",
        "src/g.rs",
        "src/e.js",
        "my notes.md",
        "/elsewhere/c.txt",
        "d.py",
        "b.py",
        "src/a.py",
    ]


async def test_prefix_matches_come_first(modules):
    paths = ["docs/reader/index.md", "lib/unread.py", "src/reader.py", "other.py"]
    found = await modules.run("composer/paths", "return m.fittingPaths(values[0], values[1]);", paths, "READ")
    assert found == ["src/reader.py", "lib/unread.py", "docs/reader/index.md"]


async def test_directories_of_paths_are_offered(modules):
    found = await modules.run("composer/paths", "return m.directoriesOf(values[0]);", ["src/a/b.py", "/x/y.py", "c.py"])
    assert found == ["src/", "src/a/", "/x/"]


# ── invisible characters ─────────────────────────────────────────────────────────────────────────


async def test_page_escapes_the_same_characters_as_the_terminal(modules):
    body = """
      const escaped = (code) => m.visible(String.fromCodePoint(code)) !== String.fromCodePoint(code);
      return Array.from({ length: 0x110000 }, (_, code) => code).filter(escaped);
    """
    escaped = await modules.run("text/safe", body)
    assert escaped == [code for code in range(sys.maxunicode + 1) if visible(chr(code)) != chr(code)]


async def test_page_escapes_characters_like_the_terminal(modules):
    texts = [
        "rm \x1b[8m-rf\x00 /\r\n\t\u202e\u200b\x9b\U000e0041",
        "👩🏽\u200d💻 ❤\ufe0f\u200d🔥 x\ufe0f a\u200db é\u200d\u200dé",
        "  \ufeff two\u2028 words\u3000 ",
    ]
    body = "return values.map((text) => [m.visible(text), m.visible(text, { lines: true }), m.oneLine(text)])"
    shown = await modules.run("text/safe", body, *texts)
    assert shown == [[visible(text), visible(text, lines=True), one_line(text)] for text in texts]


async def test_page_removes_the_same_characters_as_the_terminal(modules):
    body = """
      const dropped = (code) => m.cleanText(String.fromCodePoint(code)) !== String.fromCodePoint(code);
      return Array.from({ length: 0x110000 }, (_, code) => code).filter(dropped);
    """
    dropped = await modules.run("text/safe", body)
    assert dropped == [code for code in range(sys.maxunicode + 1) if clean_text(chr(code)) != chr(code)]


async def test_page_parses_escape_sequences_like_the_terminal(modules):
    texts = [
        "a\x1b[31mb\x1b[0m\r\nc\x1b]0;title\x07d\x9b1me",
        "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\ \x1bPlost\nkept \x1b(B\x1b7x\x1b[",
        "two\u2028lines \u202egnp.exe \u200b\u2066x\u2069 e\u0301 नि\u200dष a\u00a0b",
    ]
    shown = await modules.run("text/safe", "return values.map(m.cleanText)", *texts)
    assert shown == [clean_text(text) for text in texts]


async def test_output_has_no_bidi_controls(modules):
    pieces = await modules.run(
        "conversation/ansi",
        "return m.parseAnsi(values[0]).pieces",
        "\x1b[1mopen \u202egnp.exe\u2069\x1b[0m \u200b日\u3000本",
    )
    assert pieces == [{"text": "open gnp.exe", "classes": "ansi-bold"}, {"text": " 日\u3000本", "classes": ""}]


# ── styles ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sheet", sorted((WEB / "css").glob("*.css")), ids=lambda sheet: sheet.stem)
async def test_browser_accepts_every_style_rule(modules, sheet):
    # A browser silently ignores a rule that it does not understand, such as one with an unclosed bracket.
    body = """
      const [sheet] = values;
      const count = (rules) => [...rules].reduce((sum, rule) => sum + 1 + count(rule.cssRules ?? []), 0);
      const made = new CSSStyleSheet();
      made.replaceSync(sheet);
      return count(made.cssRules);
    """
    written = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
    foreign = written.count("::-moz-")  # pseudo-elements of other browsers
    assert await modules.run("text/safe", body, written) == written.count("{") - foreign
