"""Secrets hidden in texts that are shown or written down.

There are four ways to know a secret: its value was given to us (`SecretHider`), its name says so (`is_secret_name`),
it is the part of an address that may be one (`bare_address`), or of the command that adds a server
(`hide_command_secrets`). `protocol.secrecy` knows the fields of messages.
"""

import re
from collections.abc import Iterable

HIDDEN = "[hidden]"
"""Stands where a secret was."""

SHORTEST_SECRET = 4
"""A shorter value is a word of any text: it protects nothing, and hiding it would only garble the text."""

_NAMES_OF_SECRETS = re.compile(r"KEYS?$|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)


class SecretHider:
    """Hides known secrets in texts that others wrote, such as errors of a server that repeats its password."""

    def __init__(self, secrets: Iterable[str], *, shortest: int = SHORTEST_SECRET) -> None:
        self._shortest = shortest
        self._secrets: list[str] = []
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Hide these, too."""
        known = {*self._secrets, *(secret for secret in secrets if len(secret) >= self._shortest)}
        # The longest first: one may be part of another.
        self._secrets = sorted(known, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """Return a text with every secret hidden."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


def is_secret_name(name: str) -> bool:
    """Tell whether the name of a variable says that its value is secret."""
    return _NAMES_OF_SECRETS.search(name) is not None


def bare_address(url: str) -> str:
    """Return an address without the parts that may be secret: name, password, query and fragment."""
    from urllib.parse import urlsplit, urlunsplit  # which an agent that starts does not need

    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "an address that cannot be read"


_ADDING = re.compile(
    r"(?P<whole>\A\s*/mcp\s+add\b)(?P<rest>.*)\Z|(?P<inner>>\s*/mcp\s+add\b)(?P<inside>.*?)(?=</\w|\Z)", re.DOTALL
)
"""`/mcp add` as a whole prompt, or in an element that an editor has put it into."""

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=.*", re.DOTALL)
_RANDOM_PART = re.compile(r"(?=[^/]*\d)[A-Za-z0-9+_=.~-]{20,}")
"""A part of a path that a person would not write."""


def hide_command_secrets(text: str) -> str:
    """Return a prompt as it may be kept: of `/mcp add` the name, the names of variables, and the program or address.

    Its values, and the arguments of the program, may be secret: nobody but the person knows which.
    """
    return _ADDING.sub(_hide_adding, text) if "/mcp" in text else text


def _hide_adding(found: re.Match[str]) -> str:
    head, rest = (found["whole"], found["rest"]) if found["whole"] else (found["inner"], found["inside"])
    return " ".join([head, *_shown_words(rest)])


def _shown_words(rest: str) -> list[str]:
    import shlex  # which an agent that starts does not need

    try:
        words = shlex.split(rest)
    except ValueError:
        return [HIDDEN]
    shown: list[str] = []
    for position, word in enumerate(words):
        variable = _VARIABLE.fullmatch(word)
        if word.lower().startswith(("http://", "https://")):
            scheme, _, rest = bare_address(word).partition("://")
            host, slash, path = rest.partition("/")
            shown.append(f"{scheme}://{host}{slash}{_RANDOM_PART.sub(HIDDEN, path)}")
        elif variable is not None:
            shown.append(f"{variable[1]}={HIDDEN}")
        elif position == 0 or word in ("--sse", "--no-roots"):
            shown.append(word)
        else:
            return [*shown, word, HIDDEN] if words[position + 1 :] else [*shown, word]
    return shown
