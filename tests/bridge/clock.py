"""A clock that a test sets."""


class Clock:
    """Returns the time `now`, in seconds."""

    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now
