"""The capabilities of a viewer, read from its `initialize`."""

from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.envelope import ELICIT, is_given
from dragoman.bridge.translation import V1, V2, Version
from dragoman.bridge.viewers.edge import unsupported_replacer
from dragoman.protocol import methods
from dragoman.protocol.translate.session_for_v1 import SupportedUpdates
from dragoman.protocol.translate.session_for_v1 import read_capabilities as read_taken
from dragoman.wire.envelope import encode, fields_of, string_of
from dragoman.wire.message import BAD_JSON


class ViewerCapabilities(msgspec.Struct, frozen=True):
    """The requests of the agent that a viewer takes, and the form in which it wants messages."""

    methods: frozenset[str] = frozenset()
    """Methods that need a capability, and that it has."""
    extensions: bool = False
    """It supports our extensions, so it receives the cursor of each message and the state of sessions."""
    is_relay: bool = False
    """It forwards messages to a client without our extensions, so it receives only cursors."""
    read_only: bool = False
    notices: bool = False
    """It shows notices, which are about a conversation and not in it."""
    version: Version = V1
    """The version of ACP that it speaks."""
    takes: SupportedUpdates = SupportedUpdates()
    """The updates that it takes beyond the usual ones."""
    replace_unsupported: Callable[[bytes], bytes] | None = None
    """Replaces other updates in lines of version 1. None if it supports all, or speaks version 2."""

    def can(self, method: str, params: Raw) -> bool:
        """Return whether it supports a request."""
        if method == ELICIT:
            mode = string_of(fields_of(params).get("mode")) or "form"
            return f"{ELICIT}:{mode}" in self.methods
        if method.startswith("terminal/"):
            return "terminal" in self.methods
        return not method.startswith("fs/") or method in self.methods


def read_capabilities(params: Raw, version: Version = V1) -> ViewerCapabilities:
    """Read the params of `initialize`, of either version."""
    capabilities = _inside(fields_of(params), "clientCapabilities" if version == V1 else "capabilities")
    able: set[str] = set()
    files = _inside(capabilities, "fs")
    if is_given(files.get("readTextFile")):
        able.add(methods.FS_READ_TEXT_FILE.name)
    if is_given(files.get("writeTextFile")):
        able.add(methods.FS_WRITE_TEXT_FILE.name)
    if is_given(capabilities.get("terminal")):
        able.add("terminal")
    if is_given(capabilities.get("elicitation")):
        modes = [mode for mode, given in _inside(capabilities, "elicitation").items() if is_given(given)]
        # An empty object is how the first draft of the capability offered forms.
        able.update(f"{ELICIT}:{mode}" for mode in modes or ["form"])
    own = _inside(_inside(capabilities, "_meta"), "dragoman")
    extensions, read_only = is_given(own.get("viewer")), is_given(own.get("readOnly"))
    is_relay = is_given(own.get("relay")) and not extensions
    if version == V2:
        # Every client of it takes notices, compactions and subagents, and none has files or terminals for the agent.
        able = {method for method in able if method.startswith(ELICIT)}
        takes = SupportedUpdates(notices=True, compaction=True, subagents=True)
        return ViewerCapabilities(
            frozenset(able), extensions, is_relay, read_only, notices=True, version=V2, takes=takes
        )
    notices = is_given(_inside(capabilities, "session").get("notices"))
    takes = _read_taken(capabilities)
    replace = unsupported_replacer(takes)
    return ViewerCapabilities(
        frozenset(able), extensions, is_relay, read_only, notices, takes=takes, replace_unsupported=replace
    )


def _read_taken(capabilities: dict[str, Raw]) -> SupportedUpdates:
    try:
        return read_taken(msgspec.json.decode(encode(capabilities)))
    except BAD_JSON:
        return SupportedUpdates()  # JSON allows numbers that are out of range here


def _inside(fields: dict[str, Raw], key: str) -> dict[str, Raw]:
    return fields_of(fields.get(key, UNSET))
