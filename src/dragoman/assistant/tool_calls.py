"""The tool calls of a reply: announced, prepared, decided on, run, and every one of them finished."""

import asyncio
from collections.abc import Mapping, Sequence

from dragoman.agent.prepared_call import PreparedCall, ToolFailure, ToolOutcome
from dragoman.agent.tool_call import ToolCallHandle
from dragoman.agent.turn import Turn
from dragoman.assistant.models.message import ToolResult, ToolUse
from dragoman.assistant.tools.tool import Tool
from dragoman.text.match import near_matches

MAX_NAMED = 40
"""Tools that a model is told of when it asks for one that there is not."""


class ToolCallRunner:
    """Runs the calls of one turn; those that only read run side by side, results keep their order."""

    def __init__(self, turn: Turn) -> None:
        self.tools: Mapping[str, Tool] = {}
        """Those that the model was last given."""
        self._turn = turn

    async def announce(self, call_id: str, name: str) -> None:
        """Tell the client that a call is coming whose arguments are not whole yet, or cannot be used."""
        await self._handle(call_id, name).announce()

    async def run(self, uses: Sequence[ToolUse]) -> list[ToolResult]:
        """Run all of them and return their results, in order."""
        results: dict[str, ToolResult] = {}
        reading: list[tuple[ToolUse, ToolCallHandle, PreparedCall]] = []
        for use in uses:
            call = self._handle(use.id, use.name)
            prepared = await self._prepare(use, call)
            if isinstance(prepared, PreparedCall) and prepared.reads_only and prepared.inside:
                reading.append((use, call, prepared))
                continue
            results |= await self._run_together(reading)
            reading = []
            if isinstance(prepared, PreparedCall):
                outcome = await call.run(prepared, again=lambda use=use: self._find(use).prepare(use.arguments))
            else:
                outcome = prepared
            results[use.id] = _result(use, outcome)
        results |= await self._run_together(reading)
        return [results[use.id] for use in uses]

    def _handle(self, call_id: str, name: str) -> ToolCallHandle:
        """Return the call that was announced under an id, or a new one."""
        known = self._turn.calls.find(call_id)
        if known is not None:
            return known
        tool = self.tools.get(name)
        title, kind = (tool.title, tool.kind) if tool else (name, "other")
        return self._turn.tool(title, kind=kind, name=name, asks=True, call_id=call_id)

    async def _prepare(self, use: ToolUse, call: ToolCallHandle) -> PreparedCall | ToolOutcome:
        try:
            prepared = await self._find(use).prepare(use.arguments)
        except ToolFailure as failure:
            return await call.end(ToolOutcome(str(failure), failed=True), raw_input=use.arguments)
        await call.propose(prepared, raw_input=use.arguments)
        return prepared

    def _find(self, use: ToolUse) -> Tool:
        tool = self.tools.get(use.name)
        if tool is None:
            raise ToolFailure(f"there is no tool named {use.name} here; {_known(use.name, list(self.tools))}")
        if use.problem is not None:
            raise ToolFailure(use.problem)
        return tool

    async def _run_together(
        self, calls: Sequence[tuple[ToolUse, ToolCallHandle, PreparedCall]]
    ) -> dict[str, ToolResult]:
        try:
            async with asyncio.TaskGroup() as tasks:
                running = {use.id: (use, tasks.create_task(call.execute(prepared))) for use, call, prepared in calls}
        except BaseExceptionGroup as failures:
            # The turn gets the error of the first, as it would without the group.
            raise failures.exceptions[0] from None
        return {call_id: _result(use, task.result()) for call_id, (use, task) in running.items()}


def _result(use: ToolUse, outcome: ToolOutcome) -> ToolResult:
    return ToolResult(use.id, outcome.text, failed=outcome.failed, attachments=list(outcome.attachments))


def _known(name: str, tools: Sequence[str]) -> str:
    """Say which tools there are; of very many, those with a name like the one that was asked for."""
    if len(tools) <= MAX_NAMED:
        return f"the tools are: {', '.join(tools) or 'none'}"
    near = near_matches(name, tools, count=MAX_NAMED, cutoff=0.4)
    return f"of {len(tools):,} tools, these have a name like it: {', '.join(near) or 'none'}"
