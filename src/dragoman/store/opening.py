"""Opens the store that the user chose: files in a home, or a database at an address."""

import os
import re
import uuid
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
"""The address of a database, if no option gives one."""

LEASE_VARIABLE = "DRAGOMAN_STORE_LEASE"
"""Seconds after which a process that no longer answers loses its sessions."""

NODE_VARIABLE = "DRAGOMAN_STORE_NODE"
"""The id of the bridge's node whose lease an agent obeys. `postgresql/node.py` explains why."""

_LEASES_S = (1.0, 600.0)


class StoreNotInstalledError(DragomanError):
    """The package that a store needs is not installed."""

    def __init__(self) -> None:
        from dragoman.installation import how_to_add

        super().__init__(f"sessions in PostgreSQL need the package psycopg; {how_to_add('postgresql')}")


def find_address(option: str | None) -> str | None:
    """Return the address of the chosen database, or None for files. Check the settings of the database.

    Raises StoreNotInstalledError, InvalidStoreAddressError, InvalidRetentionError.
    """
    address = option or os.environ.get(STORE_VARIABLE) or None
    if address is not None:
        if find_spec("psycopg") is None:
            raise StoreNotInstalledError
        from dragoman.store.postgresql.database import check_address

        check_address(address)
        read_lease()
        find_policy()
    return address


def open_store(address: str | None, home: Path, scope: str) -> Store:
    """Open the store at an address, or else the one in a home.

    `scope` separates the sessions of different agents in one database.
    """
    if address is None:
        raise_fd_limit()
        return FileStore(home)
    from dragoman.store.postgresql import PostgresStore

    return PostgresStore(address, scope, lease_s=read_lease(), retention=find_policy(), bridge=_pop_bridge())


def _pop_bridge() -> uuid.UUID | None:
    """Return the node of the bridge that started this agent. Raises InvalidStoreAddressError.

    The variable is removed, because it does not apply to programs that the agent starts.
    """
    from dragoman.store.postgresql.errors import InvalidStoreAddressError

    given = os.environ.pop(NODE_VARIABLE, None)
    try:
        return None if given is None else uuid.UUID(given)
    except ValueError:
        problem = f"{NODE_VARIABLE} is {given!r}; only a bridge sets it for its agents: unset it"
        raise InvalidStoreAddressError(problem) from None


def read_lease() -> float:
    """Return the lease in seconds, from the environment or the default. Raises InvalidStoreAddressError."""
    from dragoman.store.postgresql.errors import InvalidStoreAddressError
    from dragoman.store.postgresql.node import LEASE_S

    given = os.environ.get(LEASE_VARIABLE)
    if not given:
        return LEASE_S
    try:
        lease_s = float(given)
    except ValueError:
        lease_s = 0.0
    if not _LEASES_S[0] <= lease_s <= _LEASES_S[1]:
        raise InvalidStoreAddressError(f"{LEASE_VARIABLE} is {given!r}; expected seconds, from 1 to 600")
    return lease_s


def journal_scope(agent: str) -> str:
    """Return the scope of the journals that bridges keep for an agent of this name."""
    return f"journal:{agent}"


def log_scope(agent: str | None = None) -> str:
    """Return the scope of the session logs of an agent of this name, or of dragoman's own agent."""
    return "log" if agent is None else f"log:{agent}"


def find_homes(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the scope and the directory of each agent that keeps sessions below a home."""
    yield log_scope(), root
    for directory in sorted(root.glob("agents/*/")):
        yield log_scope(unquote(re.sub(r"^%$", "", directory.name), errors="surrogatepass")), directory
