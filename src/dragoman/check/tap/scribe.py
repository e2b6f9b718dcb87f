"""The scribe: the second process of a tap, which records and judges what the first has passed on.

It has a lower priority than the pumps. What comes is recorded at once and judged when nothing comes: recording takes
microseconds a message, judging tens of them.

It ends when the pipe from the pumps does, for whatever reason they ended.
"""

import os
import select
import signal
import time

from dragoman.check.tap.findings import Findings
from dragoman.check.tap.frame import Frame, FrameReader, Kind
from dragoman.check.tap.judging import Judging
from dragoman.check.tap.recording import Recording, Sender
from dragoman.check.tap.voice import say
from dragoman.wire import LineSplitter, Malformed, Oversized, parse

READ_BYTES = 1024 * 1024
NICENESS = 5

END_S = 20.0
"""For judging what is left when the conversation has ended."""

_SENDERS: dict[int, Sender] = {Kind.CLIENT: "client", Kind.AGENT: "agent"}


class Scribe:
    """Takes frames; `finish` says what came of them."""

    def __init__(self, recording: Recording | None, findings: Findings, *, judges: bool = True) -> None:
        self._recording = recording
        self._findings = findings
        self._judging = Judging(findings) if judges else None
        self._splitters = {kind: LineSplitter() for kind in _SENDERS}
        self._torn: set[int] = set()
        self._passed = dict.fromkeys(_SENDERS, 0)
        self._skipped_bytes = 0
        self._began_ns = time.time_ns()
        self._end = ""

    def run(self, pipe: int) -> None:
        """Take frames until they end, and judge in between."""
        frames = FrameReader()
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while True:
            if self._judging is not None and self._judging.is_behind and not poll.poll(0):
                self._judging.judge_some()
                continue
            data = os.read(pipe, READ_BYTES)
            if not data:
                return
            for frame in frames.feed(data):
                self.take(frame)

    def take(self, frame: Frame) -> None:
        """Take what passed."""
        match frame.kind:
            case Kind.EVENT:
                self._take_event(frame.data.decode(), frame.time_ns)
            case Kind.SKIPPED:
                self._take_skip(int(frame.data), frame.time_ns)
            case _:
                self._take_bytes(frame)

    def finish(self) -> list[str]:
        """Judge what is left and return the summary, line by line."""
        self._finish_lines()
        if self._judging is not None:
            self._judging.finish(END_S)
        if self._recording is not None:
            self._recording.close()
        self._findings.close()
        return self._summary()

    def _take_bytes(self, frame: Frame) -> None:
        data = frame.data
        if frame.kind in self._torn:
            _, newline, data = data.partition(b"\n")
            if not newline:
                return
            self._torn.discard(frame.kind)
        self._take_lines(frame.kind, self._splitters[frame.kind].feed(data), frame.time_ns)

    def _take_lines(self, kind: int, lines: list[bytes | Oversized], time_ns: int) -> None:
        if not lines:
            return
        sender = _SENDERS[kind]
        self._passed[kind] += len(lines)
        if self._recording is not None:
            self._record(self._recording, sender, lines, time_ns)
        if self._judging is not None:
            at_s = (time_ns - self._began_ns) / 1e9
            for line in lines:
                if isinstance(line, bytes):
                    self._judging.add(sender, at_s, line)

    def _take_event(self, words: str, time_ns: int) -> None:
        if words.startswith(("exited", "killed")):
            self._finish_lines(time_ns)
            self._end = words
        if self._recording is not None:
            self._recording.event(words, time_ns)
        if self._judging is not None:
            self._judging.add("agent", (time_ns - self._began_ns) / 1e9, event=words)

    def _take_skip(self, count: int, time_ns: int) -> None:
        self._skipped_bytes += count
        self._torn = set(_SENDERS)
        self._splitters = {kind: LineSplitter() for kind in _SENDERS}
        if self._judging is not None:
            self._judging.stop()
        if self._recording is not None:
            self._recording.event(f"skipped {count} bytes", time_ns)

    def _finish_lines(self, time_ns: int | None = None) -> None:
        """Take what was begun and never ended by a newline."""
        for kind, splitter in self._splitters.items():
            left = splitter.finish()
            whole = [line for line in left if not isinstance(parse(line), Malformed)]
            self._take_lines(kind, whole, time_ns or time.time_ns())
            if self._recording is not None and not whole:
                self._recording.torn(_SENDERS[kind], left, time_ns or time.time_ns())

    def _record(self, recording: Recording, sender: Sender, lines: list[bytes | Oversized], time_ns: int) -> None:
        was_well = recording.failure is None
        recording.lines(sender, lines, time_ns)
        if was_well and recording.failure is not None:
            say(f"{recording.failure}; the conversation goes on, and nothing more is recorded")

    def _summary(self) -> list[str]:
        if not self._end and not any(self._passed.values()):  # there was no agent
            return []
        client, agent = self._passed[Kind.CLIENT], self._passed[Kind.AGENT]
        seconds = (time.time_ns() - self._began_ns) / 1e9
        end = f"; the agent {self._end}" if self._end else ""
        lines = [f"{client + agent:,} messages in {seconds:.1f} s: {client:,} to the agent, {agent:,} from it{end}"]
        recording = self._recording
        if recording is not None and recording.failure is None:
            lines.append(f"recorded to {recording.path}: `dragoman check trace {recording.path}` judges it again")
        if self._skipped_bytes:
            lines.append(f"{self._skipped_bytes:,} bytes passed too fast to be recorded or judged")
        return lines if self._judging is None else [*lines, *self._verdict(self._judging)]

    def _verdict(self, judging: Judging) -> list[str]:
        lines: list[str] = []
        if judging.missed:
            again = "`dragoman check trace` on the recording does" if self._recording else "record with --out"
            lines.append(f"{judging.missed:,} messages were not judged here, because they came too fast; {again}")
        nothing = "no breach was seen in what was judged" if judging.stopped else "no breach was seen"
        return [*lines, *(self._findings.summary() or [nothing])]


def be_scribe(pipe: int, recording: Recording | None, findings: Findings, *, judges: bool) -> None:
    """Be the scribe of the pipe until it ends, deaf to what ends the others, and say the summary."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    os.nice(NICENESS)
    scribe = Scribe(recording, findings, judges=judges)
    scribe.run(pipe)
    for line in scribe.finish():
        say(line)
