"""Runs a turn: logs its prompt, lets the program's function answer it in a separate task, and logs its end.

    BEGINNING ──▶ RUNNING ──▶ ENDED
        │            │ cancel
        │            ▼
        └─cancel─▶ CANCELLING ──▶ ENDED      the function has GRACE_S to end, and is then abandoned

The prompt always receives one answer: a stop reason or an error. If the function raises, the answer is an error, and
the traceback only goes to stderr. If it returns neither a stop reason nor None, the answer is an error as well. A
function that ignores its cancellation is abandoned, and nothing that it does later reaches the client. A function that
blocks the event loop blocks the whole agent, including cancellation, and a warning is logged afterwards.
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

from dragoman.agent.commands.registry import CommandRegistry, names_prompt
from dragoman.agent.program import AgentProgram
from dragoman.agent.sessions.session import Session
from dragoman.agent.sessions.session_memory import turn_end
from dragoman.agent.turns.call_run import CallCancelledError
from dragoman.agent.turns.prepared_call import Action
from dragoman.agent.turns.prompt_words import unwrap
from dragoman.agent.turns.tool_call import CANCELLED, explain
from dragoman.agent.turns.turn import Turn
from dragoman.agent.turns.usage import TokenUsage
from dragoman.cancellation import finish
from dragoman.errors import ConnectionClosedError, DragomanError, ErrorCode, InvalidParamsError, LogError, RpcError
from dragoman.protocol import v1
from dragoman.protocol.message_name import read_message_name
from dragoman.telemetry.operation import prompt_attribute, trace_turn
from dragoman.text import one_line, visible
from dragoman.text.secret import hide_command_secrets
from dragoman.text.title import make_title

GRACE_S = 15.0
"""How long a cancelled function may take to end. The terminals and processes of a tool need a few seconds."""

CLOSE_GRACE_S = 5.0
"""The same time while the connection closes, when the client is already gone."""

BLOCKED_S = 2.0
"""How long the event loop may be blocked before a warning is logged. A blocked turn cannot be cancelled."""

MAX_SHOWN_CHARS = 2_000
"""The characters of a server's model request that are shown, enough to judge it."""

REFUSED = -1
"""The error code that MCP defines for a request that the user declined."""

if TYPE_CHECKING:
    from dragoman.agent.program import PromptFunction

_START = b'{"event":"start"}'
_STOP_REASONS = get_args(v1.StopReason)

_log = logging.getLogger("dragoman.agent")


class TurnPhase(Enum):
    """The phase of a turn."""

    BEGINNING = auto()
    RUNNING = auto()
    CANCELLING = auto()
    ENDED = auto()


class TurnRunner:
    """Runs one prompt. `cancel` ends it at any point, and the answer is then `cancelled`."""

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
        """Run the turn to its end. Raises RpcError, LogError and ConnectionClosedError."""
        info = self._program.info
        with trace_turn(info.name, info.version, self._session.id, self._meta) as operation:
            if operation.captures_content:
                operation.set_attributes(prompt_attribute(hide_command_secrets(self.turn.text)))
            try:
                response = await self._run_and_record()
            finally:
                operation.set_attributes(self.turn.spent.attributes())
            operation.set_attributes({"gen_ai.response.finish_reasons": [response.stop_reason]})
            return response

    async def _run_and_record(self) -> v1.PromptResponse:
        try:
            reason = await self._run()
            state = self._session.memory.encode_state()
        except asyncio.CancelledError:
            raise  # the connection is closing, and the next load of the session ends the unfinished turn
        except BaseException:
            with suppress(LogError, ConnectionClosedError):  # the original error may be that the client is gone
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
        """Cancel the turn at once. If only the disk write is left, only the answer changes."""
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
        """Cancel one tool call, and let the turn continue. Return whether the call was running."""
        call = self.turn.calls.find(tool_call_id)
        return call is not None and call.cancel()

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a server's model request once the user has agreed. Raises RpcError and McpServerError."""
        function = self._program.on_sample
        if function is None:
            raise RpcError(ErrorCode.INVALID_REQUEST, "this agent has no model to answer the server's request")
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
            content: Any = answer.get("content")
            if isinstance(content, dict) and isinstance(text := cast("dict[str, Any]", content).get("text"), str):
                await call.show(text)
                await call.raw_output({"output": text})
        return answer

    # ── running ─────────────────────────────────────────────────────────────────────────────────

    async def _run(self) -> v1.StopReason:
        beginning = asyncio.ensure_future(self._begin())
        try:
            await finish(beginning)
        except asyncio.CancelledError:
            beginning.result()  # a log that cannot be written is an error and not a cancellation
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
        """Wait until the function has ended, or has ignored its cancellation for too long."""
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
        forgotten = self._session.unawaited.pop_forgotten()
        if not self.turn.is_cancelled:
            self._program.report_unawaited(forgotten)
        # A cancelled turn ends as cancelled even if its function failed. Expected errors become the response. Any other
        # exception is a fault of the program, so its traceback is logged.
        if self.turn.is_cancelled:
            return self._cancelled(task)
        if task.cancelled():
            raise self._program.failed("its function raised CancelledError")
        error = task.exception()
        if error is None:
            self.turn.finish("the turn ended before this finished")
            return task.result()
        if isinstance(error, CallCancelledError):
            self.turn.finish(CANCELLED)
            return "end_turn"  # no failure: the user stopped the function's work
        if isinstance(error, RpcError | LogError | ConnectionClosedError):
            raise error
        if isinstance(error, DragomanError):
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error)) from error
        _log.error("the function for a prompt failed", exc_info=error)
        raise self._program.failed(explain(error)) from error

    def _cancelled(self, task: "asyncio.Task[v1.StopReason]") -> v1.StopReason:
        if not task.done():
            _log.warning("a function still runs %g s after its turn was cancelled; it is abandoned", GRACE_S)
            task.add_done_callback(_log_failure)
        elif not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, LogError):
                raise error
            _log.warning("a function failed after its turn was cancelled", exc_info=error)
        self.turn.finish("cancelled")
        return "cancelled"

    async def _answer(self) -> v1.StopReason:
        # The hooks come first. Then a slash command answers, or fills in the prompt for the function. Without one, the
        # function answers the prompt itself.
        session, turn = self._session, self.turn
        for hook in self._program.on_turn:
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
            if answered or not command.fills_prompt:
                return "end_turn"
            if self.turn.command is None:  # the command made an ordinary prompt of it
                await self._set_title()
        session.memory.message_count += 1
        if self._program.on_prompt is None:
            raise _no_function(self._program)
        return await call_function(self._program.on_prompt, turn)

    async def _run_command(self, function: "PromptFunction") -> bool:
        """Run a command. Return whether it was refused, because the refusal is then the answer."""
        try:
            await call_function(function, self.turn)
        except InvalidParamsError as refusal:
            await self.turn.say(refusal.problem)
        except (RpcError, LogError, ConnectionClosedError):
            raise
        except DragomanError as refusal:
            await self.turn.say(str(refusal))
        else:
            return False
        return True

    # ── the session log ─────────────────────────────────────────────────────────────────────────

    async def _begin(self) -> None:
        """Log the prompt. Echo it to the client only if the client wants that."""
        session, prompt = self._session, self.turn.prompt
        session.updates.record("turn", _START)
        message_id = read_message_name(self._meta) or str(uuid.uuid4())
        for block in prompt:
            chunk = v1.UserMessageChunk(content=_redacted(block), message_id=message_id)
            if session.client.wants_echo:
                await session.updates.send(chunk)
            else:
                session.updates.record_update(chunk)
        if not names_prompt(prompt) and not self._commands.names_command(session, prompt):
            await self._set_title()

    async def _set_title(self) -> None:
        """Make the first prompt that is not a command the title."""
        if self._session.title is None:
            await self._session.set_title(_title(self.turn.prompt))

    def _rest_of_state(self) -> bytes | None:
        """Return the state after a failure, or None if it cannot be saved, which is then a secondary problem."""
        try:
            return self._session.memory.encode_state()
        except DragomanError:
            return None

    def _record_end(self, outcome: str, state: bytes | None) -> None:
        session, memory = self._session, self._session.memory
        session.log.facts.title, session.log.facts.message_count = memory.title, memory.message_count
        session.updates.record("turn", turn_end(memory, outcome, state))
        session.updates.flush()


def _redacted(block: v1.ContentBlock) -> v1.ContentBlock:
    """Return a block of a prompt as it is logged: without the secrets of a server that the user adds."""
    if not isinstance(block, v1.TextContent) or (text := hide_command_secrets(block.text)) == block.text:
        return block
    return msgspec.structs.replace(block, text=text)


async def call_function(function: "PromptFunction", turn: Turn) -> v1.StopReason:
    """Call a function of the program to answer. Raises its errors, and TypeError for a wrong result."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        answer = function(turn)
        if inspect.isasyncgen(answer):
            async with aclosing(answer) as pieces:
                async for piece in cast("AsyncGenerator[Any]", pieces):
                    await turn.say(piece)
            return "end_turn"
        if not inspect.isawaitable(answer):
            raise TypeError(f"{name} must be a coroutine function or an async generator function; write `async def`")
        result: Any = await answer
    except SystemExit as error:
        raise RuntimeError(
            f"{name} called sys.exit({error.code!r}); an agent exits when its client disconnects"
        ) from error
    if result is None:
        return "end_turn"
    if isinstance(result, str) and result in _STOP_REASONS:
        return cast("v1.StopReason", result)
    shown = one_line(repr(result), 80)
    raise TypeError(f"{name} returned {shown}; expected None or one of {', '.join(_STOP_REASONS)}")


class _LoopWatch:
    """Logs a warning if the event loop was blocked during a turn."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._next()

    def _next(self) -> None:
        self._due = self._loop.time() + BLOCKED_S
        self._timer = self._loop.call_later(BLOCKED_S, self._check)

    def _check(self) -> None:
        self._warn()
        self._next()

    def _warn(self) -> None:
        late_s = self._loop.time() - self._due
        if late_s > BLOCKED_S:
            _log.warning(
                "the event loop was blocked for about %.0f s, so the turn could not be cancelled; "
                "use await asyncio.to_thread(…) for slow work",
                late_s,
            )

    def stop(self) -> None:
        self._warn()
        self._timer.cancel()


def _no_function(program: AgentProgram) -> RpcError:
    problem = f"{program.info.name} has no function for prompts; decorate one with @agent.on_prompt"
    return RpcError(ErrorCode.INTERNAL_ERROR, problem)


def _log_failure(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("an abandoned function failed", exc_info=error)


def _usage(spent: TokenUsage) -> v1.Usage | None:
    """Return the tokens of a turn, or None if none were counted."""
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
    """Return a server's model request as text. Raises RpcError if it cannot be read."""
    lines = [f"system: {params['systemPrompt']}"] if params.get("systemPrompt") else []
    try:
        for message in params["messages"]:
            content = message["content"]
            blocks = cast("list[dict[str, Any]]", content if isinstance(content, list) else [content])
            lines.append(f"{message['role']}: {' '.join(_text_of(block) for block in blocks)}")
    except (AttributeError, KeyError, TypeError) as error:
        raise RpcError(ErrorCode.INVALID_PARAMS, f"these messages cannot be read: {error}") from None
    text = "\n".join(lines)
    cut = len(text) - MAX_SHOWN_CHARS
    return text if cut <= 0 else f"{text[:MAX_SHOWN_CHARS]}… and {cut:,} more"


def _text_of(block: dict[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else f"[{block.get('type', 'no text')}]"
