"""Resources of MCP servers that a prompt mentions as `@server:uri`: they are read, and go to the model with it.

A mention begins where no word, `@` or `/` stands before it, and ends at the next blank; full stops and the like behind
it are not part of it, and `@server:<…>` may hold blanks. A listed name of a resource does in place of its address. In
code nothing is a mention. Only the names of servers that the session has count, so that `@someone: hello` stays a
greeting; where an address follows that can only be one (`://`), an unknown server is told as a mistake.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.agent.servers.session_mcp import SessionMcp
from dragoman.assistant.context.candidates import outside_code, quote
from dragoman.errors import ServerFailure
from dragoman.protocol import v1
from dragoman.text.match import closest

MAX_MENTIONS = 20
"""Resources that one prompt may have read."""

_MENTION = re.compile(r"(?<![A-Za-z0-9_@/])@([^\s@:`\"'<>/]{1,100}):(?:<([^<>\n]{1,2000})>|([^\s<>`\"]{1,2000}))")
_OF_THE_CONTEXT = frozenset(("rule", "ref"))
_FOREIGN = re.compile(r"[^\w.-]+")


class ResourceMention(NamedTuple):
    """One mention: the server as it was written, and the address or the name of the resource."""

    server: str
    what: str


class MentionedResources(NamedTuple):
    """The parts of the resources that a prompt mentions, and a sentence for each that could not be read."""

    blocks: Sequence[v1.ContentBlock]
    problems: Sequence[str]


def find_resource_mentions(prompt: Sequence[v1.ContentBlock]) -> list[ResourceMention]:
    """Return what may be mentions of resources, each once, in order."""
    text = "\n".join(block.text for block in prompt if isinstance(block, v1.TextContent))
    if "@" not in text:
        return []
    found = [
        ResourceMention(match[1], match[2] or _without_punctuation(match[3]))
        for match in _MENTION.finditer(outside_code(text))
        if match[1].lower() not in _OF_THE_CONTEXT
    ]
    return [each for each in dict.fromkeys(found) if each.what]


async def read_mentions(mentions: Sequence[ResourceMention], mcp: SessionMcp) -> MentionedResources:
    """Read the resources of the servers that the session has; a failure costs that mention alone."""
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
                problems.append(f"{shown} was not attached: there is no MCP server {quote(server)} here.{hint}")
            continue
        try:
            blocks += await mcp.resources.read(name, what)
        except ServerFailure as failure:
            problems.append(f"{shown} was not attached: {failure}")
    if len(mentions) > MAX_MENTIONS:
        problems.append(f"Only the first {MAX_MENTIONS} resources that the prompt mentions were looked at.")
    return MentionedResources(blocks, problems)


def _without_punctuation(word: str) -> str:
    word = word.rstrip(".,;:!?'")
    return word[:-1].rstrip(".,;:!?'") if word.endswith(")") and "(" not in word else word
