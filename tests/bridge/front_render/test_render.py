"""Whatever an agent writes, what reaches the page is text, in a few tags that can do nothing."""

import asyncio
import re
from html.parser import HTMLParser

import pytest

from dragoman.bridge.front.highlight import CLASSES, LANGUAGES, MAX_CODE_CHARS
from dragoman.bridge.front.markdown import TAGS
from dragoman.bridge.front.render import CACHE_CHARS, MAX_CHARS, Renderer, plain_html

ATTRIBUTES = {
    "a": {"href", "title", "target", "rel"},
    "div": {"class", "data-language"},
    "li": {"class"},
    "ol": {"start"},
    "span": {"class"},
    "td": {"class"},
    "th": {"class"},
}


class Seen(HTMLParser):
    """Every tag, attribute and text of a fragment, as a browser would meet them."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.other, self.text = [], [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.other.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment

    @property
    def links(self):
        return [value for tag, name, value in self.attributes if (tag, name) == ("a", "href")]


@pytest.fixture(scope="module")
def renderer():
    made = Renderer()
    yield made
    made.close()


@pytest.fixture
def render(renderer):
    return renderer.render


@pytest.fixture
def seen(renderer):
    async def look(markdown):
        return audited(await renderer.render(markdown))

    return look


def audited(html):
    """Read a rendered text, and hold it against the allow list whatever it was."""
    found = Seen(html)
    assert set(found.tags) <= TAGS
    assert found.other == []
    for tag, name, value in found.attributes:
        assert name in ATTRIBUTES.get(tag, ()), (tag, name, value)
        if name == "href":
            assert re.match(r"(https?://|mailto:)", value, re.IGNORECASE), value
        if name == "class" and tag == "span":
            assert set(value.split()) <= CLASSES
    return found


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "script in a paragraph": "hello <script src=https://evil.example/x.js></script> there",
    "script split by blank lines": "<script>\n\nalert(1)\n\n</script>",
    "handler": '<img src=x onerror="alert(1)">',
    "handler without quotes": "<img src=x onerror=alert(1)//",
    "svg": '<svg onload=alert(1)><script>alert(1)</script><a xlink:href="javascript:alert(1)">x</a></svg>',
    "svg use": '<svg><use href="data:image/svg+xml;base64,PHN2Zz4=#x"/></svg>',
    "svg as a fence": "```svg\n<svg onload=alert(1)></svg>\n```",
    "mathml": "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "iframe": '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "object": '<object data="data:text/html,<script>alert(1)</script>"></object>',
    "style": "<style>@import 'https://evil.example/x.css';</style>",
    "style attribute": '<p style="background:url(https://evil.example/x)">x</p>',
    "base": "<base href=https://evil.example/>",
    "meta": '<meta http-equiv=refresh content="0;url=https://evil.example">',
    "link": "<link rel=stylesheet href=https://evil.example/x.css>",
    "form": "<form action=https://evil.example><input name=token><button>go</button></form>",
    "template": "<template><script>alert(1)</script></template>",
    "noscript": '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "comment": "<!--><img src=x onerror=alert(1)>-->",
    "cdata": "<![CDATA[<script>alert(1)</script>]]>",
    "processing instruction": "<?xml version='1.0'?><script>alert(1)</script>",
    "doctype": "<!DOCTYPE html><script>alert(1)</script>",
    "unclosed": "<div><p><a href='javascript:alert(1)'",
    "null in a tag": "<scr\x00ipt>alert(1)</scr\x00ipt>",
    "javascript link": "[x](javascript:alert(1))",
    "javascript link in capitals": "[x](JaVaScRiPt:alert(1))",
    "javascript link by entities": "[x](&#106;&#97;vascript:alert(1))",
    "javascript link by named entities": "[x](javascript&colon;alert(1))",
    "javascript link by escapes": "[x](java\\script:alert(1)) [y](javascript\\:alert(1))",
    "javascript link with a tab": "[x](<java\tscript:alert(1)>)",
    "javascript link with a line": "[x](<java\nscript:alert(1)>)",
    "javascript link by tab entity": "[x](java&Tab;script:alert(1)) [y](java&NewLine;script:alert(1))",
    "javascript link after control characters": "[x](&#1;javascript:alert(1)) [y](\x01javascript:alert(1))",
    "javascript link by reference": "[x][y]\n\n[y]: javascript:alert(1)",
    "javascript autolink": "<javascript:alert(1)>",
    "javascript picture": "![x](javascript:alert(1))",
    "vbscript": "[x](vbscript:msgbox(1))",
    "data link": "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "data picture": "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    "data autolink": "<data:text/html,<script>alert(1)</script>>",
    "blob": "[x](blob:https://here/1) [y](filesystem:https://here/1) [z](view-source:https://here)",
    "file": "[x](file:///etc/passwd)",
    "own origin": "[x](/logout) [y](?code=1) [z](#top) [w](//evil.example/x) [v](./login)",
    "quote in an address": "[x](https://e.example/\"onmouseover=alert(1)//) <https://e.example/'onclick='alert(1)>",
    "quote in a title": '[x](https://e.example "\\"onmouseover=alert(1) x=\\"")',
    "tag in a title": '[x](https://e.example "</a><script>alert(1)</script>")',
    "quote in a picture's words": '![" onerror="alert(1)](https://e.example/x.png)',
    "tag in a picture's words": "![<img src=x onerror=alert(1)>](https://e.example/x.png)",
    "quote in a bare address": 'https://e.example/"onmouseover="alert(1)',
    "tag in a bare address": "https://e.example/<script>alert(1)</script>",
    "language of a fence": '```"><script>alert(1)</script>\nx\n```',
    "attributes of a fence": '```python onload=alert(1) class="x" style=x\nx\n```',
    "code": "`<script>alert(1)</script>` and\n\n    <script>alert(1)</script>",
    "code in colours": "```html\n</code></pre><script>alert(1)</script>\n```",
    "code in colours with quotes": "```python\nx = '\"><img src=x onerror=alert(1)>'\n```",
    "table": "|<script>|b|\n|-|-|\n|<img src=x onerror=alert(1)>|[x](javascript:alert(1))|",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62;alert(1)&#60;/script&#62; &#x3c;img src=x&#x3e;",
    "entities twice": "&amp;lt;script&amp;gt;",
    "nested brackets": "[[[x](javascript:alert(1))](javascript:alert(2))](javascript:alert(3))",
    "picture in a link": "[![x](javascript:alert(1))](javascript:alert(2))",
    "link in a picture": "![[x](https://e.example)](javascript:alert(1))",
    "heading": "# <script>alert(1)</script>\n\n<script>\n===",
    "ansi": "\x1b]8;;javascript:alert(1)\x07x\x1b]8;;\x07\x1b[31m<script>",
    "other alphabets": "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e \u2028<script>alert(1)</script>",
    "half a surrogate": "\ud83d <script>alert(1)</script>",
}


@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE.keys())
async def test_what_could_run_is_shown_as_text(seen, attack):
    await seen(attack)


@pytest.mark.parametrize("scheme", ["javascript", "data", "vbscript", "file", "blob", "ftp", "ws", "tel", "x"])
async def test_a_link_with_another_scheme_leads_nowhere(seen, scheme):
    found = await seen(f"[x]({scheme}:abc) <{scheme}:abc> ![p]({scheme}:abc) {scheme}:abc")
    assert found.links == []
    assert "x" in found.text


async def test_raw_html_stays_readable(seen):
    found = await seen("a <b>c</b> <script>alert(1)</script>")
    assert found.text.strip() == "a <b>c</b> <script>alert(1)</script>"
    assert found.tags == ["p"]


async def test_links_open_elsewhere_and_say_nothing_of_here(render):
    html = await render("[x](https://e.example 't')")
    assert html == ('<p><a href="https://e.example" title="t" target="_blank" rel="noopener noreferrer">x</a></p>\n')


async def test_a_picture_becomes_a_link_and_is_not_loaded(seen):
    found = await seen("![a cat](https://e.example/cat.png)")
    assert found.links == ["https://e.example/cat.png"]
    assert found.text.strip() == "a cat"
    assert "img" not in found.tags


async def test_a_picture_in_a_link_is_that_links_words(seen):
    found = await seen("[![a cat](https://e.example/cat.png)](https://e.example/)")
    assert found.links == ["https://e.example/"]
    assert found.text.strip() == "a cat"


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("see https://e.example/a.", "https://e.example/a"),
        ("(https://e.example/a)", "https://e.example/a"),
        ("https://e.example/a_(b)", "https://e.example/a_(b)"),
        ("https://e.example/?a=1&b=2, yes", "https://e.example/?a=1&b=2"),
    ],
)
async def test_a_bare_address_becomes_a_link_without_the_sentences_punctuation(seen, text, link):
    found = await seen(text)
    assert found.links == [link]
    assert found.text.strip() == text


async def test_an_address_in_code_stays_code(seen):
    assert (await seen("`https://e.example`")).links == []


async def test_tables_strikes_and_tasks_are_known(render):
    html = await render("|a|b|\n|:-|-:|\n|1|~~2~~|\n\n- [ ] open\n- [x] done\n")
    assert '<td class="right"><s>2</s></td>' in html
    assert '<li class="task">☐ open</li>' in html
    assert '<li class="task">☑ done</li>' in html


async def test_code_is_coloured_by_classes_and_framed_with_its_language(render):
    html = await render("```py\ndef f(): pass\n```")
    assert html.startswith('<div class="code" data-language="py"><pre><code><span class="k">def</span>')
    assert "style=" not in html


@pytest.mark.parametrize("language", ["", "nolanguage", "guess", "text"])
async def test_code_of_an_unknown_language_stays_plain(seen, language):
    found = await seen(f"```{language}\ndef f(): pass\n```")
    assert found.tags == ["div", "pre", "code"]
    assert found.text.strip() == "def f(): pass"


@pytest.mark.parametrize("language", sorted(LANGUAGES))
async def test_every_language_shows_hostile_code_whole(seen, language):
    code = "<script>alert('1')</script> \"<img src=x onerror=alert(1)>\" </code></pre> # ${x} `y` /* z */ &lt; &amp;"
    found = await seen(f"````{language}\n{code}\n````")
    assert found.text.strip() == code


async def test_code_keeps_its_empty_lines_and_spaces(seen):
    code = "\n\n  x = 1\n\n\t\n"
    assert (await seen(f"```python\n{code}```")).text.removesuffix("\n") == code


MARKS = """[ ![ ]( []( * **a _a ~~a ` ``` < <a & \\ | |a > - 1. # https:// (https://e.example/ [a]: [x]""".split()  # noqa: SIM905 -- marks, not quotes


@pytest.mark.parametrize("mark", [*MARKS, "> ", "\t", "a\n", "- a\n  ", "|a|\n|-|\n", "é", "\0"])
async def test_long_runs_of_marks_end_and_stay_harmless(seen, mark):
    await seen((mark * MAX_CHARS)[: MAX_CHARS // 4])


@pytest.mark.parametrize("opening", ["> ", "- ", "1. ", "> - "])
async def test_deep_nesting_ends(seen, opening):
    found = await seen(opening * 5_000 + "deep")
    assert len(found.tags) < 1_000


async def test_deep_emphasis_ends(seen):
    found = await seen("*a **b " * 3_000 + "x" + "** *" * 3_000)
    assert "x" in found.text


@pytest.mark.parametrize("language", ["python", "javascript", "html", "cpp", "bash", "markdown", "perl", "ruby"])
async def test_code_that_regular_expressions_suffer_from_is_shown_whole(seen, language):
    code = "\n".join(("a(" * 400, '"\\' * 400, "<a " * 400, "/*" * 400, "${" * 400, " " * 800 + "!")) * 8
    assert len(code) < MAX_CODE_CHARS
    assert (await seen(f"~~~~{language}\n{code}\n~~~~")).text.strip() == code.strip()


async def test_a_text_that_holds_up_the_highlighter_is_shown_whole_without_colours(seen):
    code = "\n" * (MAX_CODE_CHARS - 10) + "int x;"
    found = await seen(f"# Title\n\n```c\n{code}\n```")
    assert found.tags == ["h1", "div", "pre", "code"]
    assert found.text.endswith(code + "\n\n")


async def test_the_next_text_is_rendered_after_a_worker_was_lost(renderer):
    renderer.close()
    assert await renderer.render("*again*") == "<p><em>again</em></p>\n"


async def test_a_text_that_is_being_rendered_does_not_hold_up_the_end(renderer):
    await renderer.render("*first*")
    code = "\n" * (MAX_CODE_CHARS - 10) + "int y;"
    text = f"# Title\n\n```c\n{code}\n```"
    rendering = asyncio.create_task(renderer.render(text))
    await asyncio.sleep(0)
    await asyncio.to_thread(renderer.close)
    assert await rendering == plain_html(text)


async def test_a_block_too_long_to_colour_is_plain_and_whole(seen):
    code = "x = 1\n" * (MAX_CODE_CHARS // 6 + 1)
    found = await seen(f"```python\n{code}```")
    assert "span" not in found.tags
    assert found.text.strip() == code.strip()


async def test_a_text_too_long_comes_back_as_it_was(seen):
    text = "<b>*x*</b> " * (MAX_CHARS // 10)
    found = await seen(text)
    assert found.tags == ["div"]
    assert found.text == text


async def test_a_text_is_made_once(renderer):
    first = await renderer.render("*x*")
    assert await renderer.render("*x*") is first


async def test_what_is_kept_is_bounded(renderer):
    texts = [f"{n} " + "lorem ipsum " * (MAX_CHARS // 13) for n in range(2 * CACHE_CHARS // MAX_CHARS)]
    for text in texts:
        await renderer.render(text)
    assert renderer.kept_chars <= CACHE_CHARS


async def test_the_event_loop_goes_on_meanwhile(render):
    beats = 0

    async def beat():
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    beating = asyncio.create_task(beat())
    await render("[" * (MAX_CHARS // 64))
    beating.cancel()
    assert beats > 1
