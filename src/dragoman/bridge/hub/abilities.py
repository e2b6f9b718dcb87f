"""What a viewer said that it can do."""

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.envelope import fields_of, is_given, string_of

ELICIT = "elicitation/create"


class Abilities(msgspec.Struct, frozen=True):
    """Which of the agent's requests can be passed to a viewer, and how it wants to be told things."""

    offers: frozenset[str] = frozenset()
    """Methods that need a capability, and that it has."""
    marked: bool = False
    """It knows our extensions: it is told the place of each message, and how sessions fare."""
    read_only: bool = False
    notices: bool = False
    """It shows what is said about a conversation, and not in it."""

    def can(self, method: str, params: Raw) -> bool:
        """Tell whether it may be sent a request."""
        if method == ELICIT:
            mode = string_of(fields_of(params).get("mode")) or "form"
            return f"{ELICIT}:{mode}" in self.offers
        if method.startswith("terminal/"):
            return "terminal" in self.offers
        return not method.startswith("fs/") or method in self.offers


def read_abilities(params: Raw) -> Abilities:
    """Read the params of `initialize`."""
    capabilities = _inside(fields_of(params), "clientCapabilities")
    offers: set[str] = set()
    files = _inside(capabilities, "fs")
    if is_given(files.get("readTextFile")):
        offers.add("fs/read_text_file")
    if is_given(files.get("writeTextFile")):
        offers.add("fs/write_text_file")
    if is_given(capabilities.get("terminal")):
        offers.add("terminal")
    if is_given(capabilities.get("elicitation")):
        modes = [mode for mode, given in _inside(capabilities, "elicitation").items() if is_given(given)]
        # An empty object is how the first draft of the capability offered forms.
        offers.update(f"{ELICIT}:{mode}" for mode in modes or ["form"])
    own = _inside(_inside(capabilities, "_meta"), "dragoman")
    notices = is_given(_inside(capabilities, "session").get("notices"))
    return Abilities(frozenset(offers), is_given(own.get("viewer")), is_given(own.get("readOnly")), notices)


def _inside(fields: dict[str, Raw], key: str) -> dict[str, Raw]:
    return fields_of(fields.get(key, UNSET))
