"""A program in a pseudo-terminal, with the keys that a user would press."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

DEADLINE_S = 30
_OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A terminal that runs a program. `seen` is all its output."""

    def __init__(self, command, *, columns=80, environment=()):
        self.fd, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", **dict(environment)},
        )
        self.name = os.ttyname(slave)
        os.close(slave)
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._from = 0

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def press_until(self, key, words):
        """Press a key repeatedly until the words appear."""
        deadline = time.monotonic() + DEADLINE_S
        while words not in self.plain[self._from :] and time.monotonic() < deadline:
            self.press(key)
            if select.select([self.fd], [], [], 0.3)[0]:
                self._read()
        assert words in self.plain[self._from :]

    def wait_until_idle(self):
        """Wait until the program waits for input. readline reads settings only between keys."""
        stat_file = Path(f"/proc/{self.process.pid}/stat")
        while stat_file.exists() and stat_file.read_text().rpartition(")")[2].split()[0] != "S":
            os.sched_yield()

    def expect(self, words):
        """Wait for words in the output after the last expected ones."""
        deadline = time.monotonic() + DEADLINE_S
        while words not in self.plain[self._from :]:
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(f"{words!r} did not come, but {self.plain[self._from :]!r}")
        self._from = self.plain.index(words, self._from) + len(words)

    def end(self):
        """Wait until the program exits, and return its exit code."""
        while self._read():
            pass
        return self.process.wait(DEADLINE_S)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)

    @property
    def plain(self):
        return _OURS.sub("", self.seen)

    def _read(self):
        if not select.select([self.fd], [], [], DEADLINE_S)[0]:
            return False
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += self._decoder.decode(piece)
        return bool(piece)
