"""The viewers of one agent: their requests, the messages that wait for them, and back-pressure.

viewer.py           one client and its requests
outbox.py           its streams, which read from its subscriptions
subscription.py     its cursor in the history of one session
direct_queue.py     messages for this viewer only, each after a record of a session
edge.py             the records in the form that it supports
history_reading.py  a part of a history that it requests
delivery.py         all connected viewers, and the syncs of journals
"""

from dragoman.bridge.viewers.capabilities import ViewerCapabilities, read_capabilities
from dragoman.bridge.viewers.delivery import Delivery
from dragoman.bridge.viewers.direct_queue import DirectQueue
from dragoman.bridge.viewers.history_reading import read_history
from dragoman.bridge.viewers.outbox import ViewerStream
from dragoman.bridge.viewers.subscription import Subscription
from dragoman.bridge.viewers.viewer import RepeatablePrompt, Viewer, ViewerAccess, ViewerRequest

__all__ = [
    "Delivery",
    "DirectQueue",
    "RepeatablePrompt",
    "Subscription",
    "Viewer",
    "ViewerAccess",
    "ViewerCapabilities",
    "ViewerRequest",
    "ViewerStream",
    "read_capabilities",
    "read_history",
]
