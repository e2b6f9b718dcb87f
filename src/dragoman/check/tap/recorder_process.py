"""The start of the recorder process. A fork takes a millisecond, starting another interpreter takes many."""

import errno
import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from dragoman.check.tap.pump import close_stream, report_line
from dragoman.check.tap.recording import Recording, Redaction, keep_all
from dragoman.recording.recorder import RecordingError, TrajectoryFile


class TapOptions(msgspec.Struct, frozen=True):
    """The files for the conversation and the findings."""

    out: str | None = None
    """The file to record to. If it exists, a number is added to the name."""
    findings: str | None = None
    """The file for the findings, one JSON object per line. If it exists, a number is added to the name."""
    live: bool = False
    """Whether findings are shown on stderr as they occur."""
    keep_secrets: bool = False
    record_only: bool = False
    """Whether to record without checking."""


T = TypeVar("T")

MAX_NAMES = 10_000
"""Maximum number of names to try, more recordings than a user looks through."""


def make_new(path: str, make: Callable[[Path], T]) -> T:
    """Create a file with this name, or with -2, -3 and so on before its suffix if it exists.

    An editor starts its agent again and again. `make` must refuse an existing file. Its other errors are raised. A
    directory or a device of that name is refused.
    """
    for candidate in _names(Path(path)):
        try:
            result = make(candidate)
        except (RecordingError, OSError) as error:
            if error.errno != errno.EEXIST or not candidate.is_file():
                raise
        else:
            if candidate != Path(path):
                report_line(f"{path} already exists; writing to {candidate}")
            return result
    raise FileExistsError(errno.EEXIST, f"there are {MAX_NAMES:,} files with this name; use another")


def _names(path: Path) -> Iterator[Path]:
    yield path
    for number in range(2, MAX_NAMES + 1):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


END_S = 30.0
"""Time for the recorder to judge the remaining messages, which takes at most two thirds of it."""

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class RecorderProcess:
    """The recorder as the pumps see it. `pipe` receives frames.

    Raises RecordingError, and OSError for the findings file.
    """

    def __init__(self, agent: str, options: TapOptions) -> None:
        clean_all = keep_all if options.keep_secrets else Redaction().clean_all
        findings = -1 if options.findings is None else make_new(options.findings, _open_private)
        recording = None
        if options.out is not None:
            recording = Recording(make_new(options.out, lambda path: TrajectoryFile(path, agent)), clean_all)
        frames, self.pipe = os.pipe()
        self._done, done = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.pipe)
            _run_recorder(frames, recording, findings, options)
        for descriptor in (frames, done, *(() if findings < 0 else (findings,))):
            os.close(descriptor)
        if recording is not None:
            recording.close()

    def wait(self) -> bool:
        """Wait for its exit and return whether it succeeded. After the timeout it continues in the background."""
        poll = select.poll()
        poll.register(self._done, select.POLLIN)
        if not poll.poll(END_S * 1000):
            return True
        _, status = os.waitpid(self._pid, 0)
        return status == 0


def _run_recorder(frames: int, recording: Recording | None, findings: int, options: TapOptions) -> None:
    code = 1
    try:
        from dragoman.check.tap.recorder import FindingLog, run_recorder

        # The client only sees the end of its pipes when no process holds them open.
        close_stream(0)
        close_stream(1)
        clean_all = keep_all if options.keep_secrets else Redaction().clean_all
        sink = FindingLog(findings, live=options.live, clean_all=clean_all)
        run_recorder(frames, recording, sink, judges=not options.record_only)
        code = 0
    except Exception as error:  # noqa: BLE001 -- the top of a process, so no one else would log it
        report_line(f"recording and judging have failed with {type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _open_private(path: Path) -> int:
    descriptor = os.open(path, _FLAGS, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
