"""`dragoman login` and `dragoman logout`: store or delete a provider's API key."""

import argparse
import getpass
import os
import sys
from pathlib import Path

from dragoman.assistant.auth import configured_model
from dragoman.assistant.keys import MAX_KEY_LENGTH, InvalidKeyError, KeyStore
from dragoman.assistant.models.providers import PROVIDERS, Provider, address_variable, login_name
from dragoman.assistant.profile import ProfileError
from dragoman.assistant.profile.choice import find_explicit
from dragoman.assistant.start.model_servers import check_address
from dragoman.cli.output import print_error
from dragoman.errors import DragomanError
from dragoman.home import home
from dragoman.text.match import closest

INTERRUPTED = 130
"""The exit code that shells use after Ctrl-C."""


class NoProviderError(DragomanError):
    """No provider is named or configured, or the provider needs no key."""


def main(options: argparse.Namespace) -> int:
    """Store or delete a key. Return 1 on failure, 2 if no provider can be chosen."""
    work = log_out if options.forgets else log_in
    return work(options.provider, model=options.model, agent_file=options.agent)


def log_in(provider: str | None, *, model: str | None = None, agent_file: str | None = None) -> int:
    """Ask for a provider's API key and store it. Return the exit code."""
    try:
        name = choose_provider(provider, model, agent_file)
        store = KeyStore(home())
        store.save(name, _ask(_title(name)))
    except (NoProviderError, ProfileError) as problem:
        return fail("login", problem, 2)
    except DragomanError as problem:
        return fail("login", problem, 1)
    except KeyboardInterrupt:
        print("\nNothing was changed.", file=sys.stderr)
        return INTERRUPTED
    print(f"The key for {_title(name)} is stored in {store.path}, which only you can read.")
    if name in PROVIDERS:
        _print_overrides(PROVIDERS[name])
    return 0


def log_out(provider: str | None, *, model: str | None = None, agent_file: str | None = None) -> int:
    """Delete a provider's API key. Return the exit code."""
    try:
        name = choose_provider(provider, model, agent_file)
        existed = KeyStore(home()).remove(name)
    except (NoProviderError, ProfileError) as problem:
        return fail("logout", problem, 2)
    except DragomanError as problem:
        return fail("logout", problem, 1)
    title = _title(name)
    print(f"The key for {title} was deleted." if existed else f"No key was stored for {title}.")
    for variable in PROVIDERS[name].variables if name in PROVIDERS else ():
        if os.environ.get(variable):
            print(f"{variable} is still set and takes precedence.")
    return 0


def choose_provider(name: str | None, model: str | None, agent_file: str | None) -> str:
    """Return the named provider or server address, or else the provider of the configured model.

    Raises NoProviderError, NoModelServerError for an invalid address, or ProfileError for an invalid `agent_file`.
    """
    if name is not None and "://" in name:
        return check_address(name)
    kind = name
    if kind is None:
        if agent_file is not None:
            find_explicit(Path(agent_file))
        default = os.environ.get("DRAGOMAN_MODEL")
        found = configured_model(str(home()), model=model, agent_file=agent_file, default_model=default)
        kind = found.login_model.partition(":")[0] if found.login_model else None
    if kind is None:
        raise NoProviderError(f"no model is configured; name a provider: {_providers()}")
    if kind not in PROVIDERS:
        near = closest(kind, PROVIDERS)
        step = f"did you mean {near}?" if near else f"expected one of {_providers()}"
        raise NoProviderError(f"there is no provider {kind!r} that needs a key; {step}")
    if not PROVIDERS[kind].needs_key:
        raise NoProviderError(f"{PROVIDERS[kind].title} needs no key here; expected one of {_providers()}")
    return login_name(kind)


def fail(command: str, problem: DragomanError, code: int) -> int:
    """Print the problem and return the exit code."""
    print_error(command, problem)
    return code


def _title(name: str) -> str:
    return PROVIDERS[name].title if name in PROVIDERS else name


def _ask(title: str) -> str:
    """Read the key, hidden from the terminal or from a pipe. Raises InvalidKeyError."""
    if sys.stdin is None:  # stdin was closed
        return ""
    if not sys.stdin.isatty():
        try:
            # a newline, and one character more to detect a key that is too long
            return sys.stdin.read(MAX_KEY_LENGTH + 3).strip()
        except UnicodeDecodeError:
            raise InvalidKeyError("the key is not text; nothing was changed") from None
    try:
        return getpass.getpass(f"Key for {title} (hidden): ").strip()
    except EOFError:
        return ""


def _print_overrides(provider: Provider) -> None:
    for variable in provider.variables:
        if os.environ.get(variable):
            print(f"{variable} is set and takes precedence.")
    if redirect := address_variable(provider):
        print(f"{redirect} is set: the stored key is not sent to that address.")


def _providers() -> str:
    return ", ".join(kind for kind, provider in PROVIDERS.items() if provider.needs_key and login_name(kind) == kind)
