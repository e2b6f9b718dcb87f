"""HTTP requests to a server under check. Each request and each response becomes an entry of a conversation."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar
from typing import Any

import httpx2
import msgspec

from dragoman.check.conversation import MAX_BYTES, ConversationEntry, FloodedError, Side
from dragoman.check.judge import Judge
from dragoman.check.judge.message import Object, decode_object
from dragoman.library_logs import unlogged
from dragoman.protocol.address import Address

CONNECT_TIMEOUT_S = 15.0
MAX_BODY_BYTES = 1024 * 1024
"""Maximum size of a response that is not an event stream. The longest is the response to `initialize`."""

EVENT_STREAM = "text/event-stream"
JSON_TYPE = "application/json"
_SHOWN_HEADERS = ("content-type", "acp-connection-id", "acp-session-id")


class HttpReply(msgspec.Struct, frozen=True):
    """The response to a request. `status` is 0 if there was none in time."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    entries: tuple[ConversationEntry, ...]
    version: str = ""

    @property
    def content_type(self) -> str:
        """The type of the body without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def shown(self) -> str:
        """The status as part of a sentence."""
        return f"answered {self.status}" if self.status else "did not answer"


class ProbeEvent(msgspec.Struct, frozen=True):
    """An event of a stream."""

    id: str
    message: Object | None
    """The JSON object of the event, if it is one."""
    entry: ConversationEntry


class ProbeStream:
    """An event stream that is being read. `on_event` is called with each event."""

    def __init__(self, name: str, changed: asyncio.Event, on_event: Callable[["ProbeEvent"], None]) -> None:
        self.name = name
        self.reply: HttpReply | None = None
        """The response to its GET, once it has arrived."""
        self.events: list[ProbeEvent] = []
        self.has_ended = False
        self.news = changed
        """Set after each change."""
        self.on_event = on_event

    @property
    def is_open(self) -> bool:
        """Return whether it was opened as an event stream."""
        return self.reply is not None and self.reply.status == 200 and self.reply.content_type == EVENT_STREAM

    @property
    def is_useless(self) -> bool:
        """Return whether its GET had no response, or one that is neither an event stream nor a refusal."""
        return self.reply is None or (self.reply.status in (0, 200) and not self.is_open)

    def find_answers(self, request_id: Any) -> list[ProbeEvent]:
        """Return the responses to a request that arrived on this stream."""
        return [each for each in self.events if is_answer(each.message, request_id)]


def is_answer(message: Object | None, request_id: Any) -> bool:
    """Return whether a message is the response to a request."""
    return message is not None and "method" not in message and message.get("id") == request_id


class HttpProbe:
    """Sends requests unchanged. `is_http2` selects the HTTP version without TLS."""

    def __init__(self, address: Address, judge: Judge, *, is_http2: bool) -> None:
        self.address = address
        self.judge = judge
        self._is_http2 = is_http2
        self._tls = ssl.create_default_context() if address.is_secure else None
        self._jar = CookieJar()
        self._received_bytes = 0
        self._start_s = time.monotonic()

    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes = b"", *, timeout_s: float = CONNECT_TIMEOUT_S
    ) -> HttpReply:
        """Send a request and read its response. Of an event stream read only the head."""
        sent = self._record("client", _show_request(method, headers, body))
        try:
            with unlogged():
                async with (
                    asyncio.timeout(timeout_s),
                    self._client() as client,
                    client.stream(method, self.address.url, content=body or None, headers=dict(headers)) as response,
                ):
                    return await self._read_reply(response, sent)
        except TimeoutError:
            problem = f"no answer within {timeout_s:g} s"
        except (httpx2.HTTPError, OSError) as error:
            problem = f"the connection broke ({type(error).__name__})"
        return HttpReply(0, {}, b"", (sent, self._record("agent", event=problem)))

    async def read(self, stream: ProbeStream, headers: Mapping[str, str]) -> None:
        """Open an event stream and read it until it ends."""
        accept = {"Accept": EVENT_STREAM, **headers}
        sent = self._record("client", _show_request("GET", accept, b""))
        try:
            with unlogged():
                async with self._client() as client, client.stream("GET", self.address.url, headers=accept) as response:
                    stream.reply = self._record_head(response, sent)
                    stream.news.set()
                    if stream.is_open:
                        await self._read_events(stream, response)
        except (httpx2.HTTPError, OSError) as error:
            entry = self._record("agent", event=f"the connection of the stream broke ({type(error).__name__})")
            stream.reply = stream.reply or HttpReply(0, {}, b"", (sent, entry))
        finally:
            stream.has_ended = True
            stream.news.set()

    async def _read_events(self, stream: ProbeStream, response: httpx2.Response) -> None:
        async for event in httpx2.EventSource(response, max_event_size=MAX_BYTES):
            if not event.data:
                continue
            data = event.data.encode(errors="replace")
            entry = self._record("agent", b"on the stream of %b: %b" % (stream.name.encode(), self._hide(data)))
            self._received_bytes += len(data)
            if self._received_bytes > MAX_BYTES:
                raise FloodedError(self.judge.conversation.name)
            found = ProbeEvent(event.id or "", decode_object(data), entry)
            stream.events.append(found)
            stream.on_event(found)
            stream.news.set()

    async def _read_reply(self, response: httpx2.Response, sent: ConversationEntry) -> HttpReply:
        body = bytearray()
        if not response.headers.get("content-type", "").startswith(EVENT_STREAM):
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    break
        return self._record_reply(response, sent, bytes(body))

    def _record_reply(self, response: httpx2.Response, sent: ConversationEntry, body: bytes) -> HttpReply:
        shown = [f"{name}: {value}" for name in _SHOWN_HEADERS if (value := response.headers.get(name))]
        head = " ".join((str(response.status_code), response.reason_phrase, *shown)).encode()
        entry = self._record("agent", self._hide(head + (b" " + body if body else b"")))
        return HttpReply(response.status_code, response.headers, body, (sent, entry), response.http_version)

    def _record_head(self, response: httpx2.Response, sent: ConversationEntry) -> HttpReply:
        """Record a response without its body, which may never end."""
        return self._record_reply(response, sent, b"")

    def _hide(self, text: bytes) -> bytes:
        return self.address.without_secrets(text.decode(errors="replace")).encode()

    def record_event(self, event: str) -> ConversationEntry:
        """Record an event of the server."""
        return self._record("agent", event=event)

    def _record(self, sender: Side, line: bytes = b"", event: str = "") -> ConversationEntry:
        return self.judge.conversation.add(sender, line, time.monotonic() - self._start_s, event)

    def _client(self) -> httpx2.AsyncClient:
        is_secure = self.address.is_secure
        return httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **self.address.headers},
            cookies=self._jar,
            verify=self._tls or False,
            http1=is_secure or not self._is_http2,
            http2=is_secure or self._is_http2,
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
        )


def _show_request(method: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a request as shown in reports, without our credentials."""
    shown = " ".join((method, *(f"{name}: {value}" for name, value in headers.items()))).encode()
    return shown + (b" " + body if body else b"")
