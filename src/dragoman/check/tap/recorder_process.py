"""The start of the recorder: a fork takes a millisecond, the start of another interpreter takes many."""

import errno
import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from dragoman.check.tap.pump import let_go, report_line
from dragoman.check.tap.recording import Recording, Redaction, keep_all
from dragoman.protocol.recorder import NotRecorded, TrajectoryFile


class TapOptions(msgspec.Struct, frozen=True):
    """Where the conversation and the findings go."""

    out: str | None = None
    """The file to record to; if it exists, a number is added to the name."""
    findings: str | None = None
    """The file for the findings, one JSON object a line; if it exists, a number is added to the name."""
    live: bool = False
    """Whether findings are shown on stderr as they come."""
    keep_secrets: bool = False
    record_only: bool = False
    """Whether nothing is judged."""


T = TypeVar("T")

MAX_NAMES = 10_000
"""Names that are tried: more recordings than anybody looks through."""


def make_new(path: str, make: Callable[[Path], T]) -> T:
    """Make a file by this name or, where there is one, with -2, -3 and so on before its suffix.

    An editor starts its agent again and again. `make` has to refuse a file that exists; its other errors are raised. A
    directory or a device of that name is refused.
    """
    for candidate in _names(Path(path)):
        try:
            made = make(candidate)
        except (NotRecorded, OSError) as error:
            if error.errno != errno.EEXIST or not candidate.is_file():
                raise
        else:
            if candidate != Path(path):
                report_line(f"{path} is there already; writing to {candidate}")
            return made
    raise FileExistsError(errno.EEXIST, f"there are {MAX_NAMES:,} files of this name; name another")


def _names(path: Path) -> Iterator[Path]:
    yield path
    for number in range(2, MAX_NAMES + 1):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


END_S = 30.0
"""The time for the recorder to judge the rest, which takes it two thirds of that at most."""

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class RecorderProcess:
    """The recorder as the pumps see it; `pipe` takes frames. Raises NotRecorded, and OSError for the findings."""

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
        """Wait for its end, and tell whether it ended well; if it takes too long, it goes on and ends by itself."""
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

        # The client sees the end of its pipes only when nobody has them any more.
        let_go(0)
        let_go(1)
        clean_all = keep_all if options.keep_secrets else Redaction().clean_all
        sink = FindingLog(findings, live=options.live, clean_all=clean_all)
        run_recorder(frames, recording, sink, judges=not options.record_only)
        code = 0
    except Exception as error:  # noqa: BLE001 -- the top of a process, which nobody else would hear of
        report_line(f"recording and judging have failed with {type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _open_private(path: Path) -> int:
    descriptor = os.open(path, _FLAGS, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
