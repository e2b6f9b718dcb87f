"""`dragoman run`: give an agent one prompt and print its answer as it streams."""

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

from dragoman.cli.agent_choice import ChosenAgent, check_own_agent, choose_agent, choose_directory, prefer_agent
from dragoman.cli.exit_codes import FAILED, TIMEOUT, USAGE
from dragoman.cli.failure import AgentStderr, code_of, exit_code_of, explain
from dragoman.cli.options import UsageError
from dragoman.cli.output import start_log
from dragoman.cli.run.output import OUTPUTS, NdjsonOutput, RunOutput, RunRecord
from dragoman.cli.run.policy import make_policy
from dragoman.cli.session_choice import find_last_session
from dragoman.cli.terminal.permission import PermissionPrompt, has_person
from dragoman.cli.terminal.screen import AnswerOutput
from dragoman.client import Policy, RemoteAgent, Session, connect
from dragoman.client.handshake import START_TIMEOUT_S
from dragoman.client.turn import CANCEL_TIMEOUT_S, Turn
from dragoman.errors import DragomanError
from dragoman.event_loop import Stopped, run
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_DELETE
from dragoman.protocol.origin import ORIGIN_KEY, RUN

KILLED = 128 + signal.SIGINT


DELETE_TIMEOUT_S = 10.0
"""For an agent to delete a session: it has to close files, and the run is over otherwise."""

MAX_EMBEDDED_BYTES = 1024 * 1024
"""Longer files are named and not sent: an agent reads the part of them that it needs."""


class PromptFile(msgspec.Struct, frozen=True):
    """A file that goes with the prompt; without data it is only named."""

    path: Path
    data: bytes | None = None

    def as_block(self, capabilities: v1.PromptCapabilities) -> v1.ContentBlock:
        """Return it whole, if the agent can take that; else the link that every agent can."""
        uri, kind = self.path.as_uri(), mimetypes.guess_type(self.path.name)[0]
        if self.data is not None:
            if capabilities.image and kind is not None and kind.startswith("image/"):
                return v1.ImageContent(data=base64.b64encode(self.data).decode(), mime_type=kind, uri=uri)
            text = _text(self.data)
            if capabilities.embedded_context and text is not None:
                return v1.EmbeddedResource(resource=v1.TextResourceContents(text=text, uri=uri, mime_type=kind))
        return v1.ResourceLink(name=self.path.name, uri=uri, mime_type=kind)


class RunJob(msgspec.Struct, frozen=True):
    """The prompt, and all that it is run with."""

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
    timeout_s: float | None


def main(options: argparse.Namespace) -> int:
    """Run one prompt and return the exit code that tells how it went."""
    agent = prefer_agent(options, choose_agent(options))
    if not agent.is_own and (options.model or options.agent):
        raise UsageError(
            "--model and --agent are for dragoman's own agent; give another one its options after its command"
        )
    if options.ephemeral and (options.session or options.is_continued):
        raise UsageError("--ephemeral deletes the session at the end, so it goes with a new one alone")
    start_log("ERROR")
    screen = AnswerOutput()
    if has_person() and agent.is_own and options.format == "text" and options.prompt != "-":
        from dragoman.cli.model_choice import choose_at_start

        agent = choose_at_start(options, agent, choose_directory(options.cwd), _ask, screen.aside)
    job = _make_job(options, agent, screen)
    return _carry_out(job, OUTPUTS[options.format](screen), screen)


def _ask(words: str) -> str:
    """Read a line at the terminal; the question goes to stderr, because stdout has the answer."""
    print(words, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def _make_job(options: argparse.Namespace, agent: ChosenAgent, screen: AnswerOutput) -> RunJob:
    person = PermissionPrompt(screen).ask if has_person() else None
    return RunJob(
        agent=agent,
        model=options.model,
        agent_file=options.agent,
        cwd=choose_directory(options.cwd),
        policy=make_policy(options.policy, person, is_own=agent.is_own),
        files=read_files(options.file),
        prompt=read_prompt(options.prompt),
        servers=[Path(name).absolute() for name in options.mcp],
        session_id=options.session,
        is_continued=options.is_continued,
        is_ephemeral=options.ephemeral,
        timeout_s=options.timeout,
    )


def _carry_out(job: RunJob, output: RunOutput, screen: AnswerOutput) -> int:
    work = _PromptRun(job, output, screen)
    try:
        code = _end(work, job)
        output.finish(work.record, code)
    except Stopped as stopped:
        screen.end_line()
        return 128 + stopped.signal_number
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
        record.error = f"the time is up: it was not done within {job.timeout_s:g} s"
        return TIMEOUT
    return record.exit_code


class _PromptRun:
    """One prompt, from the start of the agent to its end."""

    def __init__(self, job: RunJob, output: RunOutput, screen: AnswerOutput) -> None:
        self.record = RunRecord()
        self.stderr = AgentStderr()
        self.is_late = False
        self._job = job
        self._output = output
        self._screen = screen

    async def go(self) -> None:
        """Do it; raises DragomanError, TimeoutError and BrokenPipeError."""
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
                await self._talk(agent, session)
            finally:
                if job.is_ephemeral:
                    await self._delete(session)

    async def _talk(self, agent: RemoteAgent, session: Session) -> None:
        job = self._job
        for event in session.events_between_turns:
            self.record.note(event)
        self._output.begin(session, withdraws=agent.withdraws)
        blocks = [file.as_block(agent.capabilities.prompt_capabilities) for file in job.files]
        turn = session.prompt([job.prompt, *blocks])
        self._watch_keys(session)
        await self._read(turn)

    async def _delete(self, session: Session) -> None:
        """Delete the session of an ephemeral run, also when its time is up or it failed."""
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

    def _connect(self) -> AbstractAsyncContextManager[RemoteAgent]:
        job = self._job
        watch = self._output if isinstance(self._output, NdjsonOutput) else None
        timeout_s = job.timeout_s or START_TIMEOUT_S
        agent = job.agent
        # Scripts read the messages that a watch is shown, and know the draft of version 2 less than version 1.
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
                self._output.show(event, self.record.take(event))
        done = self.record.done
        if done is not None and self.record.exit_code == FAILED:
            self.record.error = (
                f"the agent ended its turn with a stopReason that the protocol lacks: {done.stop_reason!r}"
            )

    def _watch_keys(self, session: Session) -> None:
        """Let Ctrl-C cancel the turn; the second one, or an agent that does not end it, ends everything."""
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
        """End at once: its monitor process, which outlives us, ends the agent and all that it started."""
        self._screen.aside("[the agent has not ended its turn: it is stopped]")
        os._exit(KILLED)


async def _open(agent: RemoteAgent, job: RunJob) -> Session:
    """Open the session that is asked for; without a replay where the agent can."""
    session_id = await find_last_session(agent, job.cwd) if job.is_continued else job.session_id
    if session_id is None:
        return await agent.new_session(job.cwd, mcp_servers=job.servers, meta={ORIGIN_KEY: RUN})
    return await agent.reopen_session(session_id, job.cwd, mcp_servers=job.servers)


def read_prompt(given: str) -> str:
    """Return the prompt, which `-` has on stdin. Raises UsageError."""
    text = sys.stdin.read() if given == "-" else given
    if not text.strip():
        raise UsageError("stdin had no prompt" if given == "-" else "the prompt is empty")
    return text


def read_files(names: Sequence[str]) -> list[PromptFile]:
    """Return the files as far as they may be sent. Raises UsageError."""
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
