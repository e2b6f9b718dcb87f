"""Translation of paths in messages. The rest of a message stays unchanged.

The members `cwd` and `path` are translated at any depth, and `additionalDirectories` in the params of a request. A
member is found by its unescaped quotes. Quotes inside a string are escaped, so its content cannot match.
"""

import json
import re
from collections.abc import Sequence

from msgspec import UNSET, Raw

from dragoman.wire.envelope import decode_fields, encode, fields_of, string_of
from dragoman.wire.message import BAD_JSON

_DIRECTORIES = "additionalDirectories"
_NOT_THERE = ("fs", "terminal")
"""Client capabilities that would act on the client's machine. The agent must use its own files and commands."""


class PathMap:
    """Translates local paths to remote ones, and back."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        longest = sorted(pairs, key=lambda pair: -len(pair[0]))
        self._there = [(_member(here), _text(there)) for here, there in longest]
        self._here = [(_member(there), _text(here)) for here, there in sorted(pairs, key=lambda pair: -len(pair[1]))]
        self._pairs = longest

    def to_agent(self, line: bytes) -> bytes:
        """Translate a line from the client."""
        if b'"initialize"' in line[:200] or (self._pairs and b'"additionalDirectories"' in line):
            line = self._change_params(line)
        return _replace(line, self._there)

    def to_client(self, line: bytes) -> bytes:
        """Translate a line from the agent."""
        return _replace(line, self._here)

    def _change_params(self, line: bytes) -> bytes:
        try:
            fields = decode_fields(line)
        except BAD_JSON:
            return line  # the agent will report the error
        params = fields_of(fields.get("params", UNSET))
        if _DIRECTORIES in params:
            params[_DIRECTORIES] = self._map_list(params[_DIRECTORIES])
        if string_of(fields.get("method")) == "initialize" and "clientCapabilities" in params:
            offered = fields_of(params["clientCapabilities"])
            kept = {name: value for name, value in offered.items() if name not in _NOT_THERE}
            params["clientCapabilities"] = Raw(encode(kept))
        return encode({**fields, "params": params})

    def _map_list(self, raw: Raw) -> Raw:
        paths: object = json.loads(bytes(raw))
        if not isinstance(paths, list):
            return raw
        return Raw(json.dumps([self._map(each) for each in paths]).encode())  # type: ignore[reportUnknownVariableType] -- a stranger's JSON

    def _map(self, path: object) -> object:
        for here, there in self._pairs:
            if isinstance(path, str) and (path == here or path.startswith(f"{here.rstrip('/')}/")):
                return there.rstrip("/") + path[len(here.rstrip("/")) :] or "/"
        return path


def _replace(line: bytes, pairs: Sequence[tuple[re.Pattern[bytes], bytes]]) -> bytes:
    """Translate each path by the first pair that matches. A NUL marks translated paths until the end."""
    for pattern, name in pairs:
        # The root directory is an empty name. A path below it has a slash, in group 2, but the root itself needs one.
        line = pattern.sub(lambda found, name=name: found[1] + b"\0" + (name or (b"" if found[2] else b"/")), line)
    return line.replace(b"\0", b"")


def _member(path: str) -> re.Pattern[bytes]:
    """Return a pattern for a member whose path is in a directory. Some programs escape all non-ASCII letters."""
    forms = {_text(path), json.dumps(path.rstrip("/"))[1:-1].encode()}
    either = b"|".join(re.escape(form) for form in forms)
    end = rb'(?:/(?=")|(?=(/)[^"]))' if path == "/" else rb'(?=["/])(?=(/)?)'
    return re.compile(rb'("(?:cwd|path)"\s*:\s*")(?:%b)%b' % (either, end))


def _text(path: str) -> bytes:
    """Return a directory as written inside a JSON string, without a final slash."""
    return encode(path.rstrip("/"))[1:-1]
