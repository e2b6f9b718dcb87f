"""The tool that shows a plan."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.agent.turns.prepared_call import PreparedCall, ShowProgress, ToolOutcome
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.protocol import v1

MAX_ENTRIES = 100
"""A plan must be short enough for the user to read."""

ShowPlan = Callable[[v1.Plan], Awaitable[None]]


class PlanStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a plan."""

    content: Annotated[str, Meta(min_length=1, description="What to do.")]
    priority: v1.PlanEntryPriority
    status: v1.PlanEntryStatus


class UpdatePlanArguments(Arguments, frozen=True):
    """The arguments of `update_plan`."""

    entries: Annotated[
        list[PlanStep], Meta(max_length=MAX_ENTRIES, description="All steps; they replace the earlier plan.")
    ]


class UpdatePlan:
    """Shows the plan and its progress to the user. Needs no approval."""

    title = "Update the plan"
    kind: v1.ToolKind = "think"

    def __init__(self, show_plan: ShowPlan) -> None:
        self.definition = ToolDefinition(
            "update_plan",
            "Show the user your plan. Send all steps each time, with the status of each.",
            make_schema(UpdatePlanArguments),
        )
        self._show_plan = show_plan

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the plan. Raises ToolError."""
        asked = decode(UpdatePlanArguments, arguments, self.definition.name)

        async def run(_: ShowProgress) -> ToolOutcome:
            await self._show_plan(v1.Plan(entries=[_entry(each) for each in asked.entries]))
            return ToolOutcome(_summary(asked.entries))

        return PreparedCall(self.title, self.kind, run=run)


def _entry(entry: PlanStep) -> v1.PlanEntry:
    return v1.PlanEntry(content=entry.content, priority=entry.priority, status=entry.status)


def _summary(entries: list[PlanStep]) -> str:
    done = sum(entry.status == "completed" for entry in entries)
    return f"the plan is shown: {done} of {len(entries)} done"
