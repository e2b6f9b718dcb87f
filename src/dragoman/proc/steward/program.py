"""The program asked for: from an order to a running child, or to the reason why not."""

import os

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from dragoman.proc.steward.kernel import PR_SET_PDEATHSIG, prctl
else:
    import _signal as signal

    from kernel import PR_SET_PDEATHSIG, prctl


class StartFailure(Exception):
    """What a child could not do before it became the program asked for."""

    def __init__(self, stage: bytes, number: int) -> None:
        self.report = b"%s %d" % (stage, number)


def start(order: bytes, stdio: list[int]) -> int:
    """Start the program of an order and return its pid."""
    failure, report = os.pipe()
    warden = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        raise StartFailure(b"fork", error.errno or 0) from None
    if pid == 0:
        become(order, stdio, warden, report)
    for descriptor in (report, *stdio):
        os.close(descriptor)
    stage, _, number = os.read(failure, 64).partition(b" ")
    os.close(failure)
    if stage:
        os.waitpid(pid, 0)
        raise StartFailure(stage, int(number))
    return pid


def become(order: bytes, stdio: list[int], warden: int, report: int) -> "NoReturn":
    """Turn this fresh fork into the program of an order, or report why not; `report` closes by itself on success."""
    directory, count, *rest = order.split(b"\0")
    arguments, variables = rest[: int(count)], rest[int(count) :]
    try:
        os.setsid()
        restore_signals()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != warden:  # it died before the kernel was told to watch it
            os._exit(1)
        for number, descriptor in enumerate(stdio):
            os.dup2(descriptor, number)
        enter(directory)
        execute(arguments, dict(variable.split(b"=", 1) for variable in variables))
    except StartFailure as failure:
        os.write(report, failure.report)
    finally:
        os._exit(127)


def restore_signals() -> None:
    """Give the program the dispositions and the mask of a fresh login."""
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL, SIGSTOP and those that libc keeps
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def enter(directory: bytes) -> None:
    """Make a directory the working directory."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise StartFailure(b"cwd", error.errno or 0) from None


def execute(arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
    """Become the command, looked up in the PATH of its own environment if it has no slash."""
    failure = StartFailure(b"missing", 0)
    for path in candidates(arguments[0], environment):
        try:
            os.execve(path, arguments, environment)  # noqa: S606 -- no shell: that is the point
        except (FileNotFoundError, NotADirectoryError) as error:
            if os.path.isfile(path):  # noqa: PTH113 -- pathlib costs 8 ms
                raise StartFailure(b"interpreter", error.errno or 0) from None
        except PermissionError as error:
            # A folder of the PATH that may not be searched says nothing about the command.
            if path == arguments[0] or os.path.exists(path):  # noqa: PTH110 -- as above
                failure = StartFailure(b"exec", error.errno or 0)
        except OSError as error:
            raise StartFailure(b"exec", error.errno or 0) from None
    raise failure


def candidates(command: bytes, environment: dict[bytes, bytes]) -> list[bytes]:
    """The paths at which a command may be, the first that works counts."""
    if b"/" in command:
        return [command]
    folders = environment.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    # An empty entry would mean the working directory, which is the last place to take a command from unasked.
    return [folder + b"/" + command for folder in folders if folder]
