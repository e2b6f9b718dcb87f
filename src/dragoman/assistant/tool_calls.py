"""The tool calls of a reply: announced, prepared, decided on, run, and every one of them finished."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.assistant.models.message import ToolResult, ToolUse
from dragoman.assistant.permission import Permission, PermissionDecision
from dragoman.assistant.tools.tool import PreparedCall, TargetChanged, Tool, ToolFailure, ToolOutcome, words
from dragoman.assistant.update_sender import UpdateSender
from dragoman.protocol import v1
from dragoman.text import visible
from dragoman.text.match import near_matches

MAX_PREPARATIONS = 3
"""How often a call is prepared anew because the world changed under it: more often than that is no accident."""

MAX_NAMED = 40
"""Tools that a model is told of when it asks for one that there is not."""


class ToolCallRunner:
    """Runs the calls of one turn; those that only read run side by side, results keep their order."""

    def __init__(self, updates: UpdateSender, permission: Permission) -> None:
        self.tools: Mapping[str, Tool] = {}
        """Those that the model was last given."""
        self._updates = updates
        self._permission = permission
        self._open: dict[str, Sequence[v1.ToolCallContent]] = {}
        """Calls that were announced and have no final status, with the output that each has shown."""

    async def announce(self, call_id: str, name: str) -> None:
        """Tell the client that a call is coming whose arguments are not whole yet, or cannot be used."""
        if call_id in self._open:
            return
        self._open[call_id] = ()
        tool = self.tools.get(name)
        title, kind = (tool.title, tool.kind) if tool else (name, "other")
        title = visible(title)
        await self._updates.send(v1.ToolCall(tool_call_id=call_id, title=title, name=name, kind=kind, status="pending"))

    async def run(self, uses: Sequence[ToolUse]) -> list[ToolResult]:
        """Run all of them and return their results, in order."""
        results: dict[str, ToolResult] = {}
        reading: list[tuple[ToolUse, PreparedCall]] = []
        for use in uses:
            prepared = await self._prepare(use)
            if isinstance(prepared, PreparedCall) and prepared.reads_only and prepared.inside:
                reading.append((use, prepared))
                continue
            results |= await self._run_together(reading)
            reading = []
            results[use.id] = await self._run_alone(use, prepared) if isinstance(prepared, PreparedCall) else prepared
        results |= await self._run_together(reading)
        return [results[use.id] for use in uses]

    def end_open(self, reason: str) -> None:
        """Give every call that has no final status one, below the output that it has shown. Raises LogFailed."""
        for call_id, shown in list(self._open.items()):
            content = [*shown, words(reason)]
            self._updates.put(self._end(call_id, ToolOutcome(reason, content, failed=True)))

    async def _prepare(self, use: ToolUse) -> PreparedCall | ToolResult:
        try:
            prepared = await self._find(use).prepare(use.arguments)
        except ToolFailure as failure:
            return await self._fail(use, str(failure))
        await self._show(use, prepared)
        return prepared

    def _find(self, use: ToolUse) -> Tool:
        tool = self.tools.get(use.name)
        if tool is None:
            raise ToolFailure(f"there is no tool named {use.name} here; {_known(use.name, list(self.tools))}")
        if use.problem is not None:
            raise ToolFailure(use.problem)
        return tool

    async def _run_together(self, calls: Sequence[tuple[ToolUse, PreparedCall]]) -> dict[str, ToolResult]:
        try:
            async with asyncio.TaskGroup() as tasks:
                running = {use.id: tasks.create_task(self._execute(use, prepared)) for use, prepared in calls}
        except BaseExceptionGroup as failures:
            raise failures.exceptions[
                0
            ] from None  # the turn gets the error of the first, as it would without the group
        return {call_id: task.result() for call_id, task in running.items()}

    async def _run_alone(self, use: ToolUse, prepared: PreparedCall) -> ToolResult:
        for _ in range(MAX_PREPARATIONS):
            decision = await self._permission.decide(use.id, prepared, use.arguments)
            await self._record(use, prepared, decision)
            if not decision.allowed:
                return await self._fail(use, f"not allowed: {decision.reason}")
            try:
                await prepared.check()
            except ToolFailure as failure:
                return await self._fail(use, str(failure))
            except TargetChanged:
                again = await self._prepare(use)
                if not isinstance(again, PreparedCall):
                    return again
                prepared = again
            else:
                return await self._execute(use, prepared)
        return await self._fail(use, "what was to be changed keeps changing; it was left alone")

    async def _execute(self, use: ToolUse, prepared: PreparedCall) -> ToolResult:
        # Without waiting for the client: nothing may come between the check and the run.
        self._updates.put(v1.ToolCallProgress(tool_call_id=use.id, status="in_progress"))

        async def progress(content: Sequence[v1.ToolCallContent]) -> None:
            self._open[use.id] = content
            await self._updates.send(v1.ToolCallProgress(tool_call_id=use.id, content=list(content)))

        try:
            outcome = await prepared.run(progress)
        except (ToolFailure, TargetChanged) as failure:
            outcome = ToolOutcome(str(failure), failed=True)
        await self._updates.send(self._end(use.id, outcome))
        return ToolResult(use.id, outcome.text, failed=outcome.failed, attachments=list(outcome.attachments))

    async def _fail(self, use: ToolUse, reason: str) -> ToolResult:
        await self.announce(use.id, use.name)
        await self._updates.send(self._end(use.id, ToolOutcome(reason, failed=True), raw_input=use.arguments))
        return ToolResult(use.id, reason, failed=True)

    async def _show(self, use: ToolUse, prepared: PreparedCall) -> None:
        """Show the effect of a call: in its announcement, or in an update when it was announced before."""
        shown: dict[str, Any] = {
            "tool_call_id": use.id,
            "title": prepared.title,
            "kind": prepared.kind,
            "locations": list(prepared.locations),
            "content": list(prepared.content),
            "raw_input": use.arguments,
        }
        if use.id in self._open:
            await self._updates.send(v1.ToolCallProgress(**shown))
        else:
            self._open[use.id] = ()
            await self._updates.send(v1.ToolCall(name=use.name, status="pending", **shown))

    def _end(
        self, call_id: str, outcome: ToolOutcome, *, raw_input: dict[str, Any] | None = None
    ) -> v1.ToolCallProgress:
        """Count a call as ended before its end is sent: a cancellation in the middle of that does not unsend it."""
        self._open.pop(call_id, None)
        content = list(outcome.content) or [words(outcome.text)]
        raw_output = outcome.raw_output
        if raw_output is None:
            raw_output = {"error" if outcome.failed else "output": outcome.text}
        return v1.ToolCallProgress(
            tool_call_id=call_id,
            status="failed" if outcome.failed else "completed",
            content=content,
            raw_input=raw_input,
            raw_output=raw_output,
        )

    async def _record(self, use: ToolUse, prepared: PreparedCall, decision: PermissionDecision) -> None:
        """Log a decision that a person made, and see that it reaches the disk before anything is done."""
        if not decision.asked:
            return
        record: dict[str, Any] = {
            "toolCallId": use.id,
            "deed": prepared.action,
            "optionId": decision.option_id,
            "allowed": decision.allowed,
        }
        if decision.remembered is not None:
            record["remember"] = decision.remembered
        self._updates.record("permission", msgspec.json.encode(record))
        await self._updates.log.sync()


def _known(name: str, tools: Sequence[str]) -> str:
    """Say which tools there are; of very many, those with a name like the one that was asked for."""
    if len(tools) <= MAX_NAMED:
        return f"the tools are: {', '.join(tools) or 'none'}"
    near = near_matches(name, tools, count=MAX_NAMED, cutoff=0.4)
    return f"of {len(tools):,} tools, these have a name like it: {', '.join(near) or 'none'}"
