"""Delivery: journals, the viewers that read them, and back-pressure between the two."""

from dragoman.bridge.delivery.delivery import Delivery
from dragoman.bridge.delivery.journal import Cursor, Journal, read_cursor
from dragoman.bridge.delivery.journal_store import JournalStore, ReplayedJournal, StoredJournal
from dragoman.bridge.delivery.outbox import ViewerStream
from dragoman.bridge.delivery.runs import MessageRun, StreamItem
from dragoman.bridge.delivery.subscription import JournalSource, Subscription
from dragoman.bridge.delivery.viewer import Viewer, ViewerCapabilities, ViewerRequest, read_capabilities

__all__ = [
    "Cursor",
    "Delivery",
    "Journal",
    "JournalSource",
    "JournalStore",
    "MessageRun",
    "ReplayedJournal",
    "StoredJournal",
    "StreamItem",
    "Subscription",
    "Viewer",
    "ViewerCapabilities",
    "ViewerRequest",
    "ViewerStream",
    "read_capabilities",
    "read_cursor",
]
