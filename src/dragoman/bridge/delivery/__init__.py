"""Histories: the conversations that viewers read, in files or in a database.

history_store.py      the interface of both stores
stored_histories.py   the histories that are not open, in the order of lists
earlier_run.py        the facts that an earlier run left in a history
history_index.py      the search index of the histories
user_messages.py      the part of an agent's replay that a history does not have
"""

from dragoman.bridge.delivery.earlier_run import EarlierRun
from dragoman.bridge.delivery.file_histories import FileHistoryStore
from dragoman.bridge.delivery.history_index import HistoryIndex
from dragoman.bridge.delivery.history_store import HistoryStore, SessionDescription
from dragoman.bridge.delivery.message_index import IndexedFile, SearchIndexError
from dragoman.bridge.delivery.stored_histories import ListPlace, StoredHistory
from dragoman.bridge.delivery.stream_item import StreamItem
from dragoman.bridge.delivery.user_messages import AgentReplay, UserBlock, read_user_message
from dragoman.store.history import Cursor, History, encode_settings, read_cursor
from dragoman.store.runs import MessageRun, TailBudget

__all__ = [
    "AgentReplay",
    "Cursor",
    "EarlierRun",
    "FileHistoryStore",
    "History",
    "HistoryIndex",
    "HistoryStore",
    "IndexedFile",
    "ListPlace",
    "MessageRun",
    "SearchIndexError",
    "SessionDescription",
    "StoredHistory",
    "StreamItem",
    "TailBudget",
    "UserBlock",
    "encode_settings",
    "read_cursor",
    "read_user_message",
]
