"""`dragoman run`: give an agent one prompt and print its answer as it streams."""

import argparse
import asyncio
import os
import signal
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from dragoman.cli.agent_choice import ChosenAgent, check_own_agent, choose_agent, choose_directory
from dragoman.cli.exit_code import FAILED, USAGE, exit_code_of
from dragoman.cli.explanation import Log, code_of, explain
from dragoman.cli.last_session import find_last_session
from dragoman.cli.loop import Stopped, run
from dragoman.cli.options import UsageError
from dragoman.cli.output import start_log
from dragoman.cli.run_output import OUTPUTS, NdjsonOutput, Output
from dragoman.cli.run_policy import make_policy
from dragoman.cli.run_prompt import Attachment, read_files, read_prompt
from dragoman.cli.run_question import Person, has_person
from dragoman.cli.run_record import TIMEOUT, Record
from dragoman.cli.run_screen import Screen
from dragoman.client import Policy, RemoteAgent, Session, connect
from dragoman.client.introduction import START_TIMEOUT_S
from dragoman.client.turn import CANCEL_TIMEOUT_S, Turn
from dragoman.errors import DragomanError

KILLED = 128 + signal.SIGINT


class Job(msgspec.Struct, frozen=True):
    """What is to be done."""

    agent: ChosenAgent
    model: str | None
    agent_file: str | None
    cwd: Path
    prompt: str
    files: list[Attachment]
    policy: Policy
    servers: list[Path]
    session_id: str | None
    is_continued: bool
    timeout_s: float | None


def main(options: argparse.Namespace) -> int:
    """Run one prompt and return the exit code that tells how it went."""
    agent = choose_agent(options)
    if not agent.is_own and (options.model or options.agent):
        raise UsageError(
            "--model and --agent are for dragoman's own agent; give another one its options after its command"
        )
    start_log("ERROR")
    screen = Screen()
    job = _make_job(options, agent, screen)
    return _carry_out(job, OUTPUTS[options.format](screen), screen)


def _make_job(options: argparse.Namespace, agent: ChosenAgent, screen: Screen) -> Job:
    person = Person(screen).ask if has_person() else None
    return Job(
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
        timeout_s=options.timeout,
    )


def _carry_out(job: Job, output: Output, screen: Screen) -> int:
    work = _Run(job, output, screen)
    try:
        code = _end(work, job)
        output.finish(work.record, code)
    except Stopped as stopped:
        screen.end_line()
        return 128 + stopped.signal_number
    return code


def _end(work: "_Run", job: Job) -> int:
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
                error, is_own=job.agent.is_own, stderr=work.log.tail, answer=record.text, timeout_option="--timeout"
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


class _Run:
    """One prompt, from the start of the agent to its end."""

    def __init__(self, job: Job, output: Output, screen: Screen) -> None:
        self.record = Record()
        self.log = Log()
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
            session = self.record.session = await _open(agent, job)
            for event in session.strays:
                self.record.note(event)
            self._output.begin(session, withdraws=agent.withdraws)
            blocks = [file.as_block(agent.capabilities.prompt_capabilities) for file in job.files]
            turn = session.prompt([job.prompt, *blocks])
            self._watch_keys(session)
            await self._read(turn)

    def _connect(self) -> AbstractAsyncContextManager[RemoteAgent]:
        job = self._job
        watch = self._output if isinstance(self._output, NdjsonOutput) else None
        timeout_s = job.timeout_s or START_TIMEOUT_S
        agent = job.agent
        if agent.address is not None:
            return agent.address.connect(policy=job.policy, watch=watch, start_timeout_s=timeout_s)
        return connect(agent.command, policy=job.policy, on_stderr=self.log.add, start_timeout_s=timeout_s, watch=watch)

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


async def _open(agent: RemoteAgent, job: Job) -> Session:
    """Open the session that is asked for; without a replay where the agent can."""
    session_id = await find_last_session(agent, job.cwd) if job.is_continued else job.session_id
    if session_id is None:
        return await agent.new_session(job.cwd, mcp_servers=job.servers)
    return await agent.reopen_session(session_id, job.cwd, mcp_servers=job.servers)
