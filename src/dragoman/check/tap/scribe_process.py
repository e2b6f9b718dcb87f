"""Starting the scribe: a fork, so that it costs a millisecond and not the start of another interpreter."""

import os
import select
from pathlib import Path

from dragoman.check.tap.new_file import make_new
from dragoman.check.tap.options import TapOptions
from dragoman.check.tap.pump import let_go
from dragoman.check.tap.recording import Recording
from dragoman.check.tap.redaction import Redaction, keep_all
from dragoman.check.tap.voice import say
from dragoman.protocol.recorder import TrajectoryFile

END_S = 30.0
"""For the scribe to judge what is left, for which it takes two thirds of that at most."""

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class ScribeProcess:
    """The scribe as seen from the pumps; `pipe` takes the frames. Raises NotRecorded, and OSError for the findings."""

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
            _be_scribe(frames, recording, findings, options)
        for descriptor in (frames, done, *(() if findings < 0 else (findings,))):
            os.close(descriptor)
        if recording is not None:
            recording.close()

    def wait(self) -> bool:
        """Wait until it is through, and tell whether it ended well; one that takes too long ends by itself."""
        poll = select.poll()
        poll.register(self._done, select.POLLIN)
        if not poll.poll(END_S * 1000):
            return True
        _, status = os.waitpid(self._pid, 0)
        return status == 0


def _be_scribe(frames: int, recording: Recording | None, findings: int, options: TapOptions) -> None:
    code = 1
    try:
        from dragoman.check.tap.findings import Findings
        from dragoman.check.tap.scribe import be_scribe

        # The client sees the end of its pipes only when nobody has them any more.
        let_go(0)
        let_go(1)
        clean_all = keep_all if options.keep_secrets else Redaction().clean_all
        sink = Findings(findings, live=options.live, clean_all=clean_all)
        be_scribe(frames, recording, sink, judges=not options.record_only)
        code = 0
    except Exception as error:  # noqa: BLE001 -- the top of a process, which nobody else would hear of
        say(f"recording and judging have failed with {type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _open_private(path: Path) -> int:
    descriptor = os.open(path, _FLAGS, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
