"""Scenes about Streamable HTTP: connections, streams and sessions, refusals, and interrupted streams."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.check.conversation import RecordedConversation
from dragoman.check.driver.connection import LATE_S
from dragoman.check.driver.http_connection import JSON_HEADERS, HttpProbeConnection, connect_http, encode
from dragoman.check.driver.http_probe import EVENT_STREAM, JSON_TYPE, HttpProbe, HttpReply, ProbeStream
from dragoman.check.driver.stage import Stage
from dragoman.check.judge import Judge
from dragoman.check.judge.message import Object, part
from dragoman.check.judge.session import ALIVE
from dragoman.protocol.address import Address
from dragoman.protocol.http_link import speaks_http2
from dragoman.protocol.streamable_http import CONNECTION_HEADER, SESSION_HEADER

RETURN_ID = "return"
"""The id of the request that opens a session again."""

ACCEPT = {"Accept": EVENT_STREAM}


@asynccontextmanager
async def open_probe(stage: Stage, name: str) -> AsyncGenerator[HttpProbe | None]:
    """Yield a probe with a judge, or None for an agent at a ws:// or wss:// URL."""
    address = Address.parse(stage.options.url, token=stage.options.token)
    if address.is_websocket_only or stage.knowledge.is_deaf:
        yield None
        return
    is_http2 = not address.is_secure and await speaks_http2(address)
    judge = Judge(RecordedConversation(name))
    judge.assume(stage.dialect.version)
    stage.knowledge.judges.append(judge)
    yield HttpProbe(address, judge, is_http2=is_http2)


# ── connections and streams ─────────────────────────────────────────────────────────────────────


async def exchange(stage: Stage) -> None:
    """Sessions and prompts over HTTP."""
    async with open_probe(stage, "Streamable HTTP") as probe:
        if probe is None:
            return
        session_id = await _converse(stage, probe)
        if stage.knowledge.is_deaf or stage.knowledge.is_mute:
            return
        async with connect_http(stage, probe) as one, connect_http(stage, probe) as other:
            if one is None or other is None:
                return
            if session_id is not None:
                await _reopen_session(stage, one, session_id)
            if await _judge_separation(one, other):
                await _end(stage, one, other)


async def _converse(stage: Stage, probe: HttpProbe) -> str | None:
    """Prompt in one of two sessions and disconnect without notice. Return the session if it was prompted."""
    async with connect_http(stage, probe) as connection:
        if connection is None:
            return None
        _judge_version(probe, connection.streams[None])
        first = await connection.new_session("http-1")
        second = await connection.new_session("http-2") if first is not None else None
        if first is None or second is None:
            return None
        is_open = all([(await connection.open(session_id)).is_open for session_id in (first, second)])
        can_prompt = stage.options.prompt and is_open
        is_prompted = can_prompt and await _prompt(stage, connection, first)
        await connection.post(encode("session/cancel", {"sessionId": first}), first)
        await connection.clean_up(second)
        return first if is_prompted else None


def _judge_version(probe: HttpProbe, stream: ProbeStream) -> None:
    reply = stream.reply
    if reply is None or not reply.version:
        return
    if reply.version == "HTTP/2":
        probe.judge.count_occasion("ACP-HTTP-025")
    else:
        probe.judge.record_breach("ACP-HTTP-025", f"the server speaks {reply.version} with us", reply.entries)


async def _prompt(stage: Stage, connection: HttpProbeConnection, session_id: str) -> bool:
    turn = stage.options.turns[0]
    params: Object = {"sessionId": session_id, "prompt": [{"type": "text", "text": turn.prompt}]}
    timeout_s = stage.options.turn_timeout_s
    own = connection.streams[session_id]
    if not own.events:  # an agent that works on a prompt may answer nothing else, but an idle one answers this
        await connection.request(ALIVE, {"sessionId": session_id}, stage.options.timeout_s, session_id=session_id)
    request_id = await connection.begin("session/prompt", params, session_id=session_id)
    if request_id is None or await _is_silent(stage, connection, session_id, request_id):
        return False
    place = await connection.find_answer(request_id, timeout_s)
    if place is not None and stage.dialect.version == 2:
        await connection.wait_until(lambda: any(_is_idle(each.message) for each in own.events), timeout_s)
    judge = connection.probe.judge
    if place is not None and place[0] is not own:
        detail = f"the response to session/prompt of session {session_id} came on the stream of {place[0].name}"
        judge.record_breach("ACP-HTTP-017", detail, (place[1].entry,))
    for scope, stream in connection.streams.items():
        for event in stream.events:
            named = part(event.message or {}, "params").get("sessionId")
            if isinstance(named, str) and named != scope:
                detail = f"a message of session {named} came on the stream of {stream.name}"
                judge.record_breach("ACP-HTTP-017", detail, (event.entry,))
            elif named is not None:
                judge.count_occasion("ACP-HTTP-017")
    return place is not None and "result" in (place[1].message or {})


async def _is_silent(stage: Stage, connection: HttpProbeConnection, session_id: str, request_id: int) -> bool:
    """Judge whether a prompted session's stream carries anything, after a cancel if not before.

    A liveness request on the connection distinguishes a dead stream from an agent that hangs.
    """
    own, timeout_s = connection.streams[session_id], stage.options.timeout_s

    def has_output() -> bool:
        return bool(own.events) or connection.find(request_id) is not None

    if await connection.wait_until(has_output, min(timeout_s, stage.options.turn_timeout_s)):
        return False
    reply = await connection.post(encode("session/cancel", {"sessionId": session_id}), session_id)
    if await connection.wait_until(has_output, timeout_s):
        return False
    alive = await connection.request(ALIVE, {}, timeout_s)
    if alive is None or has_output():
        return False
    stage.knowledge.has_silent_sessions = True
    detail = f"nothing came on the stream of session {session_id} for a prompt and a cancel, and others carry messages"
    connection.probe.judge.record_breach("ACP-HTTP-017", detail, (*reply.entries, alive[1].entry))
    return True


def _is_idle(message: Object | None) -> bool:
    update = part(part(message or {}, "params"), "update")
    return update.get("sessionUpdate") == "state_update" and update.get("state") == "idle"


async def _reopen_session(stage: Stage, connection: HttpProbeConnection, session_id: str) -> None:
    """Open a session again after its connection was closed."""
    is_loaded = stage.dialect.version == 1 and stage.offers("loadSession")
    if not is_loaded and not stage.offers("sessionCapabilities.resume"):
        return
    method = "session/load" if is_loaded else "session/resume"
    params: Object = {"sessionId": session_id, "cwd": str(stage.directory("http-1")), "mcpServers": []}
    await connection.open(
        session_id, is_judged=False
    )  # the proposal's own example does this before the session is known
    reply = await connection.send(encode(method, params, RETURN_ID), session_id)
    judge = connection.probe.judge
    if not 200 <= reply.status < 300:
        detail = f"the server {reply.shown} to {method} of a session whose connection is gone"
        judge.record_breach("ACP-HTTP-024", detail, reply.entries, warn=not reply.status)
        return
    place = await connection.find_answer(RETURN_ID, stage.options.turn_timeout_s)
    if is_loaded:
        connection.judge_opening(method, place)
    if place is None:
        return
    if "result" not in (place[1].message or {}):
        detail = f"{method} of a session that was prompted on a connection that is gone failed"
        judge.record_breach("ACP-HTTP-024", detail, (*reply.entries, place[1].entry))
        return
    judge.count_occasion("ACP-HTTP-024")
    await connection.clean_up(session_id)


async def _judge_separation(one: HttpProbeConnection, other: HttpProbeConnection) -> bool:
    """Use the same JSON-RPC id on two connections concurrently. Return whether each had its own answer."""
    judge = one.probe.judge
    if one.id == other.id:
        detail = f"two connections have the same {CONNECTION_HEADER}"
        judge.record_breach("ACP-HTTP-023", detail, (one.probe.record_event(f"{CONNECTION_HEADER}: {one.id}, twice"),))
        return False
    # A server that mixes up the two connections sends both answers to one of them, or one to both.
    sessions = await asyncio.gather(
        one.new_session("http-3", request_id="same"), other.new_session("http-4", request_id="same")
    )
    for connection in (one, other):
        await connection.wait_until(lambda: False, LATE_S)
    answers = [
        [event for stream in connection.streams.values() for event in stream.find_answers("same")]
        for connection in (one, other)
    ]
    if not any(answers):
        return True
    if [len(events) for events in answers] != [1, 1]:
        counts = " and ".join(str(len(events)) for events in answers)
        detail = f"two connections used the same JSON-RPC id, and had {counts} responses instead of one each"
        judge.record_breach("ACP-HTTP-023", detail, tuple(event.entry for events in answers for event in events))
        return False
    judge.count_occasion("ACP-HTTP-023")
    for connection, session_id in zip((one, other), sessions, strict=True):
        if session_id is not None:
            await connection.clean_up(session_id)
    return True


async def _end(stage: Stage, one: HttpProbeConnection, other: HttpProbeConnection) -> None:
    """End one connection. The other must continue."""
    probe, judge, timeout_s = one.probe, one.probe.judge, stage.options.timeout_s
    reply = await probe.send("DELETE", one.headers(), timeout_s=timeout_s)
    judge_status(probe, "ACP-HTTP-019", reply, 202, "a DELETE of a connection")
    stream = one.streams[None]
    if stream.is_open and 200 <= reply.status < 300:
        if await one.wait_until(lambda: stream.has_ended, timeout_s):
            judge.count_occasion("ACP-HTTP-021")
        else:
            detail = f"the stream of a deleted connection did not end within {timeout_s:g} s"
            judge.record_breach("ACP-HTTP-021", detail, reply.entries)
    if 200 <= reply.status < 300:
        late = await probe.send("POST", {**JSON_HEADERS, **one.headers()}, encode("session/new", {}, "late"))
        judge_status(probe, "ACP-HTTP-022", late, 404, "a POST to a deleted connection")
    session_id = await other.new_session("http-5")
    if session_id is None and other.streams[None].has_ended:
        detail = "the end of one connection ended another"
        judge.record_breach("ACP-HTTP-023", detail, reply.entries)
    elif session_id is not None:
        await other.clean_up(session_id)
    await probe.send("DELETE", other.headers(), timeout_s=timeout_s)


# ── refusals ────────────────────────────────────────────────────────────────────────────────────


def judge_status(probe: HttpProbe, rule: str, reply: HttpReply, status: int, what: str) -> None:
    """Judge the status of a response. No response at all is a warning."""
    if reply.status == status:
        probe.judge.count_occasion(rule)
    else:
        detail = f"the server {reply.shown} to {what}, where {status} was expected"
        probe.judge.record_breach(rule, detail, reply.entries, warn=not reply.status)


async def refusals(stage: Stage) -> None:
    """Requests over HTTP that must be refused."""
    async with open_probe(stage, "refusals over HTTP") as probe:
        if probe is None:
            return
        async with connect_http(stage, probe) as connection:
            if connection is None:
                return
            await _send_wrong_posts(stage, probe, connection)
            await _send_wrong_gets(stage, probe, connection)
            reply = await probe.send("DELETE", {}, timeout_s=stage.options.timeout_s)
            judge_status(probe, "ACP-HTTP-020", reply, 400, f"a DELETE without {CONNECTION_HEADER}")
            await probe.send("DELETE", connection.headers(), timeout_s=stage.options.timeout_s)


async def _send_wrong_posts(stage: Stage, probe: HttpProbe, connection: HttpProbeConnection) -> None:
    async def post(rule: str, status: int, what: str, headers: dict[str, str], body: bytes) -> None:
        reply = await probe.send("POST", {**JSON_HEADERS, **headers}, body, timeout_s=stage.options.timeout_s)
        judge_status(probe, rule, reply, status, what)

    note = encode("$/cancel_request", {"requestId": "none"})
    known, unknown = connection.headers(), {CONNECTION_HEADER: str(uuid.uuid4())}
    await post("ACP-HTTP-006", 415, "a body of type text/plain", {**known, "Content-Type": "text/plain"}, note)
    await post("ACP-HTTP-007", 501, "a batch", known, b"[%b,%b]" % (note, note))
    await post("ACP-HTTP-008", 400, f"a message without {CONNECTION_HEADER}", {}, note)
    await post("ACP-HTTP-009", 404, "a message to an unknown connection", unknown, note)
    session_id = await connection.new_session("http-6")
    if session_id is not None:
        cancel = encode("session/cancel", {"sessionId": session_id})
        await post("ACP-HTTP-010", 400, f"session/cancel without {SESSION_HEADER}", known, cancel)
        await connection.clean_up(session_id)


async def _send_wrong_gets(stage: Stage, probe: HttpProbe, connection: HttpProbeConnection) -> None:
    async def get(rule: str, status: int, what: str, headers: dict[str, str]) -> None:
        reply = await probe.send("GET", headers, timeout_s=stage.options.timeout_s)
        judge_status(probe, rule, reply, status, what)

    known = connection.headers()
    await get("ACP-HTTP-011", 406, f"a GET with Accept: {JSON_TYPE}", {**known, "Accept": JSON_TYPE})
    await get("ACP-HTTP-012", 400, f"a GET without {CONNECTION_HEADER}", ACCEPT)
    unknown = {**ACCEPT, CONNECTION_HEADER: str(uuid.uuid4())}
    await get("ACP-HTTP-013", 404, "a GET for the stream of an unknown connection", unknown)
    if not stage.offers("loadSession") and not stage.offers("sessionCapabilities.resume"):
        nobody = {**ACCEPT, **connection.headers(str(uuid.uuid4()))}
        await get("ACP-HTTP-014", 404, "a GET for the stream of an unknown session", nobody)


# ── interrupted streams ─────────────────────────────────────────────────────────────────────────


async def resume_stream(stage: Stage) -> None:
    """A stream that is opened again with Last-Event-ID."""
    if stage.dialect.version == 1:
        return
    async with open_probe(stage, "streams that broke off") as probe:
        if probe is None:
            return
        async with connect_http(stage, probe) as connection:
            if connection is None:
                return
            # Two answers come on the connection's stream. A stream that resumes after the first answer must
            # repeat the second, and only that.
            sessions = [await connection.new_session(f"http-{number}") for number in (7, 8)]
            answers = [each for each in connection.streams[None].events if "method" not in (each.message or {})]
            if None in sessions or len(answers) != 2 or not all(each.id for each in answers):
                return
            await connection.drop()
            stream = await connection.open(headers={"Last-Event-ID": answers[0].id})
            await connection.wait_until(lambda: bool(stream.events), stage.options.timeout_s)
            came = [each.message for each in stream.events[:2]]
            if came[:1] == [answers[1].message]:
                probe.judge.count_occasion("ACP-HTTP-026")
            else:
                again = answers[0].message in came
                detail = "an event came twice" if again else "the event behind Last-Event-ID did not come again"
                entries = (*(stream.reply.entries if stream.reply else ()), *(each.entry for each in stream.events))
                probe.judge.record_breach("ACP-HTTP-026", detail, entries)
            for session_id in filter(None, sessions):
                await connection.clean_up(session_id)
            await probe.send("DELETE", connection.headers(), timeout_s=stage.options.timeout_s)
