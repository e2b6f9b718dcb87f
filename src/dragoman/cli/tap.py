"""`dragoman tap`: a transparent proxy to put before an agent in any editor's configuration."""

import argparse

from dragoman.check.tap import Tap, TapOptions, exit_code
from dragoman.cli.agent_choice import choose_command
from dragoman.cli.exit_codes import USAGE
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain
from dragoman.errors import CommandNotFound, DragomanError
from dragoman.event_loop import Stopped, run

CANNOT_RUN = 126
NOT_FOUND = 127


def main(options: argparse.Namespace) -> int:
    """Pass everything between our stdio and the agent; the exit code is the agent's, as a shell would have it."""
    if options.proxy and options.command:
        raise UsageError("a proxy in a conductor's chain has no agent of its own; leave out --proxy or the command")
    if not options.command and not options.proxy:
        raise UsageError(
            "which agent? say: dragoman tap [OPTIONS] -- COMMAND OF THE AGENT, or --proxy in a conductor's chain"
        )
    if options.record_only and options.output is None:
        raise UsageError("--record-only needs a file to record to; say --output FILE too")
    given = TapOptions(
        out=options.output,
        findings=options.findings,
        live=options.live,
        keep_secrets=options.keep_secrets,
        record_only=options.record_only,
    )
    command = [] if options.proxy else choose_command(options.command)
    try:
        tap = Tap(command, given)
    except DragomanError as error:
        complain("tap", error)
        return USAGE
    except OSError as error:
        path = error.filename or options.findings or options.output
        complain("tap", f"cannot write to {path}: {error.strerror}")
        return USAGE
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
