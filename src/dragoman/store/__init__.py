"""Append-only session logs: the interface of a store, and the store in files."""

from dragoman.descriptors import raise_fd_limit
from dragoman.store.block import KINDS, Block, Header, Record
from dragoman.store.file_store import FileStore
from dragoman.store.naming import encode_cwd, is_same_directory
from dragoman.store.sealed_log import Damage
from dragoman.store.store import PAGE_SESSIONS, UNPROMPTED_KEPT_S, Log, Page, Store, Summary

__all__ = [
    "KINDS",
    "PAGE_SESSIONS",
    "UNPROMPTED_KEPT_S",
    "Block",
    "Damage",
    "FileStore",
    "Header",
    "Log",
    "Page",
    "Record",
    "Store",
    "Summary",
    "encode_cwd",
    "is_same_directory",
    "raise_fd_limit",
]
