"""The URL of an agent, and the errors of one that cannot be reached."""

import re
import socket
import ssl
from collections.abc import Mapping
from typing import Self
from urllib.parse import SplitResult, urlsplit

import msgspec

from dragoman.errors import ConnectionClosed, DragomanError
from dragoman.text import one_line
from dragoman.text.secret import SecretHider

SHOWN_CHARACTERS = 200
"""The length of a server's reason for its refusal: enough for a sentence, too little for a page."""

SECRET_CHARACTERS = 6
"""A shorter header is no protection, and hiding it would garble the sentence."""

_SECURE = {"http": False, "ws": False, "https": True, "wss": True}
_EXPECTED = "expected something like https://host/acp or ws://127.0.0.1:8421/acp"


class BadAddress(DragomanError):
    """The URL of an agent, or a header for it, cannot be used."""


class AddressFailed(ConnectionClosed):
    """No agent can be reached at this URL: `status` is that of its answer, if it answered."""

    def __init__(self, url: str, problem: str, *, status: int | None = None) -> None:
        self.url = url
        self.problem = problem
        self.status = status
        super().__init__(f"{url} {problem}")


class Address(msgspec.Struct, frozen=True):
    """The place of an agent, and the credentials for it; only `shown` may be shown."""

    url: str
    """Its http or https form."""
    headers: Mapping[str, str]
    is_websocket_only: bool
    is_secure: bool
    host: str
    port: int
    shown: str
    """Without name, password and query, any of which may be secret."""

    @classmethod
    def parse(cls, url: str, *, token: str | None = None, headers: Mapping[str, str] | None = None) -> Self:
        """Make one of a URL; raises BadAddress."""
        parts, port = _split(url)
        secure = _SECURE[parts.scheme]
        bracketed = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        named = f"{bracketed}:{parts.port}" if parts.port is not None else bracketed
        return cls(
            url=parts._replace(scheme="https" if secure else "http", fragment="").geturl(),
            headers=_headers(token, headers or {}),
            is_websocket_only=parts.scheme in ("ws", "wss"),
            is_secure=secure,
            host=parts.hostname or "",
            port=port,
            shown=f"{parts.scheme}://{named}{parts.path}",
        )

    @property
    def websocket_url(self) -> str:
        """The same place for a WebSocket."""
        return "ws" + self.url.removeprefix("http")

    def fail(self, problem: str, *, status: int | None = None) -> AddressFailed:
        """Return the error that says so; no secret of ours is in it, even if the server says it back."""
        return AddressFailed(self.shown, self.without_secrets(problem), status=status)

    def without_secrets(self, text: str) -> str:
        """Return a text without the values of our headers."""
        values = self.headers.values()
        secrets = (*values, *(value.removeprefix("Bearer ") for value in values))
        return SecretHider(secrets, shortest=SECRET_CHARACTERS).clean(text)

    def refuse(self, status: int, said: bytes = b"") -> AddressFailed:
        """Return the error for an answer that is a refusal."""
        return self.fail(explain_status(status, said), status=status)


def explain_status(status: int, said: bytes = b"") -> str:
    """Return the meaning of an HTTP status for a person who gave the URL of an agent."""
    step = _STEPS.get(status)
    if step is None:
        step = _REDIRECTED if 300 <= status < 400 else "the server is in trouble; its log says why"
        step = step if status < 400 or status >= 500 else "it does not take what we send; see that it speaks ACP"
    words = _first_words(said)
    if len(words.split()) >= _LEAST_SENTENCE:
        # A server's sentence on tokens is about headers, which the person who gives the token does not see.
        return f"answered HTTP {status}: {step if status == _UNAUTHORIZED else words}"
    return f"answered HTTP {status}{f' ({words})' if words else ''}: {step}"


def explain_os_error(error: BaseException) -> str:
    """Return the reason why an address cannot be reached, and the next step."""
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"its certificate is not trusted ({error.verify_message}); if you know its authority, name the "
                "authority's file in the variable SSL_CERT_FILE; a program in Python may also give it as tls="
            )
        case ssl.SSLError():
            return f"TLS failed ({error.reason or type(error).__name__}); see whether it is http:// and not https://"
        case ConnectionRefusedError():
            return "nothing listens there; see that the server runs, and on that port"
        case socket.gaierror():
            return f"{error.strerror}; see that the name of the host is right"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return str(error) or type(error).__name__


_REDIRECTED = (
    "it redirects, which is not followed: the token is for this address alone; give the address it redirects to"
)

_UNAUTHORIZED = 401

_LEAST_SENTENCE = 5
"""Words of a server's that say more than ours, as the name of a status does not."""

_STEPS = {
    200: "where an event stream was expected; see that the path is that of an ACP endpoint, such as /acp",
    400: "it does not understand the request; see that it speaks ACP, and which version of the proposal",
    401: "it wants a token, or another one; a command takes it from --token-file FILE or $DRAGOMAN_TOKEN",
    403: "it does not let us in; see that the token, the host name and the origin are what it expects",
    404: "it knows no such endpoint, connection or session; see that the path is right, such as /acp, or connect again",
    405: "there is no ACP endpoint at this path; see that the path is right, such as /acp",
    406: "it sends no event stream; try a WebSocket, with a ws:// or wss:// URL",
    410: "the connection is gone; connect again",
    413: "the message is too large for it; send less, or raise its limit",
    415: "it takes no JSON; see that it speaks ACP",
    426: "it takes WebSockets only; give a ws:// or wss:// URL",
    429: "too many requests; try again later",
    501: "it does not have this way of talking; try the other one, WebSocket or HTTP",
    502: "what stands before the agent does not reach it; see that it runs",
    503: "it is not ready, or has too much to do; try again later",
    504: "what stands before the agent got no answer from it in time; see that it runs",
}


def _split(url: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise BadAddress(f"the URL of the agent is malformed; {_EXPECTED}") from None
    if parts.scheme not in _SECURE:
        given = f"begins with {parts.scheme}:" if parts.scheme else "has no scheme"
        raise BadAddress(f"the URL of the agent {given}; {_EXPECTED}")
    if not parts.hostname or re.search(r"[\s\x00-\x1f]", url.strip()):
        raise BadAddress(f"the URL of the agent names no host; {_EXPECTED}")
    return parts, port or (443 if _SECURE[parts.scheme] else 80)


def _headers(token: str | None, headers: Mapping[str, str]) -> dict[str, str]:
    if token is not None:
        if not token.strip():
            raise BadAddress("the token is empty; leave it out, or give the one that the agent's operator has")
        headers = {**headers, "Authorization": f"Bearer {token.strip()}"}
    for name, value in headers.items():
        if not name or not is_header(name) or " " in name or ":" in name or not is_header(value):
            raise BadAddress(f"the header {name!r} cannot be sent; expected one line of ASCII characters")
    return dict(headers)


def is_header(text: str) -> bool:
    """Tell whether a text can be the value of a header as it is."""
    return text.isascii() and text.isprintable() and text == text.strip()


def _first_words(said: bytes) -> str:
    """Return a server's reason for its refusal, unless it is a page."""
    text = said.decode(errors="replace").strip()
    try:
        content = msgspec.json.decode(said, type=dict[str, object])
        found = content.get("error") or content.get("detail") or content.get("message") or text
        text = str(found.get("message", found)) if isinstance(found, dict) else str(found)  # type: ignore[reportUnknownMemberType] -- a stranger's JSON
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        if text.startswith("<"):
            return ""
    return one_line(text, SHOWN_CHARACTERS)
