"""`dragoman tap`: a transparent proxy to put before an agent in any editor's configuration."""

import argparse

from dragoman.check.tap import Tap, TapOptions, exit_code
from dragoman.cli.agent_choice import choose_command
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain
from dragoman.errors import CommandNotFound, DragomanError
from dragoman.event_loop import Stopped, run

USAGE_ERROR = 2
CANNOT_RUN = 126
NOT_FOUND = 127


def main(options: argparse.Namespace) -> int:
    """Pass everything between our stdio and the agent; the exit code is the agent's, as a shell would have it."""
    if not options.command:
        raise UsageError("which agent? say: dragoman tap [OPTIONS] -- COMMAND OF THE AGENT")
    if options.record_only and options.output is None:
        raise UsageError("--record-only needs a file to record to; say --output FILE too")
    given = TapOptions(
        out=options.output,
        findings=options.findings,
        live=options.live,
        keep_secrets=options.keep_secrets,
        record_only=options.record_only,
    )
    command = choose_command(options.command)
    try:
        tap = Tap(command, given)
    except DragomanError as error:
        complain("tap", error)
        return USAGE_ERROR
    except OSError as error:
        path = error.filename or options.findings or options.output
        complain("tap", f"cannot write to {path}: {error.strerror}")
        return USAGE_ERROR
    return _pass(tap)


def _pass(tap: Tap) -> int:
    try:
        return exit_code(run(tap.run()))
    except Stopped as stopped:
        return 128 + stopped.signal_number
    except DragomanError as error:
        complain("tap", error)
        return NOT_FOUND if isinstance(error, CommandNotFound) else CANNOT_RUN
    finally:
        tap.finish()
