"""`dragoman check`: judge an agent, a client or a recorded conversation by the rules of the protocol."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.check.results import CheckReport
from dragoman.cli.agent_url import Elsewhere, read_url
from dragoman.cli.check_options import make_parser
from dragoman.cli.check_output import FAILED_CHECK, deliver, deliver_matrix
from dragoman.cli.command import OUR_AGENT, split_command
from dragoman.cli.loop import Stopped, run
from dragoman.cli.output import complain
from dragoman.errors import DragomanError


def main(argv: Sequence[str]) -> int:
    """Judge; 0 when nothing failed, 1 when a rule did, 2 for an error of the checker, or of its use."""
    parser = make_parser()
    own, command = split_command(argv)
    options = parser.parse_args(own)
    if "--" not in argv:
        command = []
    elif not "".join(command[:1]):
        parser.error("there is no command after --; name one, or leave -- out")
    options.command = _from_here(command)
    try:
        return _ACTIONS[options.action](parser, options)
    except DragomanError as error:
        complain("check", error)
        return FAILED_CHECK
    except Stopped as stopped:
        return 128 + stopped.signal_number
    except BrokenPipeError:  # whoever read it has seen enough, and Python would complain at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED_CHECK


def _from_here(command: list[str]) -> list[str]:
    """Return a command whose program is found also when it is started in another directory."""
    return [str(Path(command[0]).absolute()), *command[1:]] if "/" in "".join(command[:1]) else command


def _agent(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    elsewhere = read_url(options, parser, has_command=bool(options.command))
    if elsewhere is None and not options.command:
        options.command = list(OUR_AGENT)
    name = options.name or (shlex.join(options.command) if elsewhere is None else elsewhere.shown)
    return deliver(options, name, _check_agent(options, elsewhere))


def _check_agent(options: argparse.Namespace, elsewhere: Elsewhere | None) -> CheckReport:
    from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent, read_script
    from dragoman.check.driver.options import HELLO

    turns = [ScriptTurn(prompt) for prompt in options.prompt or ()]
    if options.script is not None:
        turns += read_script(Path(options.script))
    return run(
        check_agent(
            AgentOptions(
                command=tuple(options.command),
                url="" if elsewhere is None else elsewhere.url,
                token=None if elsewhere is None else elsewhere.token,
                turns=tuple(turns) or (ScriptTurn(HELLO),),
                prompt=not options.no_prompt,
                auth=options.auth,
                without=frozenset(options.without or ()),
                timeout_s=options.timeout,
                turn_timeout_s=options.turn_timeout,
                start_timeout_s=options.start_timeout,
                on_scene=_show_progress if _has_watcher(options) else None,
            )
        )
    )


def _client(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    if bool(options.command) == (options.listen is not None):
        parser.error("which client? say: dragoman check client -- COMMAND OF THE CLIENT, or --listen")
    from dragoman.cli.check_client import check

    name = options.name or shlex.join(options.command) or "client"
    return deliver(options, name, run(check(options)))


def _trace(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    if options.command:
        parser.error("trace takes a file, and no command")
    from dragoman.check.trace import check_trace

    roles = ("agent", "client") if options.role == "both" else (options.role,)
    return deliver(options, options.name or options.file, check_trace(options.file, roles))


def _matrix(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    if options.command:
        parser.error("matrix takes reports, and no command")
    return deliver_matrix(options)


def _has_watcher(options: argparse.Namespace) -> bool:
    return options.format == "terminal" and options.output is None and sys.stderr.isatty()


def _show_progress(scene: str) -> None:
    print(f"\r\x1b[K{scene[:70]}", end="\r", file=sys.stderr, flush=True)


_ACTIONS: dict[str, Callable[[argparse.ArgumentParser, argparse.Namespace], int]] = {
    "agent": _agent,
    "client": _client,
    "trace": _trace,
    "matrix": _matrix,
}
