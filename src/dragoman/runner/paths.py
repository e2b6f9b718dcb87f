"""Paths in messages, put into the words of the other side; the rest of a message stays as it is.

The members `cwd` and `path` are changed wherever they are, and `additionalDirectories` of a request. A member is found
by its quotes, which inside a string would not be bare.
"""

import json
import re
from collections.abc import Sequence

from msgspec import UNSET, Raw

from dragoman.wire.envelope import decode_fields, encode, fields_of, string_of
from dragoman.wire.message import BAD_JSON

_DIRECTORIES = "additionalDirectories"
_NOT_THERE = ("fs", "terminal")
"""Capabilities of a client that are about its own machine: the agent has its files and commands where it runs."""


class PathMap:
    """Puts paths into the words of the other side."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        longest = sorted(pairs, key=lambda pair: -len(pair[0]))
        self._there = [(_member(here), _text(there)) for here, there in longest]
        self._here = [(_member(there), _text(here)) for here, there in sorted(pairs, key=lambda pair: -len(pair[1]))]
        self._pairs = longest

    def to_agent(self, line: bytes) -> bytes:
        """Change a line of the client."""
        if b'"initialize"' in line[:200] or (self._pairs and b'"additionalDirectories"' in line):
            line = self._change_params(line)
        return _replace(line, self._there)

    def to_client(self, line: bytes) -> bytes:
        """Change a line of the agent."""
        return _replace(line, self._here)

    def _change_params(self, line: bytes) -> bytes:
        try:
            fields = decode_fields(line)
        except BAD_JSON:
            return line  # the agent says what is wrong with it
        params = fields_of(fields.get("params", UNSET))
        if _DIRECTORIES in params:
            params[_DIRECTORIES] = self._map_list(params[_DIRECTORIES])
        if string_of(fields.get("method")) == "initialize" and "clientCapabilities" in params:
            offered = fields_of(params["clientCapabilities"])
            kept = {name: value for name, value in offered.items() if name not in _NOT_THERE}
            params["clientCapabilities"] = Raw(encode(kept))
        return encode({**fields, "params": params})

    def _map_list(self, raw: Raw) -> Raw:
        given: object = json.loads(bytes(raw))
        if not isinstance(given, list):
            return raw
        return Raw(json.dumps([self._map(each) for each in given]).encode())  # type: ignore[reportUnknownVariableType] -- a stranger's JSON

    def _map(self, path: object) -> object:
        for here, there in self._pairs:
            if isinstance(path, str) and (path == here or path.startswith(f"{here.rstrip('/')}/")):
                return there.rstrip("/") + path[len(here.rstrip("/")) :] or "/"
        return path


def _replace(line: bytes, pairs: Sequence[tuple[re.Pattern[bytes], bytes]]) -> bytes:
    """Change each path by the first pair that fits: what was changed already is marked until the end."""
    for pattern, name in pairs:
        # A root is the empty name: a path below it has its own slash, which is the second group, and itself needs one.
        line = pattern.sub(lambda found, name=name: found[1] + b"\0" + (name or (b"" if found[2] else b"/")), line)
    return line.replace(b"\0", b"")


def _member(path: str) -> re.Pattern[bytes]:
    """Match a member whose path is in a directory, up to there; some programs escape all letters but ASCII."""
    forms = {_text(path), json.dumps(path.rstrip("/"))[1:-1].encode()}
    either = b"|".join(re.escape(form) for form in forms)
    end = rb'(?:/(?=")|(?=(/)[^"]))' if path == "/" else rb'(?=["/])(?=(/)?)'
    return re.compile(rb'("(?:cwd|path)"\s*:\s*")(?:%b)%b' % (either, end))


def _text(path: str) -> bytes:
    """Return a directory as it stands in JSON, without the slash that a root ends in."""
    return encode(path.rstrip("/"))[1:-1]
