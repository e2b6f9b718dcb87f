"""Rows that are written while a person writes a line: readline hides the line, and draws it again below them.

`input` waits inside readline, in C, where Python runs nothing but the handlers of signals. So a thread looks whether
there are rows to write and sends its own process SIGURG, which is ignored where nobody handles it. A signal that comes
a moment before readline waits is handled by no one; the thread sends the next one until the rows are written.

GNU readline can erase its line and draw it again as it is: with the cursor, a search in the history, or a half of a
paste. Python's `readline` does not offer that, so it is called in C. Where it is missing (libedit, a Python that hides
it, no readline at all) nothing is written while a person writes.
"""

import ctypes
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

LOOK_S = 0.1
"""How often to look for rows: no person sees that they are later."""

_READS_LINE = 0x80000
_COMPLETES = 0x4000
"""Flags of readline's state: a line is being read; a word of it is being completed."""


class RowsBeside(Protocol):
    """Rows that come while a person writes."""

    def may_be_due(self) -> bool:
        """Whether there may be rows to write; called in another thread."""
        ...

    def is_due(self) -> bool:
        """Whether there are rows to write."""
        ...

    def write(self) -> None:
        """Write them."""
        ...


class InputLine:
    """The line that is being written; used in the main thread."""

    def __init__(self) -> None:
        self._readline = _find_readline()

    @contextmanager
    def beside(self, rows: RowsBeside) -> Generator[None]:
        """Have rows written above the line while it is read."""
        if self._readline is None:
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            del number, frame
            if self._is_reading() and rows.is_due():
                self._write_above(rows)

        before = signal.signal(signal.SIGURG, handle)
        has_ended = threading.Event()
        looking = threading.Thread(target=_look, args=(rows, threading.get_ident(), has_ended), daemon=True)
        looking.start()
        try:
            yield
        finally:
            has_ended.set()
            looking.join()
            signal.signal(signal.SIGURG, before)

    def _is_reading(self) -> bool:
        state = ctypes.c_ulong.in_dll(self._readline, "rl_readline_state").value
        return state & (_READS_LINE | _COMPLETES) == _READS_LINE

    def _write_above(self, rows: RowsBeside) -> None:
        self._readline.rl_clear_visible_line()
        self._readline.fflush(None)  # readline writes through C's buffer, and `write` does not
        try:
            rows.write()
        finally:
            self._readline.rl_forced_update_display()


def _look(rows: RowsBeside, reader: int, has_ended: threading.Event) -> None:
    while not has_ended.wait(LOOK_S):
        if rows.may_be_due():
            signal.pthread_kill(reader, signal.SIGURG)


def _find_readline() -> Any:
    """Return the library that has the functions of GNU readline; None where it is another, or hides them."""
    try:
        import readline
    except ImportError:
        return None
    if "libedit" in (readline.__doc__ or ""):
        return None
    try:
        library = ctypes.CDLL(getattr(readline, "__file__", None))
        ctypes.c_ulong.in_dll(library, "rl_readline_state")
    except (OSError, ValueError):
        return None
    wanted = ("rl_clear_visible_line", "rl_forced_update_display", "fflush")
    return library if all(hasattr(library, name) for name in wanted) else None
