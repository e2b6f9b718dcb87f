"""Secrets hidden in texts that are shown or written down.

There are three ways to know a secret: its value was given to us (`SecretHider`), its name says so (`is_secret_name`),
or it is the part of an address that may be one (`bare_address`). `protocol.secrecy` knows the fields of messages.
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
        # The longest first: one may be part of another.
        self._secrets = sorted({secret for secret in secrets if len(secret) >= shortest}, key=len, reverse=True)

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
