"""The store that a person chose: files in a home, or a database at an address."""

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

from dragoman.descriptors import raise_fd_limit
from dragoman.errors import DragomanError
from dragoman.store.file_store import FileStore
from dragoman.store.retention import find_policy
from dragoman.store.store import Store

STORE_VARIABLE = "DRAGOMAN_STORE"
"""The address of a database, where no option names one."""


LEASE_VARIABLE = "DRAGOMAN_STORE_LEASE"
"""Seconds after which a process that is gone has lost its sessions."""

_LEASES_S = (1.0, 600.0)


class StoreNotInstalled(DragomanError):
    """The package that a store needs is not there."""

    def __init__(self) -> None:
        from dragoman.installation import how_to_add

        super().__init__(f"sessions in PostgreSQL need the package psycopg; {how_to_add('postgresql')}")


def find_address(option: str | None) -> str | None:
    """Return the address of the chosen database, if its settings can be read; None for files.

    Raises StoreNotInstalled, BadStoreAddress, BadRetention.
    """
    address = option or os.environ.get(STORE_VARIABLE) or None
    if address is not None:
        if find_spec("psycopg") is None:
            raise StoreNotInstalled
        from dragoman.store.postgresql.database import check_address

        check_address(address)
        read_lease()
        find_policy()
    return address


def open_store(address: str | None, home: Path, scope: str) -> Store:
    """Open the store at an address, or the one in a home; `scope` tells the agents of one database apart."""
    if address is None:
        raise_fd_limit()
        return FileStore(home)
    from dragoman.store.postgresql import PostgresStore

    return PostgresStore(address, scope, lease_s=read_lease(), retention=find_policy())


def read_lease() -> float:
    """Return the lease of the environment; raises BadStoreAddress."""
    from dragoman.store.postgresql.errors import BadStoreAddress
    from dragoman.store.postgresql.node import LEASE_S

    given = os.environ.get(LEASE_VARIABLE)
    if not given:
        return LEASE_S
    try:
        lease_s = float(given)
    except ValueError:
        lease_s = 0.0
    if not _LEASES_S[0] <= lease_s <= _LEASES_S[1]:
        raise BadStoreAddress(f"{LEASE_VARIABLE} is {given!r}; expected seconds, from 1 to 600")
    return lease_s


def journal_scope(agent: str) -> str:
    """Name the journals that bridges keep of an agent of this name."""
    return f"journal:{agent}"


def log_scope(agent: str | None = None) -> str:
    """Name the session logs of an agent of this name, or of our own."""
    return "log" if agent is None else f"log:{agent}"


def find_homes(root: Path) -> Iterator[tuple[str, Path]]:
    """Give the scope and the directory of each agent that keeps sessions below a home."""
    yield log_scope(), root
    for directory in sorted(root.glob("agents/*/")):
        yield log_scope(unquote(re.sub(r"^%$", "", directory.name), errors="surrogatepass")), directory
