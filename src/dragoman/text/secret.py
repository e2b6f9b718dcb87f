"""Redacts secrets from text that is shown or stored.

One rule decides what is redacted from foreign text, such as the result or the stderr of an MCP server. A value is
redacted if it comes from a secret place and could not be part of ordinary text.

Secret places (`secrets_in`):
    - a header, variable, option or query parameter whose name contains a secret word (`is_secret_name`)
    - the password of a URL, and the user of a URL if it is random (`https://KEY@host`)
    - a key with the shape of a known provider's keys, wherever it occurs

Ordinary text (`is_ordinary`): fewer than 8 characters, or fewer than 20 if they are words or a number. Redacting
`prod`, `postgres` or `not-needed` protects nothing and garbles every text that contains the word.

Text that we write ourselves needs no such search. `bare_address` shows a URL without its secret parts,
`hide_command_secrets` a command that adds a server, and `protocol.secrecy` the fields of messages.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

HIDDEN = "[hidden]"
"""Replaces a secret."""

MIN_SECRET_CHARS = 8
MIN_WORDS_CHARS = 20
"""The minimum length of a secret that consists of words."""

KEY_SHAPES = (
    r"\b(?:sk|pk|rk)[-_][\w-]{12,}"  # Anthropic, OpenAI, Stripe
    r"|\b(?:gh[pousr]|github_pat|glpat|xox[abeoprs]|hf|npm|pypi)[-_][\w-]{12,}"
    r"|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?"  # a JSON Web Token
)
"""A regular expression for keys in the shapes of known providers, which finds leaked keys."""

KEY_STARTS = (
    *(
        "sk-",
        "sk_",
        "pk-",
        "pk_",
        "rk-",
        "rk_",
        "gh",
        "github_pat",
        "glpat",
        "xox",
        "hf-",
        "hf_",
        "npm-",
        "npm_",
        "pypi",
    ),
    *("AKIA", "AIza", "eyJ"),
)
"""Text without any of these contains no such key. This check is faster than the expression."""

_KEY = re.compile(KEY_SHAPES)

_SECRET_WORDS = frozenset(
    ("APIKEY", "AUTHORIZATION", "COOKIE", "CREDENTIAL", "CREDENTIALS", "PASS", "PAT", "PGPASS", "SECRETS", "TOKENS")
)
_SECRET_ENDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE")
"""Ends of words, as in PGPASSWORD and AUTHTOKEN."""
_SECRET_LAST_WORDS = frozenset(("AUTH", "KEY", "KEYS", "PWD"))
"""Words that name a secret only at the end: KEY_PREFIX and AUTH_MODE are settings."""
_DESCRIBING = frozenset(
    ("COUNT", "DIR", "ENDPOINT", "FILE", "HOST", "ID", "LIMIT", "NAME", "PATH", "SIZE", "SOCK", "TTL", "TYPE", "URL")
)
"""Last words of names that describe a secret without containing it, as in TOKEN_FILE."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORDS = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+|\d+)(?:[ ,.:;/_+-]+(?:[A-Z]?[a-z]+|[A-Z]+|\d+))*")
_PATH = re.compile(r"(?:~|\.{1,2})?/.*", re.DOTALL)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)
_SCHEME = re.compile(r"(?:basic|bearer|token|digest|apikey)\s+(?=\S)", re.IGNORECASE)
_RANDOM_PART = re.compile(r"(?=[^/]*\d)[A-Za-z0-9+_=.~-]{20,}")
"""A path segment that looks random, not like a name that someone typed."""


class SecretHider:
    """Redacts known secrets from foreign text, such as errors of a server that repeats its password."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets: list[str] = []
        """The longest secret first, because one secret may contain another."""
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Redact these secrets as well, unless they are ordinary text."""
        known = {*self.secrets, *(secret for secret in secrets if not is_ordinary(secret))}
        self.secrets = sorted(known, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """Return a text with every secret redacted."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def is_ordinary(value: str) -> bool:
    """Return whether a value may occur in any text, so that redacting it would garble text."""
    is_mixed = any(letter.isalpha() for letter in value) and any(letter.isdigit() for letter in value)
    is_words = not is_mixed and _WORDS.fullmatch(value) is not None
    return len(value) < (MIN_WORDS_CHARS if is_words else MIN_SECRET_CHARS)


def is_secret_name(name: str) -> bool:
    """Return whether the name of a header, variable, option or parameter marks its value as secret."""
    words = [word.upper() for word in _WORD.findall(name)]
    if not words or words[-1] in _DESCRIBING or words == ["PWD"]:
        return False
    return words[-1] in _SECRET_LAST_WORDS or any(
        word in _SECRET_WORDS or word.endswith(_SECRET_ENDS) for word in words
    )


def secrets_in(name: str, value: str) -> Iterator[str]:
    """Yield the secret parts of the value of a header, variable or option named `name`."""
    yield from _KEY.findall(value)
    for url in _URL.findall(value):
        yield from url_secrets(url)
    if is_secret_name(name) and not _is_place(value):
        yield from _credentials(name, value)


def url_secrets(url: str) -> Iterator[str]:
    """Yield the secret parts of a URL: its password, a random user, and secret or random values in its query."""
    from urllib.parse import unquote, unquote_plus, urlsplit  # not needed when an agent starts

    try:
        parts = urlsplit(url)
    except ValueError:
        return
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    yield from (password, unquote(password), *(each for each in (user, unquote(user)) if _is_random(each)))
    for parameter in parts.query.split("&"):
        name, equals, value = parameter.partition("=")
        for each in (value, unquote_plus(value)) if equals else (name,):
            if not equals or _is_random(each):
                yield each
            yield from secrets_in(name, each) if equals else ()


def _credentials(name: str, value: str) -> Iterator[str]:
    """Yield the secret parts of a value with a secret name: `x` in `x`, `Bearer x`, `Basic x` and `session=x`."""
    import base64  # not needed when an agent starts

    scheme = _SCHEME.match(value)
    if "cookie" in name.lower():
        yield from (part.partition("=")[2].strip() for part in value.split(";"))
    elif scheme is None:
        yield value
    else:
        credential = value[scheme.end() :]
        yield credential
        with suppress(ValueError):  # not base64, or not text
            yield base64.b64decode(credential, validate=True).decode().partition(":")[2]


def _is_place(value: str) -> bool:
    """Return whether a value is a URL or a path. Such a value locates a secret but is not one."""
    is_path = _PATH.fullmatch(value) is not None and not any(_is_random(part) for part in value.split("/"))
    return is_path or _URL.fullmatch(value) is not None


def _is_random(value: str) -> bool:
    return _RANDOM_PART.fullmatch(value) is not None and _WORDS.fullmatch(value) is None


def bare_address(url: str) -> str:
    """Return an address without the parts that may be secret: user, password, query and fragment."""
    from urllib.parse import urlsplit, urlunsplit  # not needed when an agent starts

    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "an address that cannot be read"


_ADDING = re.compile(
    r"(?P<whole>\A\s*/mcp\s+add\b)(?P<rest>.*)\Z|(?P<inner>>\s*/mcp\s+add\b)(?P<inside>.*?)(?=</\w|\Z)", re.DOTALL
)
"""`/mcp add` as a whole prompt, or inside an element that an editor wrapped around it."""

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=.*", re.DOTALL)


def hide_command_secrets(text: str) -> str:
    """Return a prompt as it may be stored. `/mcp add` keeps the names and the program or address, and no values.

    The values and the program's arguments may be secret, and only the user knows which ones are.
    """
    return _ADDING.sub(_hide_adding, text) if "/mcp" in text else text


def _hide_adding(found: re.Match[str]) -> str:
    head, rest = (found["whole"], found["rest"]) if found["whole"] else (found["inner"], found["inside"])
    return " ".join([head, *_shown_words(rest)])


def _shown_words(rest: str) -> list[str]:
    import shlex  # not needed when an agent starts

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
