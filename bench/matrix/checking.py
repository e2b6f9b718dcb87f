"""Checks one subject in its own home and directory."""

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path

import msgspec

from bench import commands
from bench.matrix.checked import Checked, today
from bench.matrix.prompted import provider
from bench.matrix.subject import Subject
from bench.measure import MissingError
from dragoman.check.adversary import ClientOptions, check_client
from dragoman.check.driver import AgentOptions, check_agent
from dragoman.check.results import CheckReport

PATIENCE_S = 30.0
"""The limits for an answer and for the first answer. The slowest agents take half a minute on a busy machine."""
START_S = 120.0
STOP_S = 20


def check(subject: Subject) -> Checked:
    """Check a subject. Raises MissingError if it is not installed or silent, and DragomanError if it cannot run."""
    version, began = subject.version(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="matrix-") as home, _at(Path(home)):
        report = _check_client(subject) if subject.role == "client" else _check_agent(subject, home)
    if not report.summary.passed:
        raise MissingError(
            f"it could not start here: {next(each.detail for each in report.results if each.id == 'ACP-INIT-001')}"
        )
    return Checked(subject.name, subject.role, version, today(), round(time.monotonic() - began, 1), report)


def _check_client(subject: Subject) -> CheckReport:
    return asyncio.run(
        check_client(ClientOptions(command=subject.command(), timeout_s=PATIENCE_S, protocols=subject.protocols))
    )


def _check_agent(subject: Subject, home: str) -> CheckReport:
    if subject.point is None:
        return _drive(subject, home, {})
    with provider() as url:
        return _drive(subject, home, subject.point(url, Path(home)))


def _drive(subject: Subject, home: str, environment: Mapping[str, str]) -> CheckReport:
    how = AgentOptions(
        command=subject.command(),
        env={"HOME": home, "DRAGOMAN_HOME": home, **subject.env, **environment},
        turns=subject.turns,
        prompt=subject.prompt,
        protocols=subject.protocols,
        timeout_s=PATIENCE_S,
        start_timeout_s=START_S,
        exit_timeout_s=PATIENCE_S,
    )
    if not subject.served:
        return asyncio.run(check_agent(how))
    with _bridge(subject, home) as (url, token):
        return asyncio.run(check_agent(_at_address(how, url, token)))


def _at_address(how: AgentOptions, url: str, token: str) -> AgentOptions:
    return msgspec.structs.replace(how, command=(), url=url, token=token)


@contextmanager
def _bridge(subject: Subject, home: str) -> Generator[tuple[str, str]]:
    """Serve an agent, and yield its WebSocket address and the token."""
    command = commands.dragoman_with_models("serve", "--format", "json", "--port", "0", "--", *subject.command())
    environment = {**os.environ, "HOME": home, "DRAGOMAN_HOME": home}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        try:
            said = json.loads(process.stdout.readline())
            yield said["acp"].replace("http://", "ws://", 1), said["token"]
        finally:
            process.terminate()
            process.wait(STOP_S)


@contextmanager
def _at(home: Path) -> Generator[None]:
    """Work in a temporary directory, because some agents leave files where they are started."""
    before = os.environ.get("HOME")
    with chdir(home):
        os.environ["HOME"] = str(home)
        try:
            yield
        finally:
            if before is not None:
                os.environ["HOME"] = before
