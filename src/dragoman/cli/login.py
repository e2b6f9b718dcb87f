"""`dragoman login` and `dragoman logout`: keep the key of a provider, and forget it."""

import argparse
import getpass
import os
import sys
from pathlib import Path

from dragoman.assistant.auth import configured_model
from dragoman.assistant.keys import MAX_KEY_LENGTH, BadKey, KeyStore
from dragoman.assistant.models.providers import PROVIDERS, Provider, leads_elsewhere, login_name
from dragoman.assistant.profile import ProfileError
from dragoman.assistant.profile.choice import find_explicit
from dragoman.assistant.start.model_servers import check_address
from dragoman.cli.output import complain
from dragoman.errors import DragomanError
from dragoman.home import home
from dragoman.text.match import closest

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended."""


class NoProvider(DragomanError):
    """No provider is named or configured, or it needs no key."""


def main(options: argparse.Namespace) -> int:
    """Keep or forget a key; 1 when that cannot be done, 2 when the provider is not clear."""
    work = log_out if options.forgets else log_in
    return work(options.provider, model=options.model, agent_file=options.agent)


def log_in(given: str | None, *, model: str | None = None, agent_file: str | None = None) -> int:
    """Ask for the key of a provider and keep it; returns the exit code."""
    try:
        name = choose_provider(given, model, agent_file)
        store = KeyStore(home())
        store.keep(name, _ask(_title(name)))
    except (NoProvider, ProfileError) as problem:
        return fail("login", problem, 2)
    except DragomanError as problem:
        return fail("login", problem, 1)
    except KeyboardInterrupt:
        print("\nNothing was changed.", file=sys.stderr)
        return INTERRUPTED
    print(f"The key for {_title(name)} is kept in {store.path}, which only you can read.")
    if name in PROVIDERS:
        _mention_what_counts_before(PROVIDERS[name])
    return 0


def log_out(given: str | None, *, model: str | None = None, agent_file: str | None = None) -> int:
    """Forget the key of a provider; returns the exit code."""
    try:
        name = choose_provider(given, model, agent_file)
        was_there = KeyStore(home()).remove(name)
    except (NoProvider, ProfileError) as problem:
        return fail("logout", problem, 2)
    except DragomanError as problem:
        return fail("logout", problem, 1)
    title = _title(name)
    print(f"The key for {title} is forgotten." if was_there else f"There was no key for {title}.")
    for variable in PROVIDERS[name].variables if name in PROVIDERS else ():
        if os.environ.get(variable):
            print(f"{variable} is still set here, and counts.")
    return 0


def choose_provider(given: str | None, model: str | None, agent_file: str | None) -> str:
    """Return the provider, or the address of a server: the one that was named, else that of the configured model.

    Raises NoProvider, ServerUnusable for an address that is none, and ProfileError for an agent file that was named.
    """
    if given is not None and "://" in given:
        return check_address(given)
    kind = given
    if kind is None:
        if agent_file is not None:
            find_explicit(Path(agent_file))
        default = os.environ.get("DRAGOMAN_MODEL")
        found = configured_model(str(home()), model=model, agent_file=agent_file, default_model=default)
        kind = found.asks_login.partition(":")[0] if found.asks_login else None
    if kind is None:
        raise NoProvider(f"no configured model tells whose key it is; name one of {_providers()}")
    if kind not in PROVIDERS:
        near = closest(kind, PROVIDERS)
        step = f"did you mean {near}?" if near else f"expected one of {_providers()}"
        raise NoProvider(f"there is no provider {kind!r} that takes a key; {step}")
    if not PROVIDERS[kind].needs_key:
        raise NoProvider(f"{PROVIDERS[kind].title} needs no key here; expected one of {_providers()}")
    return login_name(kind)


def fail(command: str, problem: DragomanError, code: int) -> int:
    """Print the problem and return the exit code."""
    complain(command, problem)
    return code


def _title(name: str) -> str:
    return PROVIDERS[name].title if name in PROVIDERS else name


def _ask(title: str) -> str:
    """Return the key that a person types unseen, or that is piped in; raises BadKey."""
    if sys.stdin is None:  # it was closed
        return ""
    if not sys.stdin.isatty():
        try:
            return sys.stdin.read(MAX_KEY_LENGTH + 3).strip()  # a line end more than a key may have, and one too many
        except UnicodeDecodeError:
            raise BadKey("that is no key: it is no text; nothing was changed") from None
    try:
        return getpass.getpass(f"Key for {title} (it is not shown): ").strip()
    except EOFError:
        return ""


def _mention_what_counts_before(provider: Provider) -> None:
    for variable in provider.variables:
        if os.environ.get(variable):
            print(f"{variable} is set here, and counts before it.")
    if elsewhere := leads_elsewhere(provider):
        print(f"{elsewhere} is set here: a kept key is not sent to where it leads.")


def _providers() -> str:
    return ", ".join(kind for kind, provider in PROVIDERS.items() if provider.needs_key and login_name(kind) == kind)
