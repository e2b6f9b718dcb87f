"""Resources of MCP servers that a prompt mentions as `@server:uri`. They are read and sent with the prompt.

A mention must not follow a word character, `@` or `/`. It ends at the next blank, and trailing punctuation is not part
of it. `@server:<…>` may contain blanks. The listed name of a resource works instead of its URI. Code contains no
mentions. Only names of the session's servers count, so `@someone: hello` remains a greeting. If `://` follows, it must
be a URI, and an unknown server is reported.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.agent.servers.session_mcp import SessionMcp
from dragoman.assistant.context.candidates import outside_code, quote
from dragoman.errors import McpServerError
from dragoman.protocol import v1
from dragoman.text.match import closest

MAX_MENTIONS = 20
"""The most resources that one prompt may attach."""

_MENTION = re.compile(r"(?<![A-Za-z0-9_@/])@([^\s@:`\"'<>/]{1,100}):(?:<([^<>\n]{1,2000})>|([^\s<>`\"]{1,2000}))")
_CONTEXT_KINDS = frozenset(("rule", "ref"))
_FOREIGN = re.compile(r"[^\w.-]+")


class ResourceMention(NamedTuple):
    """One mention: the server's name and the URI or name of the resource, as written."""

    server: str
    what: str


class MentionedResources(NamedTuple):
    """The content of the mentioned resources, and a sentence for each that could not be read."""

    blocks: Sequence[v1.ContentBlock]
    problems: Sequence[str]


def find_resource_mentions(prompt: Sequence[v1.ContentBlock]) -> list[ResourceMention]:
    """Return the possible mentions of resources, in order, without duplicates."""
    text = "\n".join(block.text for block in prompt if isinstance(block, v1.TextContent))
    if "@" not in text:
        return []
    found = [
        ResourceMention(match[1], match[2] or _without_punctuation(match[3]))
        for match in _MENTION.finditer(outside_code(text))
        if match[1].lower() not in _CONTEXT_KINDS
    ]
    return [each for each in dict.fromkeys(found) if each.what]


async def read_mentions(mentions: Sequence[ResourceMention], mcp: SessionMcp) -> MentionedResources:
    """Read the mentioned resources of the session's servers. A failure affects only its own mention."""
    names = {_FOREIGN.sub("-", status.name): status.name for status in mcp.servers.statuses()}
    blocks: list[v1.ContentBlock] = []
    problems: list[str] = []
    for server, what in mentions[:MAX_MENTIONS]:
        shown = quote(f"@{server}:{what}")
        name = names.get(server)
        if name is None:
            if "://" in what:
                near = closest(server, names)
                hint = f" Did you mean {quote(f'@{near}:{what}')}?" if near else ""
                problems.append(f"{shown} was not attached: no MCP server here is named {quote(server)}.{hint}")
            continue
        try:
            blocks += await mcp.resources.read(name, what)
        except McpServerError as failure:
            problems.append(f"{shown} was not attached: {failure}")
    if len(mentions) > MAX_MENTIONS:
        problems.append(f"Only the first {MAX_MENTIONS} resources that the prompt mentions were attached.")
    return MentionedResources(blocks, problems)


def _without_punctuation(word: str) -> str:
    word = word.rstrip(".,;:!?'")
    return word[:-1].rstrip(".,;:!?'") if word.endswith(")") and "(" not in word else word
