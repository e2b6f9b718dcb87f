"""Delivery: journals, the viewers that read them, and back-pressure between the two."""

from dragoman.bridge.delivery.delivery import Delivery
from dragoman.bridge.delivery.direct_queue import DirectQueue
from dragoman.bridge.delivery.file_journal_store import FileJournalStore
from dragoman.bridge.delivery.journal import (
    Cursor,
    EarlierTurn,
    Journal,
    SessionDescription,
    encode_settings,
    read_cursor,
)
from dragoman.bridge.delivery.journal_store import JournalStore, ReplayedJournal
from dragoman.bridge.delivery.outbox import ViewerStream
from dragoman.bridge.delivery.runs import MessageRun, StreamItem, TailBudget
from dragoman.bridge.delivery.stored_journals import ListPlace, StoredJournal
from dragoman.bridge.delivery.subscription import JournalSource, Subscription
from dragoman.bridge.delivery.viewer import (
    RepeatablePrompt,
    Viewer,
    ViewerAccess,
    ViewerCapabilities,
    ViewerRequest,
    read_capabilities,
)

__all__ = [
    "Cursor",
    "Delivery",
    "DirectQueue",
    "EarlierTurn",
    "FileJournalStore",
    "Journal",
    "JournalSource",
    "JournalStore",
    "ListPlace",
    "MessageRun",
    "RepeatablePrompt",
    "ReplayedJournal",
    "SessionDescription",
    "StoredJournal",
    "StreamItem",
    "Subscription",
    "TailBudget",
    "Viewer",
    "ViewerAccess",
    "ViewerCapabilities",
    "ViewerRequest",
    "ViewerStream",
    "encode_settings",
    "read_capabilities",
    "read_cursor",
]
