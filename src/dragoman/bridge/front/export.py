"""`/export/<agent>?session=…&format=…`: one session as a file.

The bridge reads the session as a reader of it would: a viewer of its own, which may see that session alone, loads it
and leaves. So every version and every store of journals is exported by the code that serves viewers.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

import msgspec
from msgspec import Raw

from dragoman.bridge import Bridge, ServedAgent, Viewer, ViewerAccess
from dragoman.bridge.front.exchange import NO_STORE, Exchange, HttpError
from dragoman.bridge.guard import Grant
from dragoman.errors import InvalidParams
from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE

EXPORT_PATH = "/export/"

MAX_EXPORT_BYTES = 64 * 1024 * 1024
"""Of messages: a file of that size is nothing that a browser shows."""

TIMEOUT_S = 120.0
"""For an agent that has to start first, and a slow disk."""

_MAX_AT_ONCE = 2
"""Each holds a whole session in memory."""

_CAPABILITIES: dict[str, Any] = {"session": {"notices": {}, "compaction": {}}, "subagents": {}}

_KINDS = {
    "html": ("html", b"text/html; charset=utf-8"),
    "markdown": ("md", b"text/markdown; charset=utf-8"),
    "json": ("json", b"application/json"),
}


class _Message(msgspec.Struct):
    id: int | None = None
    method: str | None = None
    params: Raw = Raw(b"{}")
    error: Raw | None = None


class SessionExport:
    """Serves the exports of a bridge."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._slots = asyncio.Semaphore(_MAX_AT_ONCE)

    async def serve(self, exchange: Exchange, grant: Grant) -> None:
        """Answer with the file; raises HttpError."""
        exchange.allow("GET")
        agent = self._bridge.agent(exchange.path.removeprefix(EXPORT_PATH))
        query = parse_qs(exchange.scope["query_string"].decode("latin-1"))
        session_id, kind = (query.get(name, [""])[0] for name in ("session", "format"))
        if agent is None or not grant.reaches(agent.spec.name, session_id):
            raise HttpError(403 if grant.is_scoped else 404, "there is no such session for you to export")
        if kind not in _KINDS:
            raise HttpError(400, f"there is no format {kind!r:.40}; expected one of {', '.join(_KINDS)}")
        facts = agent.describe_session(session_id)
        if facts is None:
            raise HttpError(404, "the bridge has no such session; open it once, then export it")
        async with self._slots:
            lines = await _load(agent, facts)
            text = await asyncio.to_thread(_write, facts, agent.spec.title or agent.spec.name, lines, kind)
        suffix, content_type = _KINDS[kind]
        name = f'attachment; filename="{_file_name(facts["title"])}.{suffix}"'
        headers = [NO_STORE, (b"content-disposition", name.encode()), (b"content-type", content_type)]
        await exchange.reply(200, text.encode(errors="replace"), headers)


async def _load(agent: ServedAgent, facts: dict[str, Any]) -> list[bytes]:
    """Return all updates of a session, as a viewer of version 1 gets them; raises HttpError."""
    session_id = facts["sessionId"]
    viewer = agent.open_viewer(ViewerAccess(read_only=True, session_id=session_id))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            greeting: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": _CAPABILITIES}
            await _ask(viewer, 1, "initialize", greeting)
            place: dict[str, Any] = {"sessionId": session_id, "cwd": facts["cwd"], "mcpServers": []}
            return await _ask(viewer, 2, "session/load", place)
    except TimeoutError:
        raise HttpError(504, "the session could not be read in time; try again") from None
    finally:
        await viewer.close()


async def _ask(viewer: Viewer, id_: int, method: str, params: dict[str, Any]) -> list[bytes]:
    """Send a request, and return the updates that come before its answer; raises HttpError."""
    stream = viewer.stream()
    viewer.receive(msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))
    updates: list[bytes] = []
    size = 0
    while items := await stream.take():
        for line in [line for item in items for line in item.messages()]:
            message = msgspec.json.decode(line, type=_Message)
            if message.method == SESSION_UPDATE.name:
                size += len(line)
                updates.append(bytes(message.params))
            elif message.method is None and message.id == id_:
                if message.error is not None:
                    raise HttpError(409, "the session cannot be opened to read it; open it in the page first")
                return updates
        if size > MAX_EXPORT_BYTES:
            limit = MAX_EXPORT_BYTES // (1024 * 1024)
            raise HttpError(413, f"the session has more than {limit} MB; use `dragoman sessions export` for it")
    raise HttpError(503, viewer.close_reason or "the bridge is being stopped")


# The rest is for a thread.


def _write(facts: dict[str, Any], agent: str, lines: Sequence[bytes], kind: str) -> str:
    from dragoman.client.transcript import make_transcript, write_transcript

    info = v1.SessionInfo(
        session_id=facts["sessionId"], cwd=facts["cwd"], title=facts["title"], updated_at=facts["updatedAt"]
    )
    updates: list[v1.SessionUpdate] = []
    for line in lines:
        try:
            params = decode_params(SESSION_UPDATE, line, lenient=True)
        except InvalidParams:
            continue  # the page leaves an update out that it cannot read, too
        if params.session_id == info.session_id:
            updates.append(params.update)
    return write_transcript(make_transcript(info, agent, updates), kind)


def _file_name(title: str | None) -> str:
    """Make a name for a file of a title: letters and digits that every system takes."""
    return re.sub(r"[^A-Za-z0-9]+", "-", title or "").strip("-")[:60] or "session"
