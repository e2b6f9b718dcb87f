"""Adds and removes servers in an agent file. Comments, order and all other bytes remain as they are.

The new text is first read as an agent file. It is written only if exactly the one server differs. The file is replaced
atomically, so no reader sees half of it.
"""

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.assistant.profile.profile import MAX_OWN_BYTES, Profile, parse_profile
from dragoman.assistant.profile.servers import AgentServer
from dragoman.assistant.profile.sources import ProfileError, read_bytes
from dragoman.assistant.profile.tsagent import is_tsagent
from dragoman.assistant.yaml import YamlError, listed, parse_yaml, printable
from dragoman.errors import DragomanError
from dragoman.files.replacement import replace_file

KEY = "mcpServers"
NEW_MODE = 0o600
"""Only for the owner, because it may contain a secret."""

_MARK = "\ufeff"


class ProfileEditError(DragomanError):
    """An agent file cannot be changed as requested, and is unchanged."""

    def __init__(self, file: str, reason: str) -> None:
        self.file = file
        self.reason = reason
        super().__init__(f"{file} was not changed: {reason}")


class InvalidEditError(ProfileEditError):
    """The request is invalid: the name exists or is missing, or the entry is wrong."""


def add_server(path: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Add a server in the style of a hand-written file. Creates the file if necessary.

    Raises ProfileEditError, or ProfileError if the file is already invalid.
    """
    from dragoman.assistant.yaml_edits import MappingEntry, add

    file = _File(path)
    before = file.parse()
    if name in _by_name(before):
        raise InvalidEditError(str(path), f"it already has a server {printable(name)}; remove that one first")
    server = _read_entry(path, name, entry)
    file.write(
        add(file.text, MappingEntry(KEY, name, entry)),
        msgspec.structs.replace(before, servers=(*before.servers, server)),
    )


def remove_server(path: Path, name: str) -> None:
    """Remove a server. Raises ProfileEditError, or ProfileError if the file is already invalid."""
    from dragoman.assistant.yaml_edits import MappingEntry, remove

    file = _File(path)
    before = file.parse()
    if name not in _by_name(before):
        servers = listed(printable(each) for each in _by_name(before)) or "none"
        raise InvalidEditError(str(path), f"it has no server {printable(name)}; its servers are: {servers}")
    kept = tuple(server for server in before.servers if server.name != name)
    file.write(remove(file.text, MappingEntry(KEY, name)), msgspec.structs.replace(before, servers=kept))


class _File:
    """The file as it was read. It is written only if it did not change since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target = path.resolve()
        self._data = self._read()
        try:
            whole = (self._data or b"").decode()
        except UnicodeDecodeError:
            raise ProfileEditError(str(path), "it is not UTF-8 text") from None
        self.text = whole.removeprefix(_MARK)
        self._mark = _MARK if whole.startswith(_MARK) else ""

    def parse(self) -> Profile:
        try:
            if is_tsagent(self.path, parse_yaml(self.text)):
                raise ProfileEditError(str(self.path), "it is a TsAgent file, which dragoman can only read")
        except YamlError as misread:
            raise ProfileError(str(self.path), misread.problems) from None
        return parse_profile(self.text, self.path)

    def write(self, texts: Iterator[str], intended: Profile) -> None:
        text = next((each for each in texts if _parses_to(each, self.path, intended)), None)
        if text is None:
            raise ProfileEditError(
                str(self.path), f"its {KEY} are written in a form that dragoman cannot change; edit the file yourself"
            )
        if self._read() != self._data:
            raise ProfileEditError(str(self.path), "another program changed it at the same time; try again")
        try:
            is_new = self._data is None
            mode = NEW_MODE if is_new else stat.S_IMODE(self._target.stat().st_mode)
            replace_file(self._target, (self._mark + text).encode(), mode=mode, exclusive=is_new)
        except OSError as error:
            raise ProfileEditError(str(self.path), f"it cannot be written: {error.strerror}") from None

    def _read(self) -> bytes | None:
        try:
            return read_bytes(self._target, MAX_OWN_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ProfileEditError(str(self.path), f"it cannot be read: {error.strerror}") from None


def _by_name(profile: Profile) -> dict[str, AgentServer]:
    return {server.name: server for server in profile.servers}


def _read_entry(path: Path, name: str, entry: Mapping[str, Any]) -> AgentServer:
    from dragoman.assistant.yaml_edits import render_flow

    try:
        return parse_profile(render_flow({KEY: {name: entry}}), path).servers[0]
    except ProfileError as error:
        raise InvalidEditError(str(path), "; ".join(problem.text for problem in error.problems)) from None


def _parses_to(text: str, path: Path, intended: Profile) -> bool:
    try:
        profile = parse_profile(text, path)
    except ProfileError:
        return False
    same_servers = _by_name(profile) == _by_name(intended)
    return same_servers and msgspec.structs.replace(profile, servers=intended.servers) == intended
