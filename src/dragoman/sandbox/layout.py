"""What the sandbox does with each place of the file system."""

import os
import pwd
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

PlaceKind = Literal["writable", "read-only", "hidden"]

CREDENTIALS = (
    *(".ssh", ".gnupg", ".password-store", ".local/share/keyrings", "Library/Keychains", ".vault-token"),
    *(".aws", ".azure", ".oci", ".kube", ".config/gcloud", ".config/doctl", ".config/hcloud", ".config/rclone"),
    *(".terraform.d/credentials.tfrc.json", ".docker", ".config/containers/auth.json", ".colima", ".orbstack"),
    *(".netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli", ".config/hub"),
    *(".npmrc", ".pypirc", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".config/op"),
    *(".mozilla", ".config/chromium", ".config/google-chrome", ".config/microsoft-edge", ".Xauthority"),
    *(".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json"),
)
"""Files and directories below the user's home that contain keys, tokens or logins, or sockets that replace them."""

SOCKET_VARIABLES = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"),
    *("DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
    "DRAGOMAN_STORE",
)
"""Variables that name a socket, a display or a database outside."""


class Layout(msgspec.Struct, frozen=True):
    """The places with a rule. A rule applies to everything below, except below the next place with another one."""

    places: tuple[tuple[str, PlaceKind], ...]
    """Real paths that exist. A path comes after those above it."""
    has_network: bool


def make_layout(
    roots: Sequence[str],
    *,
    writable: Sequence[str] = (),
    read_only: Iterable[str] = (),
    hidden: Iterable[str] = (),
    has_network: bool,
) -> Layout:
    """Return the layout for a session's directories. `writable` is what the user has listed. Both are real paths.

    A credential that the user has listed is not hidden. Reads the disk.
    """
    kinds: dict[str, PlaceKind] = dict.fromkeys([*roots, *writable], "writable")
    kinds |= dict.fromkeys(read_only, "read-only")
    pinned: set[str] = set()
    for path in map(os.path.realpath, hidden):
        if os.path.lexists(path) and not any(is_below(path, each) for each in writable):
            kinds[path] = "hidden"
            pinned |= {above for top in (*roots, *writable) for above in _between(top, path)}
    kinds |= dict.fromkeys(pinned - kinds.keys(), "writable")
    places: list[tuple[str, PlaceKind]] = []
    rules: dict[str, PlaceKind] = {}
    for path in sorted(kinds, key=lambda path: (path.count("/"), path)):
        kind, above = kinds[path], _rule_above(path, rules)
        if path in pinned:
            # A mount cannot be renamed. Otherwise a command could rename a directory above a hidden one, and the next
            # command would find that one under a name that is not hidden.
            is_needed = above in (None, "writable") or kind != "writable"
        else:
            # Below a hidden directory only a writable one is needed again. Mounting anything else there would show it.
            is_needed = kind != above and (kind == "writable" or above != "hidden")
        if is_needed and os.path.lexists(path):
            rules[path] = kind
            places.append((path, kind))
    return Layout(tuple(places), has_network)


def is_below(path: str, directory: str) -> bool:
    """Return whether a path is a directory or below it."""
    return path == directory or path.startswith(f"{directory}/")


def _between(top: str, path: str) -> Iterator[str]:
    """Yield the directories below the top and above a path."""
    above = os.path.dirname(path)  # noqa: PTH120 -- a string
    while above != top and is_below(above, top):
        yield above
        above = os.path.dirname(above)  # noqa: PTH120 -- a string


def find_credentials() -> Iterator[str]:
    """Yield the paths of credentials in the user's home, whether they exist or not."""
    homes = {os.path.expanduser("~")}  # noqa: PTH111 -- a string
    with suppress(KeyError):  # a user without an entry, as in some containers
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    for home in homes:
        for name in CREDENTIALS:
            yield f"{home.rstrip('/')}/{name}"


def _rule_above(path: str, rules: dict[str, PlaceKind]) -> PlaceKind | None:
    above = path
    while (above := os.path.dirname(above)) != "/":  # noqa: PTH120 -- a string
        if above in rules:
            return rules[above]
    return None
