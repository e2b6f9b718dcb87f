"""What a steward or a warden waits for."""

import os
import select

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

LINE = 0
"""The descriptor of the line to the host."""


def _wake_up(number: int, frame: object) -> None:
    """Nothing to do: that there is a handler makes the signal write to the wakeup descriptor."""


class Watch:
    """Waits for the line, for the end of a child and for the end of the host."""

    def __init__(self, host: int | None) -> None:
        self.host = host
        self.hears = True
        self._wake, wake = os.pipe()
        for descriptor in (self._wake, wake):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, _wake_up)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._poll = select.poll()
        for descriptor in (LINE, self._wake, host):
            if descriptor is not None:
                self._poll.register(descriptor, select.POLLIN)

    def wait(self, timeout_ms: int | None) -> bool:
        """Wait for any of them, and say whether there is something on the line."""
        ready = {descriptor for descriptor, _ in self._poll.poll(timeout_ms)}
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self.host in ready:
            self.stop_hearing()
        return self.hears and LINE in ready

    def stop_hearing(self) -> None:
        """Nothing more will come from the host."""
        if not self.hears:
            return
        self.hears = False
        self._poll.unregister(LINE)
        if self.host is not None:
            self._poll.unregister(self.host)
