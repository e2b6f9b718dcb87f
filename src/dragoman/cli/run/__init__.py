"""`dragoman run`: send one prompt to an agent and print its answer as it streams."""

import argparse
import asyncio
import base64
import mimetypes
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from dragoman.cli.agent_choice import (
    ChosenAgent,
    check_own_agent,
    choose_agent,
    choose_directory,
    model_to_set,
    prefer_agent,
)
from dragoman.cli.exit_codes import FAILED, TIMEOUT, USAGE
from dragoman.cli.failure import AgentStderr, code_of, exit_code_of, explain
from dragoman.cli.options import UsageError
from dragoman.cli.output import start_log
from dragoman.cli.run.output import OUTPUTS, NdjsonOutput, RunOutput, RunRecord
from dragoman.cli.run.policy import make_policy
from dragoman.cli.session_choice import find_last_session
from dragoman.cli.session_options import choose, find_option
from dragoman.cli.terminal.permission import PermissionPrompt, has_terminal
from dragoman.cli.terminal.screen import AnswerOutput
from dragoman.client import AgentConnection, Session, connect
from dragoman.client.connection.handshake import START_TIMEOUT_S
from dragoman.client.policies import Policy
from dragoman.client.sessions.turn import CANCEL_TIMEOUT_S, Turn
from dragoman.errors import DragomanError, RemoteError
from dragoman.event_loop import StoppedError, run
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_DELETE
from dragoman.protocol.session_origin import ORIGIN_KEY, RUN
from dragoman.text import one_line

KILLED = 128 + signal.SIGINT


DELETE_TIMEOUT_S = 10.0
"""Time for the agent to delete a session and close its files, before the run ends anyway."""

MAX_EMBEDDED_BYTES = 1024 * 1024
"""Longer files are sent as links, so that the agent reads only the part it needs."""


class PromptFile(msgspec.Struct, frozen=True):
    """A file attached to the prompt. Without data it is only linked."""

    path: Path
    data: bytes | None = None

    def as_block(self, capabilities: v1.PromptCapabilities) -> v1.ContentBlock:
        """Return the whole file if the agent supports that, or else a link, which every agent supports."""
        uri, kind = self.path.as_uri(), mimetypes.guess_type(self.path.name)[0]
        if self.data is not None:
            if capabilities.image and kind is not None and kind.startswith("image/"):
                return v1.ImageContent(data=base64.b64encode(self.data).decode(), mime_type=kind, uri=uri)
            text = _text(self.data)
            if capabilities.embedded_context and text is not None:
                return v1.EmbeddedResource(resource=v1.TextResourceContents(text=text, uri=uri, mime_type=kind))
        return v1.ResourceLink(name=self.path.name, uri=uri, mime_type=kind)


class RunJob(msgspec.Struct, frozen=True):
    """The prompt and everything needed to run it."""

    agent: ChosenAgent
    model: str | None
    agent_file: str | None
    cwd: Path
    prompt: str
    files: list[PromptFile]
    policy: Policy
    servers: list[Path]
    session_id: str | None
    is_continued: bool
    is_ephemeral: bool
    settings: list[tuple[str, str]]
    """Options of the session and their values, in the order to set them."""
    timeout_s: float | None


def main(options: argparse.Namespace) -> int:
    """Run one prompt and return the exit code for its result."""
    agent = prefer_agent(options, choose_agent(options))
    if not agent.is_own and options.agent:
        raise UsageError("--agent is for dragoman's own agent; leave it out, or leave out -- CMD")
    if options.ephemeral and (options.session or options.is_continued):
        raise UsageError("--ephemeral deletes the session at the end, so it needs a new session")
    start_log("ERROR")
    screen = AnswerOutput()
    if has_terminal() and agent.is_own and options.format == "text" and options.prompt != "-":
        from dragoman.cli.model_choice import choose_at_start

        agent = choose_at_start(options, agent, choose_directory(options.cwd), _ask, screen.aside)
    job = _make_job(options, agent, screen)
    return _carry_out(job, OUTPUTS[options.format](screen), screen)


def _ask(question: str) -> str:
    """Read a line at the terminal. The question goes to stderr, because stdout has only the answer."""
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def _make_job(options: argparse.Namespace, agent: ChosenAgent, screen: AnswerOutput) -> RunJob:
    ask_user = PermissionPrompt(screen).ask if has_terminal() else None
    return RunJob(
        agent=agent,
        model=options.model,
        agent_file=options.agent,
        cwd=choose_directory(options.cwd),
        policy=make_policy(options.policy, ask_user, is_own=agent.is_own),
        files=read_files(options.file),
        prompt=read_prompt(options.prompt),
        servers=[Path(name).absolute() for name in options.mcp],
        session_id=options.session,
        is_continued=options.is_continued,
        is_ephemeral=options.ephemeral,
        settings=_settings(options),
        timeout_s=options.timeout,
    )


def _settings(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the options to set. The model comes first, because it decides the agent's other options."""
    named = {"model": model_to_set(options), "mode": options.mode}
    return [*((name, value) for name, value in named.items() if value is not None), *options.option]


def _carry_out(job: RunJob, output: RunOutput, screen: AnswerOutput) -> int:
    work = _PromptRun(job, output, screen)
    try:
        code = _end(work, job)
        output.finish(work.record, code)
    except StoppedError:
        screen.end_line()
        raise
    return code


def _end(work: "_PromptRun", job: RunJob) -> int:
    record = work.record
    if job.agent.is_own:
        try:
            check_own_agent(job.model, job.agent_file)
        except DragomanError as error:
            record.error = str(error)
            return USAGE
    try:
        run(work.go())
    except DragomanError as error:
        if not work.is_late:
            record.error = explain(
                error, is_own=job.agent.is_own, stderr=work.stderr.tail, answer=record.text, timeout_option="--timeout"
            )
            record.error_code = code_of(error)
            return exit_code_of(error, is_own=job.agent.is_own)
    except TimeoutError:
        if not work.is_late:
            raise
    if work.is_late:
        record.error = f"timed out: the turn did not finish within {job.timeout_s:g} s"
        return TIMEOUT
    return record.exit_code


class _PromptRun:
    """One prompt, from the agent's start to its exit."""

    def __init__(self, job: RunJob, output: RunOutput, screen: AnswerOutput) -> None:
        self.record = RunRecord()
        self.stderr = AgentStderr()
        self.is_late = False
        self._job = job
        self._output = output
        self._screen = screen

    async def go(self) -> None:
        """Run the prompt. Raises DragomanError, TimeoutError or BrokenPipeError."""
        limit = asyncio.timeout(self._job.timeout_s)
        try:
            async with limit:
                await self._work()
        finally:
            self.is_late = limit.expired()

    async def _work(self) -> None:
        job = self._job
        async with self._connect() as agent:
            if job.is_ephemeral:
                agent.check.method(SESSION_DELETE)
            session = self.record.session = await _open(agent, job)
            try:
                await self._set_options(session)
                await self._talk(agent, session)
            finally:
                if job.is_ephemeral:
                    await self._delete(session)

    async def _set_options(self, session: Session) -> None:
        for name, value in self._job.settings:
            try:
                await choose(session, name, value)
            except RemoteError:  # the value may be valid without being listed, so the agent decides
                if option := find_option(session, name):
                    self._screen.aside(f"[{one_line(name)} is one of: {', '.join(map(one_line, option.values))}]")
                raise

    async def _talk(self, agent: AgentConnection, session: Session) -> None:
        job = self._job
        for event in session.events_between_turns:
            self.record.add_notice(event)
        self._output.begin(session, withdraws=agent.withdraws)
        blocks = [file.as_block(agent.capabilities.prompt_capabilities) for file in job.files]
        turn = session.prompt([job.prompt, *blocks])
        self._watch_keys(session)
        await self._read(turn)

    async def _delete(self, session: Session) -> None:
        """Delete the session of an ephemeral run, even after a timeout or failure."""
        deleting = asyncio.ensure_future(session.delete())
        try:
            await asyncio.wait_for(asyncio.shield(deleting), DELETE_TIMEOUT_S)
        except asyncio.CancelledError:
            await asyncio.wait([deleting], timeout=DELETE_TIMEOUT_S)
            raise
        except (DragomanError, TimeoutError) as error:
            reason = str(error) or f"the agent did not answer within {DELETE_TIMEOUT_S:g} s"
            self._screen.aside(f"[session {session.id} could not be deleted: {reason}]")
        finally:
            deleting.cancel()

    def _connect(self) -> AbstractAsyncContextManager[AgentConnection]:
        job = self._job
        watch = self._output if isinstance(self._output, NdjsonOutput) else None
        timeout_s = job.timeout_s or START_TIMEOUT_S
        agent = job.agent
        # Scripts read these messages, and most know version 1 better than the draft of version 2.
        newest = 1 if watch else agent.newest
        if agent.address is not None:
            return agent.address.connect(policy=job.policy, watch=watch, start_timeout_s=timeout_s, newest=newest)
        return connect(
            agent.command,
            policy=job.policy,
            on_stderr=self.stderr.add,
            start_timeout_s=timeout_s,
            watch=watch,
            protocol_version=newest,
        )

    async def _read(self, turn: Turn) -> None:
        async with turn:
            async for event in turn:
                self._output.show(event, self.record.add(event))
        done = self.record.done
        if done is not None and self.record.exit_code == FAILED:
            self.record.error = f"the agent ended its turn with an unknown stopReason: {done.stop_reason!r}"

    def _watch_keys(self, session: Session) -> None:
        """Cancel the turn on Ctrl-C. A second Ctrl-C, or an agent that does not stop, ends the process."""
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if self.record.is_interrupted:
                self._kill()
            self.record.is_interrupted = True
            self._screen.aside("[cancelling; Ctrl-C again stops the agent at once]")
            session.cancel()
            loop.call_later(CANCEL_TIMEOUT_S, self._kill)

        loop.add_signal_handler(signal.SIGINT, interrupt)

    def _kill(self) -> None:
        """Exit at once. Our monitor process outlives us and ends the agent with its children."""
        self._screen.aside("[the agent did not end its turn and is stopped]")
        os._exit(KILLED)


async def _open(agent: AgentConnection, job: RunJob) -> Session:
    """Open the chosen session, without a replay if the agent supports that."""
    session_id = await find_last_session(agent, job.cwd) if job.is_continued else job.session_id
    if session_id is None:
        return await agent.new_session(job.cwd, mcp_servers=job.servers, meta={ORIGIN_KEY: RUN})
    return await agent.reopen_session(session_id, job.cwd, mcp_servers=job.servers)


def read_prompt(argument: str) -> str:
    """Return the prompt. `-` reads it from stdin. Raises UsageError."""
    text = sys.stdin.read() if argument == "-" else argument
    if not text.strip():
        raise UsageError("stdin was empty; expected a prompt" if argument == "-" else "the prompt is empty")
    return text


def read_files(names: Sequence[str]) -> list[PromptFile]:
    """Return the files, with their contents unless they are too long. Raises UsageError."""
    return [_read_file(Path(name).expanduser().absolute()) for name in names]


def _read_file(path: Path) -> PromptFile:
    try:
        if path.is_dir() or path.stat().st_size > MAX_EMBEDDED_BYTES:
            return PromptFile(path)
        return PromptFile(path, path.read_bytes())
    except OSError as error:
        raise UsageError(f"the file {path} cannot be read: {error.strerror}") from None


def _text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
