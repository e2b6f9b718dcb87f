"""The sandbox of macOS: a profile for `sandbox-exec`. It was never run on macOS.

It has no namespaces: the command sees all processes, though it cannot signal those outside, and shares the services of
the system. Its private directory for temporary files is `$TMPDIR`.
"""

from collections.abc import Sequence

from dragoman.sandbox.layout import SOCKET_VARIABLES, Layout

PROGRAM = "/usr/bin/sandbox-exec"

_START = """\
TMPDIR=$(mktemp -d /private/tmp/dragoman.XXXXXX) || exit 126
export TMPDIR
"$@"
code=$?
rm -rf "$TMPDIR"
exit $code
"""

_RULES = """\
(version 1)
(allow default)
(deny signal)
(allow signal (target same-sandbox))
(deny file-write*)
(allow file-write* (literal "/dev/null") (literal "/dev/tty") (regex #"^/dev/fd/"))
(allow file-write* (subpath (param "TMP")))
"""

_NO_NETWORK = "(deny network*)\n"
_NO_SOCKETS = """\
(deny network-outbound (remote unix-socket))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
"""

_KINDS = {
    "writable": ("(allow file-read* file-write* {})",),
    "read-only": ("(allow file-read* {})", "(deny file-write* {})"),
    "hidden": ("(deny file-read* file-write* {})",),
}


def command_line(layout: Layout, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command in the sandbox."""
    unset = [word for name in SOCKET_VARIABLES for word in ("-u", name)]
    script = 'exec "$0" -D "TMP=$TMPDIR" -p "$@"'
    sandboxed = ["/bin/sh", "-c", script, PROGRAM, make_profile(layout), "/usr/bin/env", *unset, *command]
    return ["/bin/sh", "-c", _START, "sh", *sandboxed]


def make_profile(layout: Layout) -> str:
    """Return the profile. The last rule that applies to a file counts."""
    lines = [rule.format(f"(subpath {_quote(path)})") for path, kind in layout.places for rule in _KINDS[kind]]
    return _RULES + (_NO_SOCKETS if layout.has_network else _NO_NETWORK) + "\n".join(lines)


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
