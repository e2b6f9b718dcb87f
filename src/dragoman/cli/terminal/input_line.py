"""Prints rows above the input line while the user types. readline hides the line, and redraws it below the rows.

`input` waits inside readline, in C, where Python runs nothing but signal handlers. So a thread checks whether rows are
due and sends SIGURG to its own process. SIGURG is ignored by default. A signal that arrives just before readline waits
has no effect, so the thread repeats it until the rows are printed.

GNU readline can erase its line and redraw it with its cursor, history search or half-finished paste. Python's
`readline` does not offer that, so the C functions are called. If they are missing (libedit, no readline, or a Python
that hides them), nothing is printed while the user types.
"""

import ctypes
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

LOOK_S = 0.1
"""How often to check for rows. Users do not notice such a delay."""

_READS_LINE = 0x80000
_COMPLETES = 0x4000
"""Flags of readline's state: reading a line, and completing a word."""


class PendingRows(Protocol):
    """Rows that arrive while the user types."""

    def may_be_due(self) -> bool:
        """Return whether rows may be due. Called from another thread."""
        ...

    def is_due(self) -> bool:
        """Return whether rows are due."""
        ...

    def write(self) -> None:
        """Print the rows."""
        ...


class InputLine:
    """The input line. Used only in the main thread."""

    def __init__(self) -> None:
        self._readline = _find_readline()

    @contextmanager
    def showing(self, rows: PendingRows) -> Generator[None]:
        """Print rows above the line while it is read."""
        if self._readline is None:
            yield
            return

        def handle(_number: int, _frame: FrameType | None) -> None:
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

    def _write_above(self, rows: PendingRows) -> None:
        self._readline.rl_clear_visible_line()
        self._readline.fflush(None)  # readline writes through C's buffer, but `write` does not
        try:
            rows.write()
        finally:
            self._readline.rl_forced_update_display()


def _look(rows: PendingRows, reader: int, has_ended: threading.Event) -> None:
    while not has_ended.wait(LOOK_S):
        if rows.may_be_due():
            signal.pthread_kill(reader, signal.SIGURG)


def _find_readline() -> Any:
    """Return the library with GNU readline's functions. None for another library, or if it hides them."""
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
    symbols = ("rl_clear_visible_line", "rl_forced_update_display", "fflush")
    return library if all(hasattr(library, name) for name in symbols) else None
