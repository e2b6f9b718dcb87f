"""The URL of an agent, and the errors for an agent that cannot be reached."""

import re
import socket
import ssl
from collections.abc import Mapping
from typing import Self
from urllib.parse import SplitResult, urlsplit

import msgspec

from dragoman.errors import ConnectionClosedError, DragomanError
from dragoman.text import one_line
from dragoman.text.secret import SecretHider, secrets_in

SHOWN_CHARACTERS = 200
"""Maximum length of a server's reason for a refusal: enough for a sentence, too short for a web page."""

_SECURE = {"http": False, "ws": False, "https": True, "wss": True}
_EXPECTED = "expected something like https://host/acp or ws://127.0.0.1:8421/acp"


class InvalidAddressError(DragomanError):
    """The URL of an agent, or a header for it, is invalid."""


class AddressError(ConnectionClosedError):
    """No agent can be reached at this URL. `status` is the HTTP status, if the server answered."""

    def __init__(self, url: str, problem: str, *, status: int | None = None) -> None:
        self.url = url
        self.problem = problem
        self.status = status
        super().__init__(f"{url} {problem}")


class Address(msgspec.Struct, frozen=True):
    """The URL of an agent and the credentials for it. Only `shown` may be shown."""

    url: str
    """The URL with the scheme http or https."""
    headers: Mapping[str, str]
    is_websocket_only: bool
    is_secure: bool
    host: str
    port: int
    shown: str
    """The URL without user name, password and query, which may be secret."""

    @classmethod
    def parse(cls, url: str, *, token: str | None = None, headers: Mapping[str, str] | None = None) -> Self:
        """Parse the URL of an agent. Raises InvalidAddressError."""
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
        """The URL with the scheme ws or wss."""
        return "ws" + self.url.removeprefix("http")

    def fail(self, problem: str, *, status: int | None = None) -> AddressError:
        """Return an error with this problem. Secrets are redacted, even if the server repeats them."""
        return AddressError(self.shown, self.without_secrets(problem), status=status)

    def without_secrets(self, text: str) -> str:
        """Return a text with the secrets of our headers redacted."""
        secrets = (secret for name, value in self.headers.items() for secret in secrets_in(name, value))
        return SecretHider(secrets).clean(text)

    def refuse(self, status: int, body: bytes = b"") -> AddressError:
        """Return the error for an unsuccessful response."""
        return self.fail(explain_status(status, body), status=status)


def explain_status(status: int, body: bytes = b"") -> str:
    """Return the meaning of an HTTP status for the user who configured the agent's URL."""
    advice = _ADVICE.get(status)
    if advice is None:
        advice = _REDIRECTED if 300 <= status < 400 else "the server reports an error; see its log for the reason"
        advice = (
            advice if status < 400 or status >= 500 else "it does not accept our messages; check that it speaks ACP"
        )
    reason = _server_reason(body)
    if len(reason.split()) >= MIN_SENTENCE_WORDS:
        # A server's sentence about tokens mentions headers, which the user who passes the token does not see.
        return f"answered HTTP {status}: {advice if status == _UNAUTHORIZED else reason}"
    return f"answered HTTP {status}{f' ({reason})' if reason else ''}: {advice}"


def explain_os_error(error: BaseException) -> str:
    """Return why an address cannot be reached, and the next step."""
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"its certificate is not trusted ({error.verify_message}); if you trust "
                "its authority, put the path of the "
                "authority's certificate in SSL_CERT_FILE, or pass it as tls= in Python"
            )
        case ssl.SSLError():
            return (
                f"TLS failed ({error.reason or type(error).__name__}); check whether the URL "
                "should begin with http:// instead of https://"
            )
        case ConnectionRefusedError():
            return "nothing listens there; check that the server runs on that port"
        case socket.gaierror():
            return f"{error.strerror}; check the host name"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return str(error) or type(error).__name__


_REDIRECTED = (
    "it redirects, which is not followed because the token is only for this "
    "address; use the address that it redirects to"
)

_UNAUTHORIZED = 401

MIN_SENTENCE_WORDS = 5
"""A server's reason of this many words says more than our advice. A shorter one only names the status."""

_ADVICE = {
    200: "instead of an event stream; check that the path is that of an ACP endpoint, such as /acp",
    400: "it does not understand the request; check that it speaks ACP and this version of the proposal",
    401: "it needs a valid token; pass it with --token-file FILE or in $DRAGOMAN_TOKEN",
    403: "access was denied; check the token, the host name and the origin",
    404: "it does not know this endpoint or session; check that the path is right, such as /acp, or connect again",
    405: "there is no ACP endpoint at this path; check that the path is right, such as /acp",
    406: "it sends no event stream; try a WebSocket, with a ws:// or wss:// URL",
    410: "the connection is gone; connect again",
    413: "the message is too large for the server; send less or raise its limit",
    415: "it does not accept JSON; check that it speaks ACP",
    426: "it accepts only WebSockets; use a ws:// or wss:// URL",
    429: "too many requests; try again later",
    501: "it does not support this transport; try the other one, WebSocket or HTTP",
    502: "the proxy in front of the agent cannot reach it; check that it runs",
    503: "it is not ready or overloaded; try again later",
    504: "the proxy in front of the agent got no answer in time; check that it runs",
}


def _split(url: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise InvalidAddressError(f"the URL of the agent is malformed; {_EXPECTED}") from None
    if parts.scheme not in _SECURE:
        problem = f"begins with {parts.scheme}:" if parts.scheme else "has no scheme"
        raise InvalidAddressError(f"the URL of the agent {problem}; {_EXPECTED}")
    if not parts.hostname or re.search(r"[\s\x00-\x1f]", url.strip()):
        raise InvalidAddressError(f"the URL of the agent has no host; {_EXPECTED}")
    return parts, port or (443 if _SECURE[parts.scheme] else 80)


def _headers(token: str | None, headers: Mapping[str, str]) -> dict[str, str]:
    if token is not None:
        if not token.strip():
            raise InvalidAddressError("the token is empty; leave it out, or use the token from the agent's operator")
        headers = {**headers, "Authorization": f"Bearer {token.strip()}"}
    for name, value in headers.items():
        if not name or not is_header(name) or " " in name or ":" in name or not is_header(value):
            raise InvalidAddressError(f"the header {name!r} cannot be sent; expected one line of ASCII characters")
    return dict(headers)


def is_header(text: str) -> bool:
    """Return whether a text can be used unchanged as a header value."""
    return text.isascii() and text.isprintable() and text == text.strip()


def _server_reason(body: bytes) -> str:
    """Return a server's reason for its refusal, unless the body is a web page."""
    text = body.decode(errors="replace").strip()
    try:
        content = msgspec.json.decode(body, type=dict[str, object])
        found = content.get("error") or content.get("detail") or content.get("message") or text
        text = str(found.get("message", found)) if isinstance(found, dict) else str(found)  # type: ignore[reportUnknownMemberType] -- a server's JSON
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        if text.startswith("<"):
            return ""
    return one_line(text, SHOWN_CHARACTERS)
