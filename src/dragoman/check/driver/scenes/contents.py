"""Prompts that hold more than text."""

import base64
from pathlib import Path

from dragoman.check.driver.desk import Object
from dragoman.check.driver.link import Link, Reply
from dragoman.check.driver.scenes.sessions import tidy
from dragoman.check.driver.stage import Stage

PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\x0bIDATx\xdac\xf8\x0f\x04\x00\t\xfb\x03\xfdh\xfa\x1c\xcc\x00\x00\x00\x00IEND\xaeB`\x82"
)
"""A picture of one pixel."""
SILENCE = (
    b"RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00"
    b"data\x02\x00\x00\x00\x00\x00"
)
"""A sound of one sample."""


async def contents(stage: Stage) -> None:
    """Prompt with a link and whatever the agent says that it takes: all at once, and if that fails, one by one."""
    if not stage.options.prompt:
        return
    async with stage.joined("more than text") as link:
        session_id = await stage.new_session(link, "contents")
        if session_id is None:
            return
        blocks = _blocks(stage, stage.directory("contents") / "notes.txt")
        reply = await _prompt(stage, link, session_id, blocks)
        if reply is not None and not reply.ok and len(blocks) > 1:
            for block in blocks:
                await _prompt(stage, link, session_id, [block])
        await tidy(stage, link, session_id)


async def _prompt(stage: Stage, link: Link, session_id: str, blocks: list[Object]) -> Reply | None:
    text: Object = {"type": "text", "text": stage.options.turns[0].prompt}
    params: Object = {"sessionId": session_id, "prompt": [text, *blocks]}
    return await link.request("session/prompt", params, stage.options.turn_timeout_s)


def _blocks(stage: Stage, path: Path) -> list[Object]:
    """Return a link, which every agent takes, and one of each kind that is advertised."""
    name = {"uri": path.as_uri(), "mimeType": "text/plain"}
    guarded: dict[str, Object] = {
        "image": {"type": "image", "data": _encode(PIXEL), "mimeType": "image/png"},
        "audio": {"type": "audio", "data": _encode(SILENCE), "mimeType": "audio/wav"},
        "embeddedContext": {"type": "resource", "resource": {**name, "text": path.read_text()}},
    }
    advertised = [block for kind, block in guarded.items() if stage.offers(f"promptCapabilities.{kind}")]
    return [{"type": "resource_link", "name": path.name, **name}, *advertised]


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
