"""The recorder, the second process of a tap. It records and judges the bytes that the first process has forwarded.

It has a lower priority than the pumps. It records each message immediately and judges when the pipe is empty. Recording
takes microseconds per message, judging ten times as long. It exits when the pipe from the pumps ends.

The number of messages waiting for the judge is limited. A judge that misses one message would blame the next. If too
many are waiting, if bytes were skipped, or if the judge itself fails, nothing more is judged, and the rest is counted.
"""

import os
import select
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from dragoman.check.conversation import RecordedConversation, Side
from dragoman.check.judge import Judge
from dragoman.check.judge.judge import MAX_PER_RULE
from dragoman.check.results import Finding, find_evidence
from dragoman.check.rules import RULES
from dragoman.check.tap.feed import Frame, FrameKind, FrameReader
from dragoman.check.tap.pump import report_line
from dragoman.check.tap.recording import Recording
from dragoman.text import one_line
from dragoman.wire import LineSplitter, Malformed, Oversized, parse

MAX_DETAIL_CHARS = 300
"""Maximum length of a finding's detail, which may quote a whole message."""

MAX_LIVE = 3
"""Maximum number of lines per rule on stderr, because a fault in every message would hide all others."""


class FindingLog:
    """Logs findings as they occur. `file` is the descriptor to write them to, or -1."""

    def __init__(self, file: int, *, live: bool, clean_all: Callable[[Sequence[bytes]], list[bytes]]) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, Finding] = {}
        self._live = live
        self._clean_all = clean_all
        self._file = file

    def add(self, conversation: RecordedConversation, findings: Iterable[Finding]) -> None:
        """Show and write the findings of a conversation."""
        for finding in findings:
            self.counts[finding.rule] += 1
            self.first.setdefault(finding.rule, finding)
            count = self.counts[finding.rule]
            if self._live and count <= MAX_LIVE:
                report_line(_line(finding, last=count == MAX_LIVE))
            if self._file >= 0:
                self._keep(conversation, finding)

    def summary(self) -> list[str]:
        """Return the findings, one line per rule, failures first."""
        ordered = sorted(self.first.values(), key=lambda each: (each.verdict != "fail", each.rule))
        return [_summed(each, self.counts[each.rule]) for each in ordered]

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)

    def _keep(self, conversation: RecordedConversation, finding: Finding) -> None:
        line = msgspec.json.encode(self._object(conversation, finding)) + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            os.close(self._file)
            self._file = -1
            report_line(f"cannot write the findings: {error.strerror}; later ones appear only in the summary")

    def _object(self, conversation: RecordedConversation, finding: Finding) -> dict[str, Any]:
        rule = RULES[finding.rule]
        proof = list(find_evidence(conversation, finding))
        cleaned = self._clean_all([each.line.encode() for each in proof])
        evidence = [
            msgspec.structs.replace(each, line=line.decode()) for each, line in zip(proof, cleaned, strict=True)
        ]
        return {
            "id": rule.id,
            "title": rule.title,
            "level": rule.level,
            "verdict": finding.verdict,
            "clause": rule.clause,
            "detail": finding.detail,
            "fix": rule.fix,
            "evidence": evidence,
        }


def _line(finding: Finding, *, last: bool) -> str:
    rule = RULES[finding.rule]
    more = " (more of these appear only in the summary)" if last else ""
    return f"{finding.verdict} {rule.id} {one_line(finding.detail, MAX_DETAIL_CHARS)}; {rule.fix}{more}"


def _summed(finding: Finding, count: int) -> str:
    times = f" ({count} times{' or more' if count >= MAX_PER_RULE else ''})" if count > 1 else ""
    detail = one_line(finding.detail, MAX_DETAIL_CHARS)
    return f"{finding.verdict} {finding.rule}{times}: {RULES[finding.rule].title}: {detail}"


SLICE = 64
"""Number of messages to judge before the next look at the pipe."""

MAX_WAITING_BYTES = 128 * 1024 * 1024
"""Maximum size of messages waiting for the judge: 15 s at 20,000 messages per second."""

ENTRY_BYTES = 200
"""The memory of a waiting message in addition to its bytes."""

MAX_ENTRIES = 2_000
"""Maximum number of messages kept as evidence, because a tap may run for weeks."""


class _Waiting(msgspec.Struct, gc=False):
    sender: Side
    at_s: float
    line: bytes
    event: str


class JudgeQueue:
    """A judge and the messages that wait for it."""

    def __init__(self, findings: FindingLog) -> None:
        self._findings = findings
        self._conversation = RecordedConversation("tap", max_entries=MAX_ENTRIES)
        self._judge = Judge(self._conversation)
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self.missed = 0
        """Number of messages that were not judged."""
        self.stopped = False
        """Whether judging has stopped."""

    @property
    def is_behind(self) -> bool:
        """Whether messages are waiting."""
        return bool(self._waiting)

    def add(self, sender: Side, at_s: float, line: bytes = b"", event: str = "") -> None:
        """Queue a line or an event for judging."""
        if self.stopped:
            self.missed += not event
            return
        self._waiting.append(_Waiting(sender, at_s, line, event))
        self._waiting_bytes += len(line) + ENTRY_BYTES
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self.stop()

    def stop(self) -> None:
        """Stop judging."""
        self.stopped = True
        self.missed += sum(not each.event for each in self._waiting)
        self._waiting.clear()

    def judge_some(self) -> None:
        """Judge a few of the waiting messages."""
        try:
            for _ in range(min(SLICE, len(self._waiting))):
                self._judge_next()
        except Exception as error:  # noqa: BLE001 -- a fault of the judge must not end the recording
            report_line(f"judging has failed with {type(error).__name__}: {error}; please report this")
            self.stop()

    def finish(self, timeout_s: float) -> None:
        """Judge the remaining messages within a timeout, and the end of the conversation."""
        deadline = time.monotonic() + timeout_s
        while self._waiting and time.monotonic() < deadline:
            self.judge_some()
        if self._waiting:
            self.stop()
        if not self.stopped:
            self._findings.add(self._conversation, self._judge.end())

    def _judge_next(self) -> None:
        next_one = self._waiting.popleft()
        self._waiting_bytes -= len(next_one.line) + ENTRY_BYTES
        entry = self._conversation.add(next_one.sender, next_one.line, next_one.at_s, next_one.event)
        if found := self._judge.see(entry):
            self._findings.add(self._conversation, found)


READ_BYTES = 1024 * 1024
NICENESS = 5

END_S = 20.0
"""Time to judge the remaining messages after the end of the conversation."""

_SENDERS: dict[int, Side] = {FrameKind.CLIENT: "client", FrameKind.AGENT: "agent"}


class TapRecorder:
    """Records and judges frames. `finish` returns the summary."""

    def __init__(self, recording: Recording | None, findings: FindingLog, *, judges: bool = True) -> None:
        self._recording = recording
        self._findings = findings
        self._judging = JudgeQueue(findings) if judges else None
        self._splitters = {kind: LineSplitter() for kind in _SENDERS}
        self._torn: set[int] = set()
        self._passed = dict.fromkeys(_SENDERS, 0)
        self._skipped_bytes = 0
        self._began_ns = time.time_ns()
        self._end = ""

    def run(self, pipe: int) -> None:
        """Receive frames until the pipe ends, and judge in between."""
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
                self.process(frame)

    def process(self, frame: Frame) -> None:
        """Process a frame."""
        match frame.kind:
            case FrameKind.EVENT:
                self._process_event(frame.data.decode(), frame.time_ns)
            case FrameKind.SKIPPED:
                self._process_skip(int(frame.data), frame.time_ns)
            case _:
                self._process_bytes(frame)

    def finish(self) -> list[str]:
        """Judge the remaining messages and return the lines of the summary."""
        self._finish_lines()
        if self._judging is not None:
            self._judging.finish(END_S)
        if self._recording is not None:
            self._recording.close()
        self._findings.close()
        return self._summary()

    def _process_bytes(self, frame: Frame) -> None:
        data = frame.data
        if frame.kind in self._torn:
            _, newline, data = data.partition(b"\n")
            if not newline:
                return
            self._torn.discard(frame.kind)
        self._process_lines(frame.kind, self._splitters[frame.kind].feed(data), frame.time_ns)

    def _process_lines(self, kind: int, lines: list[bytes | Oversized], time_ns: int) -> None:
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

    def _process_event(self, event: str, time_ns: int) -> None:
        if event.startswith(("exited", "killed")):
            self._finish_lines(time_ns)
            self._end = event
        if self._recording is not None:
            self._recording.event(event, time_ns)
        if self._judging is not None:
            self._judging.add("agent", (time_ns - self._began_ns) / 1e9, event=event)

    def _process_skip(self, count: int, time_ns: int) -> None:
        self._skipped_bytes += count
        self._torn = set(_SENDERS)
        self._splitters = {kind: LineSplitter() for kind in _SENDERS}
        if self._judging is not None:
            self._judging.stop()
        if self._recording is not None:
            self._recording.event(f"skipped {count} bytes", time_ns)

    def _finish_lines(self, time_ns: int | None = None) -> None:
        """Process incomplete last lines without a newline."""
        for kind, splitter in self._splitters.items():
            left = splitter.finish()
            whole = [line for line in left if not isinstance(parse(line), Malformed)]
            self._process_lines(kind, whole, time_ns or time.time_ns())
            if self._recording is not None and not whole:
                self._recording.torn(_SENDERS[kind], left, time_ns or time.time_ns())

    def _record(self, recording: Recording, sender: Side, lines: list[bytes | Oversized], time_ns: int) -> None:
        was_well = recording.failure is None
        recording.lines(sender, lines, time_ns)
        if was_well and recording.failure is not None:
            report_line(f"{recording.failure}; the conversation continues, but nothing more is recorded")

    def _summary(self) -> list[str]:
        if not self._end and not any(self._passed.values()):  # no agent ran
            return []
        client, agent = self._passed[FrameKind.CLIENT], self._passed[FrameKind.AGENT]
        seconds = (time.time_ns() - self._began_ns) / 1e9
        end = f"; the agent {self._end}" if self._end else ""
        lines = [f"{client + agent:,} messages in {seconds:.1f} s: {client:,} to the agent, {agent:,} from it{end}"]
        recording = self._recording
        if recording is not None and recording.failure is None:
            lines.append(f"recorded to {recording.path}: `dragoman check trace {recording.path}` judges it again")
        if self._skipped_bytes:
            lines.append(f"{self._skipped_bytes:,} bytes came too fast to be recorded or judged")
        return lines if self._judging is None else [*lines, *self._verdict(self._judging)]

    def _verdict(self, judging: JudgeQueue) -> list[str]:
        lines: list[str] = []
        if judging.missed:
            again = "use `dragoman check trace` on the recording" if self._recording else "record with --record"
            lines.append(f"{judging.missed:,} messages came too fast to be judged here; {again}")
        nothing = "no violation in the part that was judged" if judging.stopped else "no violation"
        return [*lines, *(self._findings.summary() or [nothing])]


def run_recorder(pipe: int, recording: Recording | None, findings: FindingLog, *, judges: bool) -> None:
    """Record until the pipe ends and print the summary. Ignore the signals that stop the other processes."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    os.nice(NICENESS)
    recorder = TapRecorder(recording, findings, judges=judges)
    recorder.run(pipe)
    for line in recorder.finish():
        report_line(line)
