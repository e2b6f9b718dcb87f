"""One tool call of a turn. It is announced, may ask for permission, is shown while it runs, and always ends.

    async with turn.tool("Write notes.txt", kind="edit", locations=["notes.txt"]) as call:
        await call.show_diff("notes.txt", old=await turn.read_text("notes.txt", default=None), new=text)
        if await call.allowed():
            await turn.write_text("notes.txt", text)

A call that may change something is `pending` until `allowed`. Calls of other kinds start at once. A call ends as
`completed`, or as `failed` with the reason: an exception, a denial, or the end of its turn.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Self, cast, get_args

import msgspec

from dragoman.agent.sessions.permission import PermissionDecision
from dragoman.agent.sessions.session import Session
from dragoman.agent.turns.call_run import CallBody, CallCancelledError, PreparedRun
from dragoman.agent.turns.prepared_call import (
    Action,
    PreparedCall,
    ProposedCall,
    TargetChangedError,
    ToolError,
    ToolOutcome,
    text_content,
)
from dragoman.agent.turns.unawaited import must_await
from dragoman.errors import ConnectionClosedError, DragomanError, LogError
from dragoman.protocol import v1
from dragoman.telemetry.operation import Operation, arguments_attribute, result_attribute, trace_tool_call
from dragoman.text import one_line, visible

MAX_PREPARATIONS = 3
"""How often a call is prepared again because its target changed. More changes than this are not accidental."""

MAX_REASON = 300
"""The characters of an exception's message that the client sees."""

_RUN_AT_ONCE = ("read", "search", "think")
_WRITES = ("edit", "delete", "move")
_KINDS = get_args(v1.ToolKind)

CANCELLED = "cancelled"
"""The reason for the end of a call that was cancelled, with or without its turn."""

DENIED = "permission_denied"
"""The error type, in traces, of a call that was denied."""

# Version 1 cannot express these states. `protocol.translate` passes them to clients of version 2.
_IS_CANCELLED: dict[str, Any] = {"status": CANCELLED}
_CAN_BE_CANCELLED: dict[str, Any] = {"capabilities": {"cancel": {}}}
_CANNOT_BE_CANCELLED: dict[str, Any] = {"capabilities": None}

Prepare = Callable[[], Awaitable[PreparedCall]]
ToolLocation = str | tuple[str, int] | v1.ToolCallLocation
ToolContent = str | v1.ContentBlock | v1.ToolCallContent


class OpenToolCalls:
    """The calls of one turn without a final status. `check` raises if the turn is cancelled or over."""

    def __init__(self, check: Callable[[], None]) -> None:
        self.check = check
        self._calls: dict[str, ToolCallHandle] = {}

    def add(self, call: "ToolCallHandle") -> None:
        """Add an announced call."""
        self._calls[call.id] = call

    def remove(self, call: "ToolCallHandle") -> None:
        """Remove a call that has ended."""
        self._calls.pop(call.id, None)

    def find(self, call_id: str) -> "ToolCallHandle | None":
        """Return an open call by its ID."""
        return self._calls.get(call_id)

    def find_shown(self, path: str, default: Any) -> Any:
        """Return the old text of a file from the newest open call that shows its diff, or `default`."""
        return next((call.shown[path] for call in reversed(self._calls.values()) if path in call.shown), default)

    def forget_shown(self, path: str) -> None:
        """Forget the shown text of a file, because the file was written."""
        call = next((call for call in reversed(self._calls.values()) if path in call.shown), None)
        if call is not None:
            del call.shown[path]

    def end(self, reason: str) -> None:
        """End all calls as failed, and keep the content that they have shown. Raises LogError."""
        for call in list(self._calls.values()):
            call.fail_now(reason)


class ToolCallHandle:
    """A tool call. `async with` announces it and ends it."""

    def __init__(self, session: Session, calls: OpenToolCalls, call: v1.ToolCall) -> None:
        self.unawaited = session.unawaited
        self._session = session
        self._calls = calls
        self._call = call
        self._content: list[v1.ToolCallContent] = list(call.content or [])
        self._progress: Sequence[v1.ToolCallContent] = ()
        self._raw_output: Any = None
        self.action: Action | None = None
        """The action that `allowed` asks about, if it does not follow from the kind and the locations."""
        self.denial: str | None = None
        """Why the call was denied, once this is decided."""
        self.shown: dict[str, str | None] = {}
        """The old texts of files whose diffs were shown and that are not written yet."""
        self._running: PreparedRun | CallBody | None = None
        """The running work of the call, which can be cancelled without its turn."""
        self._announced = False
        self.has_ended = False
        """Whether the call has a final status."""

    @property
    def id(self) -> str:
        """The ID, unique in the session."""
        return self._call.tool_call_id

    def __repr__(self) -> str:
        return f"ToolCallHandle({self._call.title!r}, {'ended' if self.has_ended else self._call.status})"

    async def __aenter__(self) -> Self:
        if self._session.client.cancels_calls:
            self._call = msgspec.structs.replace(self._call, meta=_meta(_CAN_BE_CANCELLED))
        await self.announce()
        run = self._running = CallBody(self._trace())
        run.operation.begin()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        run, self._running = self._running, None
        body = run if isinstance(run, CallBody) else None
        is_call_cancelled = body is not None and body.undo_cancel(error)
        try:
            if error is None:
                await self.end()
            else:
                with suppress(LogError, ConnectionClosedError):  # the turn must receive the original error
                    self.fail_now(CANCELLED if isinstance(error, asyncio.CancelledError) else explain(error))
        finally:
            if body is not None:
                self._record_body(body.operation)
                body.operation.end(error)
        if is_call_cancelled:
            raise CallCancelledError("the user cancelled this tool call") from None

    def _record_body(self, operation: Operation) -> None:
        if self.denial is not None:
            operation.fail(DENIED, self.denial)
        if operation.captures_content:
            operation.set_attributes(arguments_attribute(self._call.raw_input) | result_attribute(self._raw_output))

    # ── showing ─────────────────────────────────────────────────────────────────────────────────

    async def announce(self) -> None:
        """Send the call to the client, once. `async with` calls this."""
        if not self._announced:
            self._calls.check()
            waits = self._session.updates.put(self._call)
            self._announced = True
            self._calls.add(self)
            if waits:
                await self._session.updates.flow()

    @must_await
    async def show(self, *content: ToolContent) -> None:
        """Add text or other content to the shown content of the call."""
        shown = [*self._content, *(_as_content(each) for each in content)]
        waits = self._put(content=shown)
        self._content, self._progress = shown, ()  # kept only after it was encoded, because the end shows it again
        if waits:
            await self._session.updates.flow()

    @must_await
    async def show_diff(self, path: str, *, old: str | None, new: str) -> None:
        """Show a change of a file, which the user can judge before allowing it. `old` is None for a new file.

        `old` is the whole text. Until the call ends, `Turn.write_text` writes the file only if it still has this text.
        """
        place = self._session.absolute(path)
        self.shown[place] = old
        await self.show(v1.Diff(path=place, old_text=old, new_text=new))

    @must_await
    async def show_terminal(self, terminal_id: str) -> None:
        """Add a terminal of the client, which the client shows with its output."""
        await self.show(v1.Terminal(terminal_id=terminal_id))

    @must_await
    async def progress(self, *content: ToolContent) -> None:
        """Show progress below the shown content. The next `progress` or `show` replaces it."""
        below = [_as_content(each) for each in content]
        waits = self._put(status=self._start_status(), content=[*self._content, *below])
        self._progress = below
        if waits:
            await self._session.updates.flow()

    @must_await
    async def raw_output(self, value: Any) -> None:
        """Set the result as JSON, for programs."""
        waits = self._put(raw_output=value)
        self._raw_output = value
        if waits:
            await self._session.updates.flow()

    async def propose(self, call: ProposedCall, *, raw_input: Any = None) -> None:
        """Show the prepared call in place of the announced one."""
        self._content = list(call.content)
        self._call = msgspec.structs.replace(
            self._call,
            title=call.title,
            kind=call.kind,
            locations=list(call.locations),
            content=list(call.content),
            raw_input=raw_input if raw_input is not None else self._call.raw_input,
        )
        if not self._announced:
            await self.announce()
            return
        await self._update(
            title=call.title,
            kind=call.kind,
            locations=list(call.locations),
            content=list(call.content),
            raw_input=self._call.raw_input,
        )

    async def _update(self, **changes: Any) -> None:
        if self._put(**changes):
            await self._session.updates.flow()

    def _put(self, **changes: Any) -> bool:
        """Send changes of a call that has not ended. Return whether to wait for the client."""
        return not self.has_ended and self._session.updates.put(v1.ToolCallProgress(tool_call_id=self.id, **changes))

    def _start_status(self) -> v1.ToolCallStatus | None:
        """Return the status for the first update of a running call, and None after that."""
        if self._call.status == "in_progress":
            return None
        self._call = msgspec.structs.replace(self._call, status="in_progress")
        return "in_progress"

    # ── permission ──────────────────────────────────────────────────────────────────────────────

    @must_await
    async def allowed(self) -> bool:
        """Return whether the call may run: by the mode, by an earlier decision, or by asking the user.

        Reads inside the session's directories are always allowed. "Always" covers every edit of the same paths, exactly
        the same command, or every call with the same name. A call that is not allowed ends as failed.
        """
        decision = await self.decide(await self._proposal())
        if decision.allowed and (status := self._start_status()) is not None:
            # Do not wait for the client, because nothing may happen between the decision and the run.
            self._session.updates.put(v1.ToolCallProgress(tool_call_id=self.id, status=status))
        return decision.allowed

    async def decide(self, call: ProposedCall) -> PermissionDecision:
        """Decide on a call, and log the user's decision before anything is done. Raises LogError."""
        self._calls.check()
        decision = await self._session.permission.decide(self.id, call, self._call.raw_input)
        if decision.asked:
            record: dict[str, Any] = {
                "toolCallId": self.id,
                "action": call.action,
                "optionId": decision.option_id,
                "allowed": decision.allowed,
            }
            if decision.remembered is not None:
                record["remember"] = decision.remembered
            self._session.updates.record("permission", msgspec.json.encode(record))
            await self._session.log.sync()
        self.denial = None if decision.allowed else decision.reason
        return decision

    async def choose(self, options: Sequence[v1.PermissionOption]) -> str | None:
        """Ask the user to choose one of the program's options. Return None without a choice or if asking fails."""
        self._calls.check()
        call = self._call
        request = v1.ToolCallUpdate(
            tool_call_id=self.id,
            title=call.title,
            name=call.name,
            kind=call.kind,
            content=list(self._content),
            locations=call.locations,
        )
        return await self._session.ask_permission(request, list(options))

    async def _proposal(self) -> ProposedCall:
        # The kind of the call decides whether it only reads, and its locations whether it stays inside the session.
        call = self._call
        paths = [location.path for location in call.locations or []]
        targets = [await self._session.workspace.find(path) for path in paths]
        kind = call.kind or "other"
        return ProposedCall(
            call.title,
            kind,
            reads_only=kind in _RUN_AT_ONCE and self.action is None,
            inside=all(target.inside for target in targets),
            action=self.action or self._action(kind, [target.path for target in targets]),
            always_asks=any(target.active for target in targets),
            locations=call.locations or [],
            content=self._content,
        )

    def _action(self, kind: str, paths: Sequence[str]) -> Action:
        if kind in _WRITES and paths:
            return Action("write", "\0".join(paths), "" if kind == "edit" else kind)
        if kind in _RUN_AT_ONCE and paths:
            return Action("read", "\0".join(paths))
        if kind == "execute" and (command := _exact_command(self._call.raw_input)):
            return Action("command", command, self._session.cwd)
        return Action("tool", self._call.name or self._call.title, "the agent's own")

    # ── running and ending ──────────────────────────────────────────────────────────────────────

    async def run(self, call: PreparedCall, *, again: Prepare | None = None) -> ToolOutcome:
        """Ask, check, run and end a prepared call that was shown. `again` prepares it again if its target changed."""
        return await self._traced(self._run(call, again))

    async def execute(self, call: PreparedCall) -> ToolOutcome:
        """Run an allowed prepared call, and end it."""
        return await self._traced(self._execute(call))

    async def _traced(self, work: Coroutine[Any, Any, ToolOutcome]) -> ToolOutcome:
        with self._trace() as operation:
            outcome = await work
            if operation.captures_content:
                operation.set_attributes(arguments_attribute(self._call.raw_input) | result_attribute(outcome.text))
            if outcome.failed:
                operation.fail("tool_error" if self.denial is None else DENIED, outcome.text)
            return outcome

    def _trace(self) -> Operation:
        return trace_tool_call(self._call.name or self._call.kind or "other", self.id)

    async def _run(self, call: PreparedCall, again: Prepare | None) -> ToolOutcome:
        # Each round asks and then checks. If the target changed after the approval, the next round asks again.
        for _ in range(MAX_PREPARATIONS):
            decision = await self.decide(call)
            if not decision.allowed:
                return await self.end(_failed(f"not allowed: {decision.reason}"))
            try:
                await call.check()
            except ToolError as failure:
                return await self.end(_failed(str(failure)))
            except TargetChangedError as change:
                if again is None:
                    return await self.end(_failed(str(change)))
                try:
                    call = await again()
                except ToolError as failure:
                    return await self.end(_failed(str(failure)))
                await self.propose(call)
            else:
                return await self._execute(call)
        return await self.end(_failed("the file keeps changing, so it was not edited"))

    async def _execute(self, call: PreparedCall) -> ToolOutcome:
        # Do not wait for the client, because nothing may happen between the check and the run.
        meta = _meta(_CAN_BE_CANCELLED if self._session.client.cancels_calls else {})
        self._session.updates.put(v1.ToolCallProgress(tool_call_id=self.id, status="in_progress", meta=meta))

        async def progress(content: Sequence[v1.ToolCallContent]) -> None:
            self._content = list(content)
            await self._update(content=list(content))

        before = self._running
        run = self._running = PreparedRun(asyncio.ensure_future(call.run(progress)))
        try:
            outcome = await run.work
        except (ToolError, TargetChangedError) as failure:
            outcome = _failed(str(failure))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not run.is_cancelled or (task is not None and task.cancelling()):
                raise  # the whole turn is cancelled
            outcome = ToolOutcome("cancelled by the user", [*self._content, text_content(CANCELLED)], failed=True)
            return await self.end(outcome, is_cancelled=True)
        finally:
            self._running = before
        return await self.end(outcome)

    def cancel(self) -> bool:
        """Cancel a running call and let its turn continue. Return whether the call was running.

        The body of an `async with` is cancelled as usual, and `CallCancelledError` is raised after it.
        """
        return self._running is not None and self._running.cancel()

    async def end(
        self, outcome: ToolOutcome | None = None, *, raw_input: Any = None, is_cancelled: bool = False
    ) -> ToolOutcome:
        """End the call once: with an outcome, as failed if it was denied, or else with the content it has shown."""
        outcome = outcome or self._own_outcome()
        if not self.has_ended:
            await self.announce()
            await self._session.updates.send(self._end(outcome, raw_input=raw_input, is_cancelled=is_cancelled))
        return outcome

    def fail_now(self, reason: str) -> None:
        """End the call as failed without waiting for the client, and keep its shown content. Raises LogError."""
        if not self.has_ended and self._announced:
            shown = [*self._content, *self._progress, text_content(reason)]
            outcome = ToolOutcome(reason, shown, failed=True)
            self._session.updates.put(self._end(outcome, is_cancelled=reason == CANCELLED))

    def _own_outcome(self) -> ToolOutcome:
        if self.denial is not None:
            reason = f"not allowed: {self.denial}"
            return ToolOutcome(reason, [*self._content, text_content(reason)], self._raw_output, failed=True)
        shown = [part.content for part in self._content if isinstance(part, v1.Content)]
        text = "\n".join(block.text for block in shown if isinstance(block, v1.TextContent))
        return ToolOutcome(text, self._content, self._raw_output)

    def _end(self, outcome: ToolOutcome, *, raw_input: Any = None, is_cancelled: bool = False) -> v1.ToolCallProgress:
        """Mark the call as ended before its end is sent, so that a cancellation in between does not repeat the end."""
        self.has_ended = True
        self._calls.remove(self)
        content = list(outcome.content) or ([text_content(outcome.text)] if outcome.text else [])
        raw_output = outcome.raw_output
        if raw_output is None and outcome.text:
            raw_output = {"error" if outcome.failed else "output": outcome.text}
        return v1.ToolCallProgress(
            tool_call_id=self.id,
            status="failed" if outcome.failed else "completed",
            content=content or None,
            raw_input=raw_input,
            raw_output=raw_output,
            meta=_meta(
                (_IS_CANCELLED if is_cancelled else {})
                | (_CANNOT_BE_CANCELLED if self._session.client.cancels_calls else {})
            ),
        )


def _meta(fields: dict[str, Any]) -> dict[str, Any] | None:
    return {"dragoman/v2": fields} if fields else None


def new_call(
    session: Session,
    title: str,
    *,
    kind: v1.ToolKind,
    name: str | None,
    raw_input: Any,
    locations: Sequence[ToolLocation],
    asks: bool | None,
    call_id: str | None = None,
) -> v1.ToolCall:
    """Build the announcement of a call. `asks` says whether it waits for permission, by default by its kind."""
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is not a tool call kind; expected one of {', '.join(_KINDS)}")
    waits = kind not in _RUN_AT_ONCE if asks is None else asks
    return v1.ToolCall(
        tool_call_id=call_id or f"call-{uuid.uuid4()}",
        title=visible(title),
        name=name,
        kind=kind,
        status="pending" if waits else "in_progress",
        locations=[_as_location(session, location) for location in locations],
        raw_input=raw_input,
    )


def explain(error: BaseException) -> str:
    """Return an exception as one line: dragoman's errors by their message, others with their type."""
    while isinstance(error, BaseExceptionGroup):  # e.g. from a task group
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    text = one_line(str(error), MAX_REASON)
    if isinstance(error, DragomanError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _exact_command(raw_input: Any) -> str:
    """Return the whole input that determines a command's effect, including its directory. Empty without a command."""
    arguments = cast("dict[str, Any]", raw_input) if isinstance(raw_input, dict) else {}
    command = arguments.get("command")
    if isinstance(command, str) and len(arguments) == 1:
        return command
    return msgspec.json.encode(arguments, order="sorted").decode() if command else ""


def _failed(reason: str) -> ToolOutcome:
    return ToolOutcome(reason, failed=True)


def _as_content(content: ToolContent) -> v1.ToolCallContent:
    if isinstance(content, str):
        return text_content(content)
    if isinstance(content, v1.Content | v1.Diff | v1.Terminal):
        return content
    if not isinstance(content, msgspec.Struct):
        raise TypeError(f"a tool call can show text or a content block, not {type(content).__name__}")
    return v1.Content(content=content)


def _as_location(session: Session, location: ToolLocation) -> v1.ToolCallLocation:
    match location:
        case str():
            return v1.ToolCallLocation(path=session.absolute(location))
        case (path, line):
            return v1.ToolCallLocation(path=session.absolute(path), line=line)
        case _:
            return location
