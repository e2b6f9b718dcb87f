"""Runs a command of dragoman in the process of the tests, with pipes, a directory and variables like a shell."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from threading import Thread

from dragoman.cli import main


def run_in_process(arguments, *, input=None, stdin=None, env=None, cwd=None):  # noqa: A002 - as in subprocess.run
    """Return the result that `subprocess.run` with `text=True` returns for this command."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_environment(env))
        stack.enter_context(_process_state())
        stack.enter_context(warnings.catch_warnings())
        if cwd is not None:
            stack.enter_context(contextlib.chdir(cwd))
        with _Streams(input, stdin) as streams:
            code = _run([str(argument) for argument in arguments])
    return subprocess.CompletedProcess(["dragoman", *arguments], code, streams.out, streams.err)


def _run(arguments):
    try:
        return main(arguments)
    except SystemExit as end:
        return _code_of(end.code)


def _code_of(code):
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


@contextlib.contextmanager
def _environment(env):
    before = dict(os.environ)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _process_state():
    """Restore the signal handlers and loggers, which a command changes until its process ends."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    before = {logger: (logger.level, logger.handlers[:], logger.propagate) for logger in _loggers()}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for logger in _loggers():
            logger.level, logger.handlers[:], logger.propagate = before.get(logger, (logging.NOTSET, [], True))
        logging.root.manager._clear_cache()  # noqa: SLF001 - as Logger.setLevel does


def _loggers():
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in known if isinstance(logger, logging.Logger))]


class _Streams:
    """Replaces descriptors 0, 1 and 2 by pipes, for child processes as well, and the streams of `sys` with them."""

    def __init__(self, text, stdin):
        self._text = text
        self._stdin = stdin
        self.out = self.err = ""

    def __enter__(self):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._saved = [os.dup(number) for number in (0, 1, 2)]
        self._before = sys.stdin, sys.stdout, sys.stderr
        self._threads = []
        self._place_stdin()
        self._read(1, "out")
        self._read(2, "err")
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1, errors="backslashreplace")
        return self

    def __exit__(self, *_):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.close()
        sys.stdin.close()
        sys.stdin, sys.stdout, sys.stderr = self._before
        for number, saved in enumerate(self._saved):
            os.dup2(saved, number)
            os.close(saved)
        for thread in self._threads:
            thread.join()

    def _place_stdin(self):
        if self._text is not None:
            readable, writable = os.pipe()
            os.dup2(readable, 0)
            os.close(readable)
            self._start(self._write, writable, self._text.encode())
        elif self._stdin is None or self._stdin == subprocess.DEVNULL:
            with Path(os.devnull).open("rb") as null:
                os.dup2(null.fileno(), 0)
        else:
            os.dup2(self._stdin if isinstance(self._stdin, int) else self._stdin.fileno(), 0)

    def _read(self, number, name):
        readable, writable = os.pipe()
        os.dup2(writable, number)
        os.close(writable)
        self._start(self._keep, readable, name)

    def _start(self, target, *arguments):
        self._threads.append(Thread(target=target, args=arguments, daemon=True))
        self._threads[-1].start()

    @staticmethod
    def _write(writable, data):
        with contextlib.suppress(BrokenPipeError), open(writable, "wb") as pipe:
            pipe.write(data)

    def _keep(self, readable, name):
        with open(readable, "rb") as pipe:
            setattr(self, name, pipe.read().decode().replace("\r\n", "\n"))
