"""The life of a turn: its prompt is logged, the program's function answers it in a task of its own, its end is logged.

    BEGINNING ──▶ RUNNING ──▶ ENDED
        │            │ cancel
        │            ▼
        └─cancel─▶ CANCELLING ──▶ ENDED      the function has GRACE_S to end; then it is left alone

Whatever the function does, the prompt is answered once: with a stop reason, or with one error. A function that raises
gives an error, and the traceback is on stderr alone. A function that returns neither a stop reason nor None gives an
error, too. A function that ignores its cancellation is left alone: nothing that it does later reaches the client. A
function that blocks the event loop blocks the whole agent, cancellation included, and a warning says so afterwards.
"""

import asyncio
import inspect
import logging
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast, get_args

import msgspec

from dragoman.agent.call_run import CallCancelled
from dragoman.agent.commands.registry import CommandRegistry, names_prompt
from dragoman.agent.prepared_call import Action
from dragoman.agent.program import AgentProgram
from dragoman.agent.prompt_words import unwrap
from dragoman.agent.session import Session
from dragoman.agent.session_memory import turn_end
from dragoman.agent.tool_call import CANCELLED, explain
from dragoman.agent.turn import Turn
from dragoman.agent.usage import TokenUsage
from dragoman.cancellation import finish
from dragoman.errors import ConnectionClosed, DragomanError, ErrorCode, InvalidParams, LogFailed, RpcError
from dragoman.protocol import v1
from dragoman.protocol.message_name import read_message_name
from dragoman.telemetry.operation import prompt_attribute, trace_turn
from dragoman.text import one_line, visible
from dragoman.text.secret import hide_command_secrets
from dragoman.text.title import make_title

GRACE_S = 15.0
"""How long a function that was cancelled may take to end: terminals and children of a tool need some seconds."""

CLOSE_GRACE_S = 5.0
"""The same when the connection is closing: the client is not there any more."""

BLOCKED_S = 2.0
"""A loop that was not free for so long is worth a warning: nobody could cancel meanwhile."""

SHOWN_LETTERS = 2_000
"""Characters of a server's question to the model that are shown: enough to judge it."""

REFUSED = -1
"""The code that MCP gives for a person who declined."""

if TYPE_CHECKING:
    from dragoman.agent.program import PromptFunction

_START = b'{"event":"start"}'
_STOP_REASONS = get_args(v1.StopReason)

_log = logging.getLogger("dragoman.agent")


class TurnPhase(Enum):
    """Where a turn is in its life."""

    BEGINNING = auto()
    RUNNING = auto()
    CANCELLING = auto()
    ENDED = auto()


class TurnRunner:
    """One prompt being answered; `cancel` ends it at any point, and it then answers `cancelled`."""

    def __init__(
        self,
        session: Session,
        program: AgentProgram,
        commands: CommandRegistry,
        prompt: Sequence[v1.ContentBlock],
        meta: dict[str, Any] | None = None,
    ) -> None:
        self.turn = Turn(session, prompt)
        self._session = session
        self._program = program
        self._commands = commands
        self._meta = meta
        self._phase = TurnPhase.BEGINNING
        self._task: asyncio.Task[v1.StopReason] | None = None
        self._abandoned = asyncio.Event()

    async def run(self) -> v1.PromptResponse:
        """Run to the end; raises RpcError, LogFailed and ConnectionClosed."""
        info = self._program.info
        with trace_turn(info.name, info.version, self._session.id, self._meta) as operation:
            if operation.captures_content:
                operation.note(prompt_attribute(hide_command_secrets(self.turn.text)))
            try:
                response = await self._run_and_record()
            finally:
                operation.note(self.turn.spent.attributes())
            operation.note({"gen_ai.response.finish_reasons": [response.stop_reason]})
            return response

    async def _run_and_record(self) -> v1.PromptResponse:
        try:
            reason = await self._run()
            state = self._session.memory.encode_state()
        except asyncio.CancelledError:
            raise  # the connection is closing; the next load of the session finds the turn unfinished and ends it
        except BaseException:
            with suppress(LogFailed, ConnectionClosed):  # the client may be gone, which may be the very error
                self.turn.finish("the turn failed")
                self._record_end("failed", self._rest_of_state())
                await self._session.updates.settle()
            raise
        finally:
            self._phase = TurnPhase.ENDED
        self._record_end(reason, state)
        await self._session.log.sync()
        return v1.PromptResponse(
            stop_reason="cancelled" if self.turn.is_cancelled else reason, usage=_usage(self.turn.spent)
        )

    def cancel(self) -> None:
        """Stop at once; of a turn that is done, but for the disk, only the answer changes."""
        if self.turn.is_cancelled:
            return
        self.turn.is_cancelled = True
        if self._phase is TurnPhase.ENDED:
            return
        self._phase = TurnPhase.CANCELLING
        if self._task is not None:
            self._task.cancel()
            asyncio.get_running_loop().call_later(GRACE_S, self._abandoned.set)

    def cancel_call(self, tool_call_id: str) -> bool:
        """Stop one tool call, and return whether it runs and can be stopped alone; the turn goes on."""
        call = self.turn.calls.find(tool_call_id)
        return call is not None and call.cancel()

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a server's question to the model, once the person has agreed; raises RpcError and ServerFailure."""
        function = self._program.hooks.sample
        if function is None:
            raise RpcError(ErrorCode.INVALID_REQUEST, "this agent has no model that a server could ask")
        turn = self.turn
        question = _describe_sampling(params)
        identity = f"sampling {self._session.mcp.identify(server)}"
        call = turn.tool(f"{server} asks the model", kind="think", name="sampling", asks=True)
        call.action = Action("tool", "sampling", identity)
        async with call:
            await call.show(visible(question, lines=True))
            if not await call.allowed():
                raise RpcError(REFUSED, call.denial, phrase="Not allowed")
            answer = await function(turn, params)
            said: Any = answer.get("content")
            if isinstance(said, dict) and isinstance(text := cast("dict[str, Any]", said).get("text"), str):
                await call.show(text)
                await call.raw_output({"output": text})
        return answer

    # ── running ─────────────────────────────────────────────────────────────────────────────────

    async def _run(self) -> v1.StopReason:
        beginning = asyncio.ensure_future(self._begin())
        try:
            await finish(beginning)
        except asyncio.CancelledError:
            beginning.result()  # a log that cannot be written is an error, and no cancelled turn
            raise
        if self.turn.is_cancelled:
            return "cancelled"
        self._task = asyncio.create_task(self._answer(), name=f"turn in {self._session.id}")
        self._phase = TurnPhase.RUNNING
        watch = _LoopWatch()
        try:
            await self._join(self._task)
        finally:
            watch.stop()
        return self._outcome(self._task)

    async def _join(self, task: "asyncio.Task[v1.StopReason]") -> None:
        """Wait for the function, or until it has ignored its cancellation for too long."""
        abandoned = asyncio.ensure_future(self._abandoned.wait())
        try:
            await asyncio.wait({task, abandoned}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            self.turn.is_cancelled = True
            await finish(asyncio.wait({task}, timeout=CLOSE_GRACE_S))
            raise
        finally:
            abandoned.cancel()

    def _outcome(self, task: "asyncio.Task[v1.StopReason]") -> v1.StopReason:
        if self.turn.is_cancelled:
            return self._cancelled(task)
        if task.cancelled():
            raise self._failed("its function stopped itself with CancelledError")
        error = task.exception()
        if error is None:
            self.turn.finish("the turn ended before this was done")
            return task.result()
        if isinstance(error, CallCancelled):
            self.turn.finish(CANCELLED)
            return "end_turn"  # nothing failed: the person stopped what the function was about
        if isinstance(error, RpcError | LogFailed | ConnectionClosed):
            raise error
        if isinstance(error, DragomanError):
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error)) from error
        _log.error("the function for a prompt failed", exc_info=error)
        raise self._failed(explain(error)) from error

    def _cancelled(self, task: "asyncio.Task[v1.StopReason]") -> v1.StopReason:
        if not task.done():
            _log.warning("a function goes on %g s after its turn was cancelled; it is left alone", GRACE_S)
            task.add_done_callback(_look_at_end)
        elif not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, LogFailed):
                raise error
            _log.warning("a function failed after its turn was cancelled", exc_info=error)
        self.turn.finish("cancelled")
        return "cancelled"

    def _failed(self, reason: str) -> RpcError:
        name = self._program.info.title or self._program.info.name
        problem = f"{name} failed: {reason}; its log on stderr has the details"
        return RpcError(ErrorCode.INTERNAL_ERROR, problem)

    async def _answer(self) -> v1.StopReason:
        session, turn = self._session, self.turn
        for hook in self._program.hooks.turn:
            await hook(turn)
        session.show_notices()
        if names_prompt(turn.prompt):
            await session.mcp.wait(session.notice)
        unknown = self._commands.unknown(session, turn.prompt)
        if unknown is not None:
            turn.command = ""
            await turn.say(unknown)
            return "end_turn"
        asked = self._commands.find(session, turn.prompt)
        if asked is None:
            await self._set_title()
        else:
            command, turn.arguments = asked
            turn.command = command.name
            answered = await self._run_command(command.run)
            if answered or not command.goes_on:
                return "end_turn"
        session.memory.message_count += 1
        if self._program.hooks.prompt is None:
            raise _no_function(self._program)
        return await call_function(self._program.hooks.prompt, turn)

    async def _run_command(self, function: "PromptFunction") -> bool:
        """Run a command, and return whether it has answered with a refusal, which is an answer too."""
        try:
            await call_function(function, self.turn)
        except InvalidParams as refusal:
            await self.turn.say(refusal.problem)
        except (RpcError, LogFailed, ConnectionClosed):
            raise
        except DragomanError as refusal:
            await self.turn.say(str(refusal))
        else:
            return False
        return True

    # ── its log ─────────────────────────────────────────────────────────────────────────────────

    async def _begin(self) -> None:
        """Log the prompt; the client that sent it is sent it back only if it wants that."""
        session, prompt = self._session, self.turn.prompt
        session.updates.record("turn", _START)
        message_id = read_message_name(self._meta) or str(uuid.uuid4())
        for block in prompt:
            said = v1.UserMessageChunk(content=_kept(block), message_id=message_id)
            if session.client.wants_echo:
                await session.updates.send(said)
            else:
                session.updates.record_update(said)
        if not names_prompt(prompt) and not self._commands.names_command(session, prompt):
            await self._set_title()

    async def _set_title(self) -> None:
        """Make the first prompt that is no command the title."""
        if self._session.title is None:
            await self._session.set_title(_title(self.turn.prompt))

    def _rest_of_state(self) -> bytes | None:
        """Return the state after a failure; one that cannot be saved was told already, or is not what failed."""
        try:
            return self._session.memory.encode_state()
        except DragomanError:
            return None

    def _record_end(self, outcome: str, state: bytes | None) -> None:
        session, memory = self._session, self._session.memory
        session.log.title, session.log.message_count = memory.title, memory.message_count
        session.updates.record("turn", turn_end(memory, outcome, state))
        session.updates.flush()


def _kept(block: v1.ContentBlock) -> v1.ContentBlock:
    """Return a block of a prompt as it is logged: without the secrets of a server that the person adds."""
    if not isinstance(block, v1.TextContent) or (text := hide_command_secrets(block.text)) == block.text:
        return block
    return msgspec.structs.replace(block, text=text)


async def call_function(function: "PromptFunction", turn: Turn) -> v1.StopReason:
    """Let a function of the program answer; raises what it raises, and TypeError for a wrong result."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        answer = function(turn)
        if inspect.isasyncgen(answer):
            async with aclosing(answer) as pieces:
                async for piece in cast("AsyncGenerator[Any]", pieces):
                    await turn.say(piece)
            return "end_turn"
        if not inspect.isawaitable(answer):
            raise TypeError(f"{name} is no coroutine function and no async generator function; write `async def`")
        result: Any = await answer
    except SystemExit as error:
        raise RuntimeError(f"{name} called sys.exit({error.code!r}); an agent ends when its client does") from error
    if result is None:
        return "end_turn"
    if isinstance(result, str) and result in _STOP_REASONS:
        return cast("v1.StopReason", result)
    shown = one_line(repr(result), 80)
    raise TypeError(f"{name} returned {shown}; expected None or one of {', '.join(_STOP_REASONS)}")


class _LoopWatch:
    """Warns, while a turn is running, when the event loop was not free for a while."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._next()

    def _next(self) -> None:
        self._due = self._loop.time() + BLOCKED_S
        self._timer = self._loop.call_later(BLOCKED_S, self._look)

    def _look(self) -> None:
        self._warn()
        self._next()

    def _warn(self) -> None:
        late_s = self._loop.time() - self._due
        if late_s > BLOCKED_S:
            _log.warning(
                "the event loop was blocked for about %.0f s, in which nobody could cancel; "
                "await asyncio.to_thread(…) for work that takes long",
                late_s,
            )

    def stop(self) -> None:
        self._warn()
        self._timer.cancel()


def _no_function(program: AgentProgram) -> RpcError:
    problem = f"{program.info.name} has no function for prompts; decorate one with @agent.on_prompt"
    return RpcError(ErrorCode.INTERNAL_ERROR, problem)


def _look_at_end(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("a function that was left alone failed", exc_info=error)


def _usage(spent: TokenUsage) -> v1.Usage | None:
    """Return the tokens of a turn; None when none were counted."""
    if not (spent.input or spent.output):
        return None
    return v1.Usage(
        total_tokens=spent.input + spent.output,
        input_tokens=spent.input,
        output_tokens=spent.output,
        thought_tokens=spent.thought or None,
        cached_read_tokens=spent.cached_read or None,
        cached_write_tokens=spent.cached_write or None,
    )


def _title(blocks: Sequence[v1.ContentBlock]) -> str:
    for block in unwrap(blocks):
        if isinstance(block, v1.TextContent) and block.text.strip():
            return make_title(block.text)
    return "Untitled"


def _describe_sampling(params: dict[str, Any]) -> str:
    """Return a server's question to the model as text; raises RpcError when it cannot be read."""
    lines = [f"system: {params['systemPrompt']}"] if params.get("systemPrompt") else []
    try:
        for message in params["messages"]:
            content = message["content"]
            blocks = cast("list[dict[str, Any]]", content if isinstance(content, list) else [content])
            lines.append(f"{message['role']}: {' '.join(_words(block) for block in blocks)}")
    except (AttributeError, KeyError, TypeError) as error:
        raise RpcError(ErrorCode.INVALID_PARAMS, f"these messages cannot be read: {error}") from None
    text = "\n".join(lines)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}… and {len(text) - SHOWN_LETTERS:,} more"


def _words(block: dict[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else f"[{block.get('type', 'no text')}]"
