"""A transcript as one self-contained HTML file without scripts.

All text of the agent and the user is escaped. Markdown is not rendered, and there are no links. The page's content
security policy forbids scripts and resources from other hosts. Pictures are embedded in the file.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from html import escape

from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.client.transcripts.transcript import (
    SPEAKERS,
    Transcript,
    TranscriptMessage,
    TranscriptPlan,
    as_json,
    describe_block,
    diff_lines,
)
from dragoman.protocol import v1
from dragoman.protocol.unions import UnknownVariant
from dragoman.text import clean_text, one_line

PICTURES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""Image types that cannot contain scripts, unlike SVG."""

STEPS = {"pending": "\N{WHITE CIRCLE}", "in_progress": "\N{CIRCLE WITH LEFT HALF BLACK}", "completed": "\N{CHECK MARK}"}

STYLE = """
:root { color-scheme: light dark; --text: #1c1c1e; --back: #fdfdfc; --faint: #66666c; --line: #dcdce0; --user: #eaf1fb;
  --code: #f3f3f1; --add: #1a7f37; --del: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8ea; --back: #18181a; --faint: #a0a0a8; --line: #3a3a40;
  --user: #1f2b3d; --code: #222225; --add: #56d364; --del: #ff8a80; } }
body { color: var(--text); background: var(--back); font: 16px/1.55 system-ui, sans-serif; margin: 0 auto;
  max-width: 50rem; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: .8rem; font-weight: 600; color: var(--faint); margin: 0 0 .25rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; color: var(--faint); font-size: .9rem;
  margin: 0 0 2rem; }
dd { margin: 0; }
section, details { margin: 1rem 0; }
section.user { background: var(--user); border-radius: .5rem; padding: .75rem 1rem; }
details { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem 1rem; }
summary { cursor: pointer; color: var(--faint); }
.text { white-space: pre-wrap; unicode-bidi: plaintext; margin: 0; }
.note { color: var(--faint); margin: .25rem 0; }
pre { background: var(--code); border-radius: .35rem; padding: .6rem .8rem; white-space: pre-wrap; margin: .5rem 0;
  font: .875rem/1.45 ui-monospace, monospace; }
ins { color: var(--add); text-decoration: none; } del { color: var(--del); text-decoration: none; }
img { max-width: 100%; border-radius: .35rem; }
ul { list-style: none; padding: 0; margin: 0; }
.failed { color: var(--del); }
@media print { :root { color-scheme: light; } body { max-width: none; padding: 0; font-size: 11pt; }
  section, pre, summary { break-inside: avoid-page; } details { border: 0; padding: 0; }
  details::details-content { content-visibility: visible; display: block; } }
"""


def to_html(transcript: Transcript) -> str:
    """Return a transcript as HTML."""
    title = _line(transcript.title or transcript.session_id)
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    body = "\n".join(_entry(entry) for entry in transcript.entries)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n{_facts(transcript)}\n{body}\n</main>\n</body>\n</html>\n"
    )


def _facts(transcript: Transcript) -> str:
    facts = {"Session": transcript.session_id, "Agent": transcript.agent, "Directory": transcript.cwd}
    if transcript.updated_at:
        facts["Updated"] = transcript.updated_at
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{_line(value)}</dd>' for name, value in facts.items())}</dl>"


def _entry(entry: TranscriptMessage | ToolCallState | TranscriptPlan) -> str:
    match entry:
        case TranscriptMessage(role="thought", blocks=blocks):
            return f"<details><summary>Thought</summary>{''.join(map(_block, blocks))}</details>"
        case TranscriptMessage(role=role, blocks=blocks):
            return f'<section class="{role}"><h2>{SPEAKERS[role]}</h2>{"".join(map(_block, blocks))}</section>'
        case ToolCallState():
            return _call(entry)
        case TranscriptPlan(entries):
            steps = "".join(f"<li>{STEPS.get(step.status, '')} {_line(step.content)}</li>" for step in entries)
            return f"<section><h2>Plan</h2><ul>{steps}</ul></section>"


def _call(call: ToolCallState) -> str:
    mark = ' class="failed"' if call.status == "failed" else ""
    head = f"{_line(call.title or call.tool_call_id)} <span{mark}>({_line(call.status)})</span>"
    return f"<details><summary>{head}</summary>{''.join(_call_parts(call))}</details>"


def _call_parts(call: ToolCallState) -> Iterator[str]:
    for location in call.locations:
        yield _note(location.path)
    if call.raw_input is not None:
        yield f"<pre>{_text(as_json(call.raw_input))}</pre>"
    for item in call.content:
        match item:
            case v1.Content(content=v1.TextContent(text=text)):
                yield f"<pre>{_text(text)}</pre>"
            case v1.Content(content=block):
                yield _block(block)
            case v1.Diff():
                lines = map(_diff_line, diff_lines(item).split("\n"))
                yield "<pre>" + "\n".join(lines) + "</pre>"
            case v1.Terminal():
                yield _note(f"terminal {item.terminal_id}")
            case UnknownVariant(tag=tag):
                yield _note(f"content of type {tag}")


def _block(block: v1.ContentBlock) -> str:
    match block:
        case v1.TextContent(text=text):
            return f'<p class="text" dir="auto">{_text(text)}</p>'
        case v1.ImageContent() if block.mime_type in PICTURES and _is_base64(block.data):
            return f'<p><img alt="a picture" src="data:{block.mime_type};base64,{block.data}"></p>'
        case v1.EmbeddedResource(resource=v1.TextResourceContents(text=text)):
            return f"{_note(describe_block(block))}<pre>{_text(text)}</pre>"
        case _:
            return _note(describe_block(block))


def _diff_line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{_text(line)}</{tag}>" if tag else _text(line)


def _note(text: str) -> str:
    return f'<p class="note">{_line(text)}</p>'


def _line(text: str) -> str:
    return escape(one_line(text))


def _text(text: str) -> str:
    return escape(clean_text(text).strip("\n"))


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
