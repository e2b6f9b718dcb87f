"""`dragoman check`: judge an agent, a client or a recorded conversation by the rules of the protocol."""

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from dragoman.check.results import CheckReport
from dragoman.cli.agent_choice import OWN_COMMAND, AgentAddress, choose_address, choose_command
from dragoman.cli.check_output import FAILED_CHECK, deliver, deliver_matrix
from dragoman.cli.loop import Stopped, run
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain
from dragoman.errors import DragomanError


def main(options: argparse.Namespace) -> int:
    """Judge; 0 when nothing failed, 1 when a rule did, 2 for an error of the checker, or of its use."""
    try:
        return _ACTIONS[options.action](options)
    except UsageError:
        raise
    except DragomanError as error:
        complain("check", error)
        return FAILED_CHECK
    except Stopped as stopped:
        return 128 + stopped.signal_number


def _from_here(command: list[str]) -> list[str]:
    """Return a command whose program is found also when it is started in another directory."""
    return [str(Path(command[0]).absolute()), *command[1:]] if "/" in "".join(command[:1]) else command


def _agent(options: argparse.Namespace) -> int:
    address = choose_address(options)
    command: list[str] = []
    if address is None:
        command = list(OWN_COMMAND) if options.command is None else _from_here(choose_command(options.command))
    name = options.name or (shlex.join(command) if address is None else address.shown)
    return deliver(options, name, _check_agent(options, command, address))


def _check_agent(options: argparse.Namespace, command: list[str], address: AgentAddress | None) -> CheckReport:
    from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent, read_script
    from dragoman.check.driver.options import HELLO

    turns = [ScriptTurn(prompt) for prompt in options.prompt or ()]
    if options.script is not None:
        turns += read_script(Path(options.script))
    return run(
        check_agent(
            AgentOptions(
                command=tuple(command),
                url="" if address is None else address.url,
                token=None if address is None else address.token,
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


def _client(options: argparse.Namespace) -> int:
    if (options.command is None) == (options.listen is None):
        raise UsageError("which client? say: dragoman check client -- COMMAND OF THE CLIENT, or --listen")
    from dragoman.cli.check_client import check

    command = [] if options.command is None else _from_here(choose_command(options.command))
    name = options.name or shlex.join(command) or "client"
    return deliver(options, name, run(check(command, options)))


def _trace(options: argparse.Namespace) -> int:
    from dragoman.check.trace import check_trace

    roles = ("agent", "client") if options.role == "both" else (options.role,)
    return deliver(options, options.name or options.file, check_trace(options.file, roles))


def _matrix(options: argparse.Namespace) -> int:
    return deliver_matrix(options)


def _has_watcher(options: argparse.Namespace) -> bool:
    return options.format == "text" and options.output is None and sys.stderr.isatty()


def _show_progress(scene: str) -> None:
    print(f"\r\x1b[K{scene[:70]}", end="\r", file=sys.stderr, flush=True)


_ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "agent": _agent,
    "client": _client,
    "trace": _trace,
    "matrix": _matrix,
}
