"""`dragoman check`: judge an agent, a client or a recorded conversation by the rules of the protocol."""

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
from dragoman.check.baseline import mended, read_baseline, without_known, write_baseline
from dragoman.check.reports import render, terminal
from dragoman.check.reports.json import read
from dragoman.check.reports.markdown import matrix
from dragoman.check.reports.named_report import NamedReport
from dragoman.check.results import CheckReport
from dragoman.check.rule import Rule, Version
from dragoman.check.rules import RULES
from dragoman.cli.agent_choice import OWN_COMMAND, AgentAddress, choose_address, choose_command
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain, write_output
from dragoman.errors import DragomanError
from dragoman.event_loop import Stopped, run
from dragoman.home import home
from dragoman.store import STORE_VARIABLE
from dragoman.text.match import closest


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
    with own_home() if command == list(OWN_COMMAND) else nullcontext():
        return deliver(options, name, _check_agent(options, command, address))


@contextmanager
def own_home() -> Generator[None]:
    """Let our own agent have its settings, and keep its sessions in a home that is gone afterwards."""
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
"""Files of a home that decide which model our own agent talks with, and as which agent."""


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
                protocols=PROTOCOLS[options.protocol],
                on_scene=_show_progress if _has_watcher(options) else None,
            )
        )
    )


PROTOCOLS: dict[str | None, tuple[Version, ...] | None] = {None: None, "1": (1,), "2": (2,), "both": (1, 2)}
"""The versions that `--protocol` names; without it, those that the other side speaks."""


def _client(options: argparse.Namespace) -> int:
    if (options.command is None) == (options.listen is None):
        raise UsageError("which client? say: dragoman check client -- COMMAND OF THE CLIENT, or --listen")

    command = [] if options.command is None else _from_here(choose_command(options.command))
    name = options.name or shlex.join(command) or "client"
    return deliver(options, name, run(check(command, options)))


def _trace(options: argparse.Namespace) -> int:
    from dragoman.check.trace import check_trace

    roles = ("agent", "client") if options.role == "both" else (options.role,)
    return deliver(options, options.name or options.file, check_trace(options.file, roles))


def _matrix(options: argparse.Namespace) -> int:
    return deliver_matrix(options)


def _rule(options: argparse.Namespace) -> int:
    ids = [given.partition("@")[0].upper() for given in options.ids]
    unknown = [given for given, found in zip(options.ids, ids, strict=True) if found not in RULES]
    if unknown:
        near = closest(unknown[0], RULES)
        step = f"did you mean {near}?" if near else "docs/check-rules.md lists them"
        raise UsageError(f"there is no rule {unknown[0]!r}; {step}")
    print("\n\n".join(_explain(RULES[found]) for found in ids))
    return 0


def _explain(rule: Rule) -> str:
    return "\n".join(
        (
            f"{rule.id} {rule.title}",
            f"  level     {rule.level}, for {rule.role}s",
            *(f"  clause    {rule.url_in(version)}" for version in rule.versions),
            f"  occasion  {rule.exercised}",
            f"  fix       {rule.fix}",
        )
    )


def _has_watcher(options: argparse.Namespace) -> bool:
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


class NoPlace(DragomanError):
    """Nobody can be waited for at this port."""


async def check(command: list[str], options: argparse.Namespace) -> CheckReport:
    """Judge a client. Raises StartError, NeverStarted, NoPlace."""
    if options.listen is None:
        return await check_client(
            ClientOptions(command=tuple(command), timeout_s=options.timeout, protocols=PROTOCOLS[options.protocol])
        )
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
        try:
            return await _wait(Path(directory), options.listen, PROTOCOLS[options.protocol])
        except OSError as error:
            raise NoPlace(f"cannot listen at port {options.listen}: {error.strerror}; name another port") from None


async def _wait(directory: Path, port: int, protocols: tuple[Version, ...] | None) -> CheckReport:
    """Wait for clients until Ctrl-C, and judge their messages."""
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
        words = "Send it a few prompts, and answer what it asks. Ctrl-C ends it, and the report follows."
        print(words, file=sys.stderr, flush=True)
        await ended.wait()
        return listening.report()


FAILED_CHECK = 2


class BadColumn(DragomanError):
    """A report for the matrix was not named as it should be."""


def deliver(options: argparse.Namespace, name: str, report: CheckReport) -> int:
    """Write a report as was asked, and return the exit code. Raises OutputNotWritten, BaselineUnusable."""
    known = _known(options, report)
    subject = NamedReport(name, report, known)
    write_output(options.output, _render(subject, options))
    for rule in mended(report, known):
        print(f"dragoman check: {rule} passes now; take it out of {options.baseline}", file=sys.stderr)
    return without_known(report, known).exit_code(options.level)


def deliver_matrix(options: argparse.Namespace) -> int:
    """Write reports side by side. Raises OutputNotWritten, ReportUnreadable, BadColumn."""
    subjects: list[NamedReport] = []
    for given in options.reports:
        name, equals, path = given.partition("=")
        if not equals or not name or not path:
            raise BadColumn(f"{given!r} is no column; say NAME=FILE, with a report that --format json wrote")
        subjects.append(NamedReport(name, read(path)))
    write_output(options.output, matrix(subjects))
    return 0


def _known(options: argparse.Namespace, report: CheckReport) -> frozenset[str]:
    if options.baseline is None:
        if options.write_baseline:
            raise UsageError("--write-baseline needs to know where; say --baseline FILE too")
        return frozenset()
    if options.write_baseline:
        count = write_baseline(options.baseline, report)
        print(f"dragoman check: {options.baseline} has {count} known failures now", file=sys.stderr)
    return frozenset(read_baseline(options.baseline))


def _render(subject: NamedReport, options: argparse.Namespace) -> str:
    if options.format != "text":
        return render(subject, options.format)
    is_terminal = options.output is None and sys.stdout.isatty()
    return terminal.render(
        subject,
        width=shutil.get_terminal_size().columns if is_terminal else 120,
        colours=is_terminal and not os.environ.get("NO_COLOR"),
        verbose=options.verbose,
    )
