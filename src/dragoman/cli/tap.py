"""`dragoman tap`: a transparent proxy to put before an agent in any editor's configuration."""

import argparse
from collections.abc import Sequence

from dragoman.check.tap import Tap, TapOptions, exit_code
from dragoman.cli.command import split_command
from dragoman.cli.loop import Stopped, run
from dragoman.cli.output import complain
from dragoman.errors import CommandNotFound, DragomanError

USAGE_ERROR = 2
CANNOT_RUN = 126
NOT_FOUND = 127


def main(argv: Sequence[str]) -> int:
    """Pass everything between our stdio and the agent; the exit code is the agent's, as a shell would have it."""
    parser = _parser()
    own, command = split_command(argv)
    options = parser.parse_args(own)
    if "--" not in argv or not command:
        parser.error("which agent? say: dragoman tap [OPTIONS] -- COMMAND OF THE AGENT")
    if options.record_only and options.out is None:
        parser.error("--record-only needs a file to record to; say --out FILE too")
    try:
        chosen = {name: getattr(options, name) for name in TapOptions.__struct_fields__}
        tap = Tap(command, TapOptions(**chosen))
    except DragomanError as error:
        complain("tap", error)
        return USAGE_ERROR
    except OSError as error:
        path = error.filename or options.findings or options.out
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman tap",
        usage="%(prog)s [OPTIONS] -- CMD ...",
        description="Stand between an editor and an agent: pass every byte untouched, judge the conversation by the "
        "rules of the protocol, and record it if told to. Put it before the agent's command in the editor's "
        "configuration. A summary goes to stderr at the end.",
        epilog="The exit code is the agent's: 128 plus the signal if one ended it, 127 if there is no such command. "
        "`dragoman check trace FILE` judges a recording.",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="record the conversation to a file; never one that is there already"
    )
    parser.add_argument("--live", action="store_true", help="show what breaks a rule on stderr, as it happens")
    parser.add_argument("--findings", metavar="FILE", help="write what breaks a rule to a file, a JSON object a line")
    parser.add_argument(
        "--keep-secrets",
        action="store_true",
        help="record environments, headers and tokens too, which are hidden otherwise",
    )
    parser.add_argument("--record-only", action="store_true", help="do not judge; goes with --out")
    return parser
