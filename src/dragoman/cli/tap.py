"""`dragoman tap`: a transparent proxy between an editor and an agent."""

import argparse

from dragoman.check.tap import Tap, TapOptions, exit_code
from dragoman.cli.agent_choice import choose_command
from dragoman.cli.exit_codes import USAGE
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error
from dragoman.errors import CommandNotFoundError, DragomanError
from dragoman.event_loop import run

CANNOT_RUN = 126
NOT_FOUND = 127


def main(options: argparse.Namespace) -> int:
    """Pass everything between our stdio and the agent. Return the agent's exit code, as a shell would."""
    if options.proxy and options.command:
        raise UsageError("--proxy takes no agent command, because a conductor starts the agent; leave one of them out")
    if not options.command and not options.proxy:
        raise UsageError(
            "no agent given; run: dragoman tap [OPTIONS] -- AGENT COMMAND, or add --proxy in a conductor's chain"
        )
    if options.record_only and options.record is None:
        raise UsageError("--record-only needs a file; add --record FILE")
    tap_options = TapOptions(
        out=options.record,
        findings=options.findings,
        live=options.live,
        keep_secrets=options.keep_secrets,
        record_only=options.record_only,
    )
    command = [] if options.proxy else choose_command(options.command)
    try:
        tap = Tap(command, tap_options)
    except DragomanError as error:
        print_error("tap", error)
        return USAGE
    except OSError as error:
        path = error.filename or options.findings or options.record
        print_error("tap", f"cannot write to {path}: {error.strerror}")
        return USAGE
    return _pass(tap)


def _pass(tap: Tap) -> int:
    try:
        return exit_code(run(tap.run()))
    except DragomanError as error:
        print_error("tap", error)
        return NOT_FOUND if isinstance(error, CommandNotFoundError) else CANNOT_RUN
    finally:
        tap.finish()
