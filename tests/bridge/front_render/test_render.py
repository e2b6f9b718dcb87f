"""Rendered Markdown contains only text and a few harmless tags, whatever the agent writes."""

import asyncio
import re
from html.parser import HTMLParser

import pytest

from dragoman.bridge.front.highlight import CLASSES, LANGUAGES, MAX_CODE_CHARS
from dragoman.bridge.front.markdown import TAGS
from dragoman.bridge.front.render import CACHE_CHARS, MAX_CHARS, MAX_WAITING, Renderer, TooManyTextsError, plain_html
from tests.table import each_row
from tests.waiting import until

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
    """Collects the tags, attributes and texts of a fragment, as a browser parses them."""

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


SLOW = "[" * (MAX_CHARS - 100)
SLOWISH = "[" * 4_000


@pytest.fixture(scope="module")
def renderer():
    made = Renderer()
    yield made
    asyncio.run(made.close())


@pytest.fixture
def render(renderer):
    return renderer.render


@pytest.fixture
def seen(renderer):
    async def look(markdown):
        return audited(await renderer.render(markdown))

    return look


def audited(html):
    """Parse a rendered text and check it against the allow list."""
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


@each_row("attack", HOSTILE.values())
async def test_executable_markup_is_shown_as_text(seen, attack):
    await seen(attack)


@each_row("scheme", ["javascript", "data", "vbscript", "file", "blob", "ftp", "ws", "tel", "x"])
async def test_link_with_another_scheme_is_removed(seen, scheme):
    found = await seen(f"[x]({scheme}:abc) <{scheme}:abc> ![p]({scheme}:abc) {scheme}:abc")
    assert found.links == []
    assert "x" in found.text


async def test_raw_html_stays_readable(seen):
    found = await seen("a <b>c</b> <script>alert(1)</script>")
    assert found.text.strip() == "a <b>c</b> <script>alert(1)</script>"
    assert found.tags == ["p"]


async def test_links_open_in_a_new_tab_without_referrer(render):
    html = await render("[x](https://e.example 't')")
    assert html == ('<p><a href="https://e.example" title="t" target="_blank" rel="noopener noreferrer">x</a></p>\n')


async def test_picture_becomes_a_link(seen):
    found = await seen("![a cat](https://e.example/cat.png)")
    assert found.links == ["https://e.example/cat.png"]
    assert found.text.strip() == "a cat"
    assert "img" not in found.tags


async def test_picture_inside_a_link_becomes_its_text(seen):
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
async def test_bare_url_becomes_a_link_without_punctuation(seen, text, link):
    found = await seen(text)
    assert found.links == [link]
    assert found.text.strip() == text


async def test_url_in_code_stays_code(seen):
    assert (await seen("`https://e.example`")).links == []


async def test_tables_strikethrough_and_tasks_are_rendered(render):
    html = await render("|a|b|\n|:-|-:|\n|1|~~2~~|\n\n- [ ] open\n- [x] done\n")
    assert '<td class="right"><s>2</s></td>' in html
    assert '<li class="task">☐ open</li>' in html
    assert '<li class="task">☑ done</li>' in html


async def test_code_is_highlighted_by_classes(render):
    html = await render("```py\ndef f(): pass\n```")
    assert html.startswith('<div class="code" data-language="py"><pre><code><span class="k">def</span>')
    assert "style=" not in html


@pytest.mark.parametrize("language", ["", "nolanguage", "guess", "text"])
async def test_code_of_an_unknown_language_is_not_highlighted(seen, language):
    found = await seen(f"```{language}\ndef f(): pass\n```")
    assert found.tags == ["div", "pre", "code"]
    assert found.text.strip() == "def f(): pass"


@each_row("language", sorted(LANGUAGES))
async def test_every_language_keeps_hostile_code_complete(seen, language):
    code = "<script>alert('1')</script> \"<img src=x onerror=alert(1)>\" </code></pre> # ${x} `y` /* z */ &lt; &amp;"
    found = await seen(f"````{language}\n{code}\n````")
    assert found.text.strip() == code


async def test_code_keeps_empty_lines_and_spaces(seen):
    code = "\n\n  x = 1\n\n\t\n"
    assert (await seen(f"```python\n{code}```")).text.removesuffix("\n") == code


MARKS = """[ ![ ]( []( * **a _a ~~a ` ``` < <a & \\ | |a > - 1. # https:// (https://e.example/ [a]: [x]""".split()  # noqa: SIM905 -- marks, not quotes


@each_row("mark", [*MARKS, "> ", "\t", "a\n", "- a\n  ", "|a|\n|-|\n", "é", "\0"])
async def test_long_runs_of_marks_stay_harmless(seen, mark):
    await seen((mark * MAX_CHARS)[: MAX_CHARS // 4])


@pytest.mark.parametrize("opening", ["> ", "- ", "1. ", "> - "])
async def test_deep_nesting_is_limited(seen, opening):
    found = await seen(opening * 5_000 + "deep")
    assert len(found.tags) < 1_000


async def test_deep_emphasis_is_limited(seen):
    found = await seen("*a **b " * 3_000 + "x" + "** *" * 3_000)
    assert "x" in found.text


@each_row("language", ["python", "javascript", "html", "cpp", "bash", "markdown", "perl", "ruby"])
async def test_code_that_hangs_regular_expressions_is_complete(seen, language):
    code = "\n".join(("a(" * 400, '"\\' * 400, "<a " * 400, "/*" * 400, "${" * 400, " " * 800 + "!")) * 8
    assert len(code) < MAX_CODE_CHARS
    assert (await seen(f"~~~~{language}\n{code}\n~~~~")).text.strip() == code.strip()


async def test_text_that_hangs_the_highlighter_is_shown_plain(seen):
    code = "\n" * (MAX_CODE_CHARS - 10) + "int x;"
    found = await seen(f"# Title\n\n```c\n{code}\n```")
    assert found.tags == ["h1", "div", "pre", "code"]
    assert found.text.endswith(code + "\n\n")


async def test_next_text_is_rendered_after_a_timeout():
    renderer = Renderer(max_work_s=0.2)
    assert await renderer.render(SLOW) == plain_html(SLOW)
    assert await renderer.render("*again*") == "<p><em>again</em></p>\n"
    await renderer.close()


async def test_waiting_texts_do_not_delay_closing():
    renderer = Renderer()
    await renderer.render("*first*")
    code = "\n" * (MAX_CODE_CHARS - 10) + "int y;"
    texts = [f"# {number}\n\n```c\n{code}\n```" for number in range(9)]
    rendering = [asyncio.create_task(renderer.render(text)) for text in texts]
    await until(lambda: renderer.waiting == len(texts) - 1)
    await renderer.close()
    assert await asyncio.gather(*rendering) == [plain_html(text) for text in texts]


async def test_texts_without_a_waiting_client_are_not_rendered(renderer):
    left = [asyncio.create_task(renderer.render(f"{number} {SLOWISH}")) for number in range(MAX_WAITING)]
    await until(lambda: 0 < renderer.waiting < MAX_WAITING)
    for task in left:
        task.cancel()
    await asyncio.wait(left)
    assert renderer.waiting == 0
    assert await renderer.render("*next*") == "<p><em>next</em></p>\n"


async def test_more_waiting_texts_than_the_limit_are_refused(renderer):
    waiting = [asyncio.create_task(renderer.render(f"{number} {SLOWISH}")) for number in range(MAX_WAITING + 2)]
    with pytest.raises(TooManyTextsError):
        await waiting[-1]
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_clients_take_turns(renderer):
    many = [asyncio.create_task(renderer.render(f"turn {number} {SLOWISH}", "many")) for number in range(MAX_WAITING)]
    await until(lambda: 0 < renderer.waiting < MAX_WAITING)
    before = sum(task.done() for task in many)
    assert await renderer.render("*other*", "other") == "<p><em>other</em></p>\n"
    assert sum(task.done() for task in many) - before <= 2
    for task in many:
        task.cancel()
    await asyncio.wait(many)


async def test_too_long_block_is_not_highlighted(seen):
    code = "x = 1\n" * (MAX_CODE_CHARS // 6 + 1)
    found = await seen(f"```python\n{code}```")
    assert "span" not in found.tags
    assert found.text.strip() == code.strip()


async def test_too_long_text_is_returned_unrendered(seen):
    text = "<b>*x*</b> " * (MAX_CHARS // 10)
    found = await seen(text)
    assert found.tags == ["div"]
    assert found.text == text


async def test_text_is_rendered_once(renderer):
    first = await renderer.render("*x*")
    assert await renderer.render("*x*") is first


async def test_cache_is_bounded(renderer):
    texts = [f"{n} " + "lorem ipsum " * (MAX_CHARS // 13) for n in range(2 * CACHE_CHARS // MAX_CHARS)]
    for text in texts:
        await renderer.render(text)
    assert renderer.kept_chars <= CACHE_CHARS


async def test_event_loop_is_not_blocked_by_rendering(render):
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
