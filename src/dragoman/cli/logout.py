"""`dragoman logout`: forget the key of a provider."""

import argparse
import os

from dragoman.agent.keys import KeyStore
from dragoman.agent.models.provider_names import PROVIDERS
from dragoman.agent.profile import ProfileError
from dragoman.cli.home import home
from dragoman.cli.login import NoProvider, choose_provider, fail
from dragoman.errors import DragomanError


def main(options: argparse.Namespace) -> int:
    """Forget the key; 1 when that cannot be done, 2 when it is not clear whose key."""
    try:
        name = choose_provider(options.provider, options.model, options.agent)
        was_there = KeyStore(home()).remove(name)
    except (NoProvider, ProfileError) as problem:
        return fail("logout", problem, 2)
    except DragomanError as problem:
        return fail("logout", problem, 1)
    title = PROVIDERS[name].title
    print(f"The key for {title} is forgotten." if was_there else f"There was no key for {title}.")
    for variable in PROVIDERS[name].variables:
        if os.environ.get(variable):
            print(f"{variable} is still set here, and counts.")
    return 0
