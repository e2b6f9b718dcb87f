"""Untrusted Markdown as HTML without scripts, styles or external resources.

There are two barriers. The parser does not accept raw HTML, so a tag is text. Its output passes a sanitizer that keeps
only the tags, attributes, classes and URL schemes listed here. Pictures become links, because loading a picture would
reveal to its server who reads the text and when.
"""

import re
import time
from collections.abc import Iterator, Sequence
from html import escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from dragoman.bridge.front.highlight import CLASSES, highlight, known_language

SCHEMES = frozenset({"http", "https", "mailto"})
"""The URL schemes of links. A relative link would point to the bridge's own origin, so it is removed."""

TAGS = frozenset(
    """
    a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul
    """.split()  # noqa: SIM905 -- a list of names is easier to check than one of quotes
)

MAX_NESTING = 60
"""Depth of nested quotes and lists. The parser is recursive and omits deeper ones."""

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\^{|}\x00-\x1f]{1,2000}")
_TRAILING = ".,;:!?*_~"
_TASK = re.compile(r"\[([ xX])\] ")
_WORD = re.compile(r"[\w.+#-]{1,30}")
_ALIGNED = {f"text-align:{side}": side for side in ("left", "center", "right")}


def to_html(markdown: str, deadline: float) -> str:
    """Return the HTML of a text. After `deadline`, in the time of `time.monotonic`, code is not highlighted."""
    return _CLEANER.clean(_PARSER.render(markdown, {"deadline": deadline}))


class _Renderer(RendererHTML):
    """Renders highlighted code in an element to which the page adds buttons."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return a fenced block as HTML."""
        del options
        return _frame(tokens[idx].content, tokens[idx].info, env)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return an indented block as HTML."""
        del options
        return _frame(tokens[idx].content, "", env)


def _frame(code: str, info: str, env: EnvType) -> str:
    language = known_language(info)
    deadline = env.get("deadline", time.monotonic())
    written = highlight(code, language, deadline) if language else escape(code, quote=False)
    label = _WORD.match(info.strip())
    name = f' data-language="{escapeHtml(label[0])}"' if label else ""
    return f'<div class="code"{name}><pre><code>{written}</code></pre></div>\n'


def _rewrite(state: StateCore) -> None:
    """Turn pictures and bare URLs into links."""
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = list(_rewritten(token.children))


def _rewritten(tokens: list[Token]) -> Iterator[Token]:
    in_link = 0
    for token in tokens:
        in_link += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type == "image":
            yield from _picture(token, in_link=in_link > 0)
        elif token.type == "text" and not in_link and "://" in token.content:
            yield from _linked(token.content)
        else:
            yield token


def _picture(token: Token, *, in_link: bool) -> Iterator[Token]:
    address = str(token.attrGet("src") or "")
    text = token.content or address
    yield from [_text(text)] if in_link else _link(address, text)


def _linked(text: str) -> Iterator[Token]:
    done = 0
    for found in _ADDRESS.finditer(text):
        address = found[0].rstrip(_TRAILING)
        if address.endswith(")") and "(" not in address:
            address = address.rstrip(")")
        yield _text(text[done : found.start()])
        yield from _link(address, address)
        done = found.start() + len(address)
    yield _text(text[done:])


def _link(address: str, text: str) -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs={"href": address})
    yield _text(text)
    yield Token("link_close", "a", -1)


def _text(text: str) -> Token:
    return Token("text", "", 0, content=text)


def _mark_tasks(state: StateCore) -> None:
    """Replace `[ ]` and `[x]` at the start of list items by a box character. The box cannot be ticked."""
    tokens = state.tokens
    for item, paragraph, line in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (item.type, paragraph.type, line.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        first = line.children[0] if line.children else None
        found = _TASK.match(first.content) if first is not None and first.type == "text" else None
        if first is None or found is None:
            continue
        item.attrSet("class", "task")
        first.content = f"{'☐' if found[1] == ' ' else '☑'} {first.content[found.end() :]}"


def _align_by_class(state: StateCore) -> None:
    """Move the alignment of table cells from a style to a class, because the page's policy forbids inline styles."""
    for token in state.tokens:
        if token.type in {"td_open", "th_open"} and (side := _ALIGNED.get(str(token.attrs.pop("style", "")))):
            token.attrSet("class", side)


def _parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "maxNesting": MAX_NESTING}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Renderer).enable(["table", "strikethrough"])
    parser.core.ruler.push("tasks", _mark_tasks)
    parser.core.ruler.push("links", _rewrite)
    parser.core.ruler.push("alignment", _align_by_class)
    return parser


def _keep(tag: str, attribute: str, value: str) -> str | None:
    if (tag, attribute) == ("div", "data-language"):
        return value if _WORD.fullmatch(value) else None
    if (tag, attribute) == ("ol", "start"):
        return value if value.isdecimal() and len(value) < 10 else None
    return value


_PARSER = _parser()
_CLEANER = nh3.Cleaner(
    tags=set(TAGS),
    attributes={"a": {"href", "title"}, "div": {"data-language"}, "ol": {"start"}},
    allowed_classes={
        "span": set(CLASSES),
        "div": {"code", "plain"},
        "li": {"task"},
        "td": set(_ALIGNED.values()),
        "th": set(_ALIGNED.values()),
    },
    attribute_filter=_keep,
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener noreferrer",
    url_schemes=set(SCHEMES),
    url_relative="deny",
)
