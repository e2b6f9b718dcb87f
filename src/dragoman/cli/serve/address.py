"""The listen address of `dragoman serve`, its host names and its TLS files."""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from dragoman.bridge.front.server import ListenError, Tls
from dragoman.bridge.guard import is_loopback, served_names
from dragoman.bridge.guard.origin import normalize_name

BACKLOG = 1024

_NOWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Documentation addresses. Connecting a UDP socket to them, without sending, reveals our own address."""


class ListenAddress(NamedTuple):
    """A resolved address to listen on."""

    host: str
    family: socket.AddressFamily
    ip: str
    port: int

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can reach the address."""
        return not is_loopback(self.ip)

    @property
    def is_any(self) -> bool:
        """Whether it means all addresses of this machine."""
        return self.ip in {"0.0.0.0", "::"}  # noqa: S104 -- compared with, not bound


def resolve(host: str, port: int) -> ListenAddress:
    """Resolve the address. Raises ListenError or InvalidAddressError."""
    served_names(host)
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ListenError(f"the host {host!r} is unknown; expected a name or an address of this machine") from None
    # A browser that opens `localhost` tries both families. IPv4 is always available.
    family, _, _, _, where = min(found, key=lambda one: one[0] != socket.AF_INET)
    return ListenAddress(host, family, str(where[0]), port)


def check_exposure(address: ListenAddress, tls: Tls | None, *, insecure: bool) -> None:
    """Refuse to listen unprotected beyond this machine. Raises ListenError."""
    if not address.is_exposed or tls is not None or insecure:
        return
    port = address.port or "PORT"
    tunnel = f"ssh -L {port}:127.0.0.1:{port} HOST"
    raise ListenError(
        f"--host {address.host} is reachable from other machines. Without TLS anyone on the network path can read the "
        "conversation, steal the token and run commands as you. Choose one:\n"
        "  --tls-cert FILE --tls-key FILE   serve https\n"
        f"  {tunnel:<31}  leave out --host and connect through an SSH tunnel\n"
        "  --insecure-network               only if the network itself is private: a container, a VPN"
    )


def listen(address: ListenAddress) -> socket.socket:
    """Bind the address. Raises ListenError with the next step."""
    is_dual = address.ip == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            (address.ip, address.port), family=address.family, backlog=BACKLOG, dualstack_ipv6=is_dual
        )
    except OSError as error:
        raise ListenError(_explain(error, address)) from None


def check_tls(tls: Tls) -> None:
    """Check that the files are a certificate and its key. Raises ListenError."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tls.certificate, tls.key, _no_password)
    except ssl.SSLError as error:
        reason = (error.reason or "not in PEM form").replace("_", " ").lower()
        raise ListenError(
            f"{tls.certificate} and {tls.key} cannot be used for TLS: {reason}; expected a certificate and its own "
            "key, in PEM form and without a password"
        ) from None
    except OSError as error:
        raise ListenError(f"--tls-cert or --tls-key cannot be read: {error.strerror or error}") from None


def names_for(address: ListenAddress) -> Iterator[str]:
    """Yield the host names that are allowed by default for this address."""
    yield from served_names(address.host)
    if normalize_name(address.ip) is not None and not address.is_any:
        yield address.ip
    if address.is_any:
        yield from _own_names()


def link_host(address: ListenAddress) -> str:
    """Return the host name for links."""
    name = next(_own_names(), "localhost") if address.is_any else address.host
    return normalize_name(name) or name


def local_url(address: ListenAddress, port: int, *, is_tls: bool) -> str:
    """Return the URL at which programs on this machine reach this listener and no other process.

    Without TLS the URL has an IP address, because a name may resolve to another process.
    """
    if is_tls:
        return f"https://{link_host(address)}:{port}/"
    is_v6 = address.family == socket.AF_INET6
    ip = ("::1" if is_v6 else "127.0.0.1") if address.is_any else address.ip
    return f"http://[{ip}]:{port}/" if is_v6 else f"http://{ip}:{port}/"


def prefix_of(public_url: str | None) -> str:
    """Return the path prefix of the public URL: an empty string, or `/such/a/path`."""
    return "" if public_url is None else unquote(urlsplit(public_url).path).rstrip("/")


def _own_names() -> Iterator[str]:
    """Yield this machine's names in its network, without asking a name server."""
    name = socket.gethostname()
    if normalize_name(name) is not None:
        yield name
    for family, nowhere in _NOWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((nowhere, 9))
                yield probe.getsockname()[0]
        except OSError:
            continue  # no network of that kind


def _no_password() -> str:
    return ""


def _explain(error: OSError, address: ListenAddress) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {address.port} is already in use, perhaps by another `dragoman serve`; stop it or "
                "choose another port with --port N (0 picks a free one)"
            )
        case errno.EACCES | errno.EPERM:
            return f"you are not allowed to listen on port {address.port}; choose one above 1023 with --port N"
        case errno.EADDRNOTAVAIL:
            return (
                f"{address.host} is not an address of this machine; expected one of its addresses, or 0.0.0.0 for all"
            )
        case _:
            return f"cannot listen on {address.host}, port {address.port}: {error.strerror}"
