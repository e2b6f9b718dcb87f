"""Append-only session logs: the interface of a store, the store in files, and the choice of one in a database."""

from dragoman.descriptors import raise_fd_limit
from dragoman.store.block import KINDS, Block, Header, Record
from dragoman.store.block_log import Damage
from dragoman.store.file_store import FileStore
from dragoman.store.history import History
from dragoman.store.naming import encode_cwd, is_same_directory
from dragoman.store.opening import (
    STORE_VARIABLE,
    find_address,
    find_homes,
    journal_scope,
    log_scope,
    open_store,
    read_lease,
)
from dragoman.store.store import (
    PAGE_SESSIONS,
    UNPROMPTED_KEPT_S,
    ArchiveFilter,
    Page,
    SharesApprovals,
    Store,
    Summary,
)

__all__ = [
    "KINDS",
    "PAGE_SESSIONS",
    "STORE_VARIABLE",
    "UNPROMPTED_KEPT_S",
    "ArchiveFilter",
    "Block",
    "Damage",
    "FileStore",
    "Header",
    "History",
    "Page",
    "Record",
    "SharesApprovals",
    "Store",
    "Summary",
    "encode_cwd",
    "find_address",
    "find_homes",
    "is_same_directory",
    "journal_scope",
    "log_scope",
    "open_store",
    "raise_fd_limit",
    "read_lease",
]
