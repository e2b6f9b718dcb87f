"""`/export/<agent>?session=…&format=…`: one session as a file.

The export opens a read-only viewer that may see only this session, loads the session and closes the viewer. Every
version of ACP and every store is therefore exported by the code that serves viewers.
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
from dragoman.errors import InvalidParamsError
from dragoman.protocol import methods, v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE

EXPORT_PATH = "/export/"

MAX_EXPORT_BYTES = 64 * 1024 * 1024
"""Size of all messages. A browser cannot show a larger file."""

TIMEOUT_S = 120.0
"""Time for an agent to start, and for a slow disk."""

_MAX_AT_ONCE = 2
"""Exports at a time, because each holds a whole session in memory."""

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
    error: Raw = Raw()


class SessionExport:
    """Serves sessions of a bridge as files."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._slots = {role: asyncio.Semaphore(_MAX_AT_ONCE) for role in ("owner", "reader")}

    async def serve(self, exchange: Exchange, grant: Grant) -> None:
        """Answer with the file. Raises HttpError."""
        exchange.allow("GET")
        agent = self._bridge.agent(exchange.path.removeprefix(EXPORT_PATH))
        query = parse_qs(exchange.scope["query_string"].decode("latin-1"))
        session_id, kind = (query.get(name, [""])[0] for name in ("session", "format"))
        if agent is None or not grant.reaches(agent.spec.name, session_id):
            raise HttpError(
                403 if grant.is_scoped else 404, "no session with this id can be exported; list them with session/list"
            )
        if kind not in _KINDS:
            raise HttpError(400, f"there is no format {kind!r:.40}; expected one of {', '.join(_KINDS)}")
        facts = agent.describe_session(session_id)
        if facts is None:
            raise HttpError(404, "the bridge has no such session; open it once, then export it")
        async with self._slots[grant.role]:
            lines = await _load(agent, facts)
            text = await asyncio.to_thread(_write, facts, agent.spec.title or agent.spec.name, lines, kind)
        suffix, content_type = _KINDS[kind]
        name = f'attachment; filename="{_file_name(facts["title"])}.{suffix}"'
        headers = [NO_STORE, (b"content-disposition", name.encode()), (b"content-type", content_type)]
        await exchange.reply(200, text.encode(errors="replace"), headers)


async def _load(agent: ServedAgent, facts: dict[str, Any]) -> list[bytes]:
    """Return all updates of a session in the form for viewers of version 1. Raises HttpError."""
    session_id = facts["sessionId"]
    viewer = agent.open_viewer(ViewerAccess(read_only=True, session_id=session_id))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            greeting: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": _CAPABILITIES}
            await _ask(viewer, 1, methods.INITIALIZE.name, greeting)
            place: dict[str, Any] = {"sessionId": session_id, "cwd": facts["cwd"], "mcpServers": []}
            return await _ask(viewer, 2, methods.SESSION_LOAD.name, place)
    except TimeoutError:
        raise HttpError(504, "the session could not be read in time; try again") from None
    finally:
        await viewer.close()


async def _ask(viewer: Viewer, id_: int, method: str, params: dict[str, Any]) -> list[bytes]:
    """Send a request and return the updates that arrive before its answer. Raises HttpError."""
    stream = viewer.stream()
    viewer.receive(msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))
    updates: list[bytes] = []
    size = 0
    # The replay comes before the answer to `session/load`, so everything up to the answer is the session.
    while items := await stream.next_batch():
        for line in [line for item in items for line in item.messages()]:
            message = msgspec.json.decode(line, type=_Message)
            if message.method == SESSION_UPDATE.name:
                size += len(line)
                updates.append(bytes(message.params))
            elif message.method is None and message.id == id_:
                if bytes(message.error):
                    raise HttpError(409, "the session cannot be opened to read it; open it in the page first")
                return updates
        if size > MAX_EXPORT_BYTES:
            limit = MAX_EXPORT_BYTES // (1024 * 1024)
            raise HttpError(413, f"the session has more than {limit} MB; use `dragoman sessions export` for it")
    raise HttpError(503, viewer.close_reason or "the bridge is stopping")


# The functions below run in a thread.


def _write(facts: dict[str, Any], agent: str, lines: Sequence[bytes], kind: str) -> str:
    from dragoman.client.transcripts.transcript import make_transcript, write_transcript

    info = v1.SessionInfo(
        session_id=facts["sessionId"], cwd=facts["cwd"], title=facts["title"], updated_at=facts["updatedAt"]
    )
    updates: list[v1.SessionUpdate] = []
    for line in lines:
        try:
            params = decode_params(SESSION_UPDATE, line, lenient=True)
        except InvalidParamsError:
            continue  # the page also omits invalid updates
        if params.session_id == info.session_id:
            updates.append(params.update)
    return write_transcript(make_transcript(info, agent, updates), kind)


def _file_name(title: str | None) -> str:
    """Return a file name for a title, with only ASCII letters and digits."""
    return re.sub(r"[^A-Za-z0-9]+", "-", title or "").strip("-")[:60] or "session"
