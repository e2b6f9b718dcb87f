"""`dragoman check`: check an agent, a client or a recording against the protocol's rules."""

import argparse
import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from dragoman.check.adversary import ClientOptions, check_client, listen
from dragoman.check.baseline import fixed, read_baseline, without_known, write_baseline
from dragoman.check.reports import render, text
from dragoman.check.reports.json import read
from dragoman.check.reports.markdown import matrix
from dragoman.check.reports.named_report import NamedReport
from dragoman.check.results import CheckReport
from dragoman.check.rule import Rule, Version
from dragoman.check.rules import RULES
from dragoman.cli.agent_choice import OWN_COMMAND, AgentAddress, choose_address, choose_command
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error, write_output
from dragoman.errors import DragomanError
from dragoman.event_loop import run
from dragoman.home import home
from dragoman.store import STORE_VARIABLE
from dragoman.text.match import closest


def main(options: argparse.Namespace) -> int:
    """Run a check. Return 0 if nothing failed, 1 if a rule failed, 2 for a usage or checker error."""
    try:
        return _ACTIONS[options.action](options)
    except UsageError:
        raise
    except DragomanError as error:
        print_error("check", error)
        return FAILED_CHECK


def _absolute(command: list[str]) -> list[str]:
    """Return the command with an absolute program path, so that it also starts in another directory."""
    return [str(Path(command[0]).absolute()), *command[1:]] if "/" in "".join(command[:1]) else command


def _agent(options: argparse.Namespace) -> int:
    address = choose_address(options)
    command: list[str] = []
    if address is None:
        command = list(OWN_COMMAND) if options.command is None else _absolute(choose_command(options.command))
    shown = "dragoman agent" if options.command is None else shlex.join(command)
    name = options.report_name or (shown if address is None else address.shown)
    with own_home() if command else nullcontext():
        return deliver(options, name, _check_agent(options, command, address))


@contextmanager
def own_home() -> Generator[None]:
    """Use a temporary home with a copy of the settings. It is deleted afterwards with its sessions."""
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
        for name in SETTINGS_FILES:
            with suppress(OSError):
                shutil.copy2(home() / name, directory)
        before = {name: os.environ.pop(name, None) for name in ("DRAGOMAN_HOME", STORE_VARIABLE)}
        os.environ["DRAGOMAN_HOME"] = directory
        try:
            yield
        finally:
            del os.environ["DRAGOMAN_HOME"]
            os.environ.update({name: value for name, value in before.items() if value is not None})


SETTINGS_FILES = ("preferences.json", "keys.json", "dragoman.yaml", "trusted.json")
"""Files of a home that decide the model and the agent file of dragoman's agent."""


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
                without=frozenset(options.no_capability or ()),
                timeout_s=options.answer_timeout,
                turn_timeout_s=options.turn_timeout,
                start_timeout_s=options.start_timeout,
                protocols=PROTOCOLS[options.protocol],
                on_scene=_show_progress if _shows_progress(options) else None,
            )
        )
    )


PROTOCOLS: dict[str | None, tuple[Version, ...] | None] = {None: None, "1": (1,), "2": (2,), "both": (1, 2)}
"""The versions that `--protocol` names. Without it, the versions that the other side speaks."""


def _client(options: argparse.Namespace) -> int:
    if (options.command is None) == (options.listen is None):
        raise UsageError("no client given; run: dragoman check client -- CLIENT COMMAND, or add --listen")

    command = [] if options.command is None else _absolute(choose_command(options.command))
    name = options.report_name or shlex.join(command) or "client"
    return deliver(options, name, run(check(command, options)))


def _trace(options: argparse.Namespace) -> int:
    from dragoman.check.trace import check_trace

    sides = ("agent", "client") if options.role == "both" else (options.role,)
    return deliver(options, options.report_name or options.file, check_trace(options.file, sides))


def _matrix(options: argparse.Namespace) -> int:
    return deliver_matrix(options)


def _rule(options: argparse.Namespace) -> int:
    ids = [id_.partition("@")[0].upper() for id_ in options.ids]
    unknown = [id_ for id_, found in zip(options.ids, ids, strict=True) if found not in RULES]
    if unknown:
        near = closest(unknown[0], RULES)
        step = f"did you mean {near}?" if near else "run `dragoman check rule` to list them"
        raise UsageError(f"there is no rule {unknown[0]!r}; {step}")
    if ids:
        print("\n\n".join(_explain(RULES[found]) for found in ids))
    else:
        print("\n".join(f"{rule.id:<16} {rule.title}" for rule in RULES.values()))
    return 0


def _explain(rule: Rule) -> str:
    return "\n".join(
        (
            f"{rule.id} {rule.title}",
            f"  level     {rule.level}, for {rule.side}s",
            *(f"  clause    {rule.url_in(version)}" for version in rule.versions),
            f"  needs     {rule.exercised}",
            f"  fix       {rule.fix}",
        )
    )


def _shows_progress(options: argparse.Namespace) -> bool:
    return options.format == "text" and options.output is None and sys.stderr.isatty()


def _show_progress(scene: str) -> None:
    print(f"\r\x1b[K{scene[:70]}", end="\r", file=sys.stderr, flush=True)


_ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "agent": _agent,
    "client": _client,
    "trace": _trace,
    "matrix": _matrix,
    "rule": _rule,
}


class PortUnavailableError(DragomanError):
    """We cannot listen on this port."""


async def check(command: list[str], options: argparse.Namespace) -> CheckReport:
    """Check a client. Raises StartError, ClientNotStartedError or PortUnavailableError."""
    if options.listen is None:
        return await check_client(
            ClientOptions(command=tuple(command), timeout_s=options.exit_timeout, protocols=PROTOCOLS[options.protocol])
        )
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
        try:
            return await _wait(Path(directory), options.listen, PROTOCOLS[options.protocol])
        except OSError as error:
            raise PortUnavailableError(
                f"cannot listen on port {options.listen}: {error.strerror}; name another port"
            ) from None


async def _wait(directory: Path, port: int, protocols: tuple[Version, ...] | None) -> CheckReport:
    """Wait for clients until Ctrl-C, then report on their messages."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
    async with listen(directory, port, protocols) as listening:
        for place in listening.places:
            version = f" of version {place.version}" if protocols is not None else ""
            print(
                f"Point the client at this agent{version}: {shlex.join(place.command)}\n"
                f"or at this address: {place.url}",
                file=sys.stderr,
            )
        text = "Send a few prompts and answer its requests. Press Ctrl-C to finish and print the report."
        print(text, file=sys.stderr, flush=True)
        await ended.wait()
        return listening.report()


FAILED_CHECK = 2


class InvalidColumnError(DragomanError):
    """A matrix column is not of the form NAME=FILE."""


def deliver(options: argparse.Namespace, name: str, report: CheckReport) -> int:
    """Write the report in the chosen format and return the exit code.

    Raises OutputError or BaselineError.
    """
    known = _known(options, report)
    subject = NamedReport(name, report, known)
    write_output(options.output, _render(subject, options))
    for rule in fixed(report, known):
        print(f"dragoman check: {rule} passes now; remove it from {options.baseline}", file=sys.stderr)
    return without_known(report, known).exit_code(options.level)


def deliver_matrix(options: argparse.Namespace) -> int:
    """Write a table that compares the reports. Raises OutputError, ReportError or InvalidColumnError."""
    subjects: list[NamedReport] = []
    for target in options.reports:
        name, equals, path = target.partition("=")
        if not equals or not name or not path:
            raise InvalidColumnError(
                f"{target!r} is not a column; expected NAME=FILE, where FILE is a report written by --format json"
            )
        subjects.append(NamedReport(name, read(path)))
    write_output(options.output, matrix(subjects))
    return 0


def _known(options: argparse.Namespace, report: CheckReport) -> frozenset[str]:
    if options.baseline is None:
        if options.write_baseline:
            raise UsageError("--write-baseline needs a file; add --baseline FILE")
        return frozenset()
    if options.write_baseline:
        count = write_baseline(options.baseline, report)
        print(f"dragoman check: {options.baseline} has {count} known failures now", file=sys.stderr)
    return frozenset(read_baseline(options.baseline))


def _render(subject: NamedReport, options: argparse.Namespace) -> str:
    if options.format != "text":
        return render(subject, options.format)
    is_terminal = options.output is None and sys.stdout.isatty()
    return text.render(
        subject,
        width=shutil.get_terminal_size().columns if is_terminal else 120,
        colours=is_terminal and not os.environ.get("NO_COLOR"),
        verbose=options.verbose,
    )
