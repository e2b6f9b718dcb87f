"""The sandbox of one command or agent.

| place | in the sandbox |
|---|---|
| the session's directories, and directories that the user lists | writable |
| active files in the session's directories | read-only. New ones are renamed at the end |
| dragoman's home, credentials | empty |
| everything else | read-only |

An active file that exists is a mount of its own, so it can be neither written nor replaced. A mount needs a file, so
nothing protects a name that does not exist yet. New active files are therefore renamed when everything in the sandbox
has ended, to names that no program reads. A file that replaced another in the same directory was not written in the
sandbox, but by the user, and stays.
"""

import os
import sys
from collections.abc import Sequence
from itertools import count

from dragoman.errors import DragomanError, StartError
from dragoman.home import home_name
from dragoman.proc import Supervisor
from dragoman.sandbox import SandboxMode, bubblewrap, seatbelt
from dragoman.sandbox.active_files import ActiveFiles, FoundFile
from dragoman.sandbox.layout import Layout, find_credentials, is_below, make_layout
from dragoman.sandbox.seccomp import filter_path

MAX_ACTIVE_FILES = 200
"""Each is a mount, and the time for a mount grows with their number: 200 take half a second."""

_IS_MACOS = sys.platform == "darwin"


class SandboxUnavailableError(DragomanError):
    """There is no sandbox here. The message has the reason and the fix."""


class Sandbox:
    """The sandbox of one command or agent, from its start to its end. Methods access the disk.

    `roots` are the session's directories, without links. `writable` are the paths that the user lists.
    """

    def __init__(
        self,
        mode: SandboxMode,
        roots: Sequence[str],
        *,
        writable: Sequence[str] = (),
        active_files: ActiveFiles | None = None,
    ) -> None:
        self.mode = mode
        self._roots = list(roots)
        listed = [os.path.abspath(os.path.expanduser(path)) for path in writable]  # noqa: PTH100, PTH111 -- strings
        self._writable = _outermost(listed, roots)
        self._active_files = active_files or ActiveFiles()
        self._before: dict[str, FoundFile] = {}

    def wrap(self, command: Sequence[str], cwd: str) -> list[str]:
        """Return the command line that runs a command in the sandbox. Raises SandboxUnavailableError."""
        if "/" in (*self._roots, *self._writable):
            raise SandboxUnavailableError("a sandbox in which / is writable protects nothing; use a directory below it")
        for root in self._roots:
            if os.path.realpath(root) != root:  # a command may have put a link in its place
                raise SandboxUnavailableError(f"{root} now leads to another directory; open the session again")
        for path in self._writable:
            _make_directory(path)
        found = self._find()
        if len(found) > MAX_ACTIVE_FILES:
            raise SandboxUnavailableError(
                f"the session's directories contain {len(found)} protected files, and a sandbox can protect "
                f"{MAX_ACTIVE_FILES}; open the session in a smaller directory"
            )
        self._before = {each.path: each for each in found}
        layout = make_layout(
            self._roots,
            writable=[os.path.realpath(path) for path in self._writable],
            read_only=[each.real for each in found if self._holds(each.real)],
            hidden=[home_name(), *filter(None, [self._active_files.home]), *find_credentials()],
            has_network=self.mode == "workspace+network",
        )
        return _command_line(layout, command, cwd)

    def rename_new_files(self) -> list[tuple[str, str]]:
        """Rename new active files after everything in the sandbox has ended. Return pairs of the old and new names."""
        known = {each.identity for each in self._before.values() if not each.is_link}
        renamed: list[tuple[str, str]] = []
        for found in self._find():
            before = self._before.get(found.path)
            if before is not None and (before == found or (not before.is_link and before.parent == found.parent)):
                continue
            if found.identity in known and not found.is_link:
                continue  # moved with its directory, and unchanged
            if (new := _rename(found.path)) is not None:
                renamed.append((found.path, new))
        return renamed

    def _find(self) -> list[FoundFile]:
        return list({each.path: each for root in self._roots for each in self._active_files.find(root)}.values())

    def _holds(self, path: str) -> bool:
        return any(is_below(path, root) for root in self._roots)


async def find_problem(supervisor: Supervisor) -> str | None:
    """Try the sandbox. Return None if it works, or else the reason and the fix."""
    try:
        command = _command_line(make_layout((), has_network=False), ["/bin/sh", "-c", ":"], "/")
        child = await supervisor.start(command, cwd="/")
    except (SandboxUnavailableError, StartError) as error:
        return str(error)
    ended = await child.stop(grace_s=_TRIAL_S)
    if ended.code == 0:
        return None
    return f"{seatbelt.PROGRAM} does not work here" if _IS_MACOS else bubblewrap.explain_failure(child.stderr_tail)


_TRIAL_S = 10.0
"""The sandbox starts in milliseconds, except on a busy machine."""


def _command_line(layout: Layout, command: Sequence[str], cwd: str) -> list[str]:
    if _IS_MACOS:
        return seatbelt.command_line(layout, command)
    program = bubblewrap.find_program()
    if program is None:
        raise SandboxUnavailableError(bubblewrap.NOT_INSTALLED)
    filtered = filter_path()
    if filtered is None:
        raise SandboxUnavailableError(
            f"there is no sandbox for {os.uname().machine}; use a machine with x86_64 or aarch64"
        )
    return bubblewrap.command_line(program, filtered, layout, command, cwd)


def _outermost(paths: Sequence[str], roots: Sequence[str]) -> list[str]:
    """Return the paths that are not below another one or a root.

    The others are writable anyway, so a command could replace them by links, which the next command would follow.
    """
    return [path for path in paths if not any(is_below(path, each) for each in (*roots, *paths) if each != path)]


def _make_directory(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 -- a string
    except FileExistsError:
        pass  # a file can be listed as well
    except OSError as error:
        raise SandboxUnavailableError(
            f"{path}, which the sandbox should make writable, cannot be created: {error.strerror}; list another one"
        ) from None


def _rename(path: str) -> str | None:
    """Rename a file so that its name is not active. Return the new path, or None if it is gone."""
    directory, name = os.path.split(path)
    for number in count():
        new = f"{directory}/blocked-{name}{number or ''}.new"
        if not os.path.lexists(new):
            try:
                os.rename(path, new)  # noqa: PTH104 -- strings
            except OSError:
                return None
            return new
    raise AssertionError("count() does not end")
