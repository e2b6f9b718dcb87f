"""Plans: one of a session in version 1, any number by id in version 2, of items, of Markdown or in a file.

A client of version 1 that advertises `plan` takes plans as version 2 has them. Any other takes one list of entries, so
that it is shown the entries of all plans, in the order in which the plans came; a plan of Markdown or in a file is one
entry there.
"""

from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Json,
    Object,
    as_object,
    carry,
    objects_in,
    restore,
    take_carried,
    without,
)

ONLY_PLAN = "plan"
"""The id of the plan of a version 1 agent, which has one and no id for it."""


def plan_to_v2(update: Object) -> Object:
    """Return the `plan` of version 1 as the `plan_update` of version 2."""
    bare, carried = take_carried(without(update, "sessionUpdate", "entries"), OF_V2)
    if "removed" in carried:
        return {"sessionUpdate": "plan_removed", **bare, "planId": carried["removed"]}
    plan = as_object(carried.get("plan")) or {
        "type": "items",
        "planId": ONLY_PLAN,
        "entries": entries_to_v2(update.get("entries")),
    }
    return {"sessionUpdate": "plan_update", **bare, "plan": plan}


def plan_update_to_v2(update: Object) -> Object:
    """Return the `plan_update` of version 1, which is unstable there, as that of version 2."""
    plan = as_object(update.get("plan"))
    if plan.get("type") == "items":
        plan = {**plan, "entries": entries_to_v2(plan.get("entries"))}
    return {**update, "plan": plan}


def entries_to_v2(entries: Json) -> list[Object]:
    """Return the entries of a plan of version 1 as version 2 has them."""
    return [restore(each, OF_V2) for each in objects_in(entries)]


def entries_to_v1(entries: Json) -> list[Object]:
    """Return the entries of a plan with the priorities and statuses that version 1 has."""
    return [_entry_to_v1(each) for each in objects_in(entries)]


def _entry_to_v1(entry: Object) -> Object:
    entry = restore(entry, OF_V1)
    carried: Object = {}
    if entry.get("priority") not in ("high", "medium", "low"):
        carried["priority"] = entry.get("priority")
    if entry.get("status") not in ("pending", "in_progress", "completed"):
        carried["status"] = entry.get("status")
    nearest = {name: {"priority": "medium", "status": "completed"}[name] for name in carried}
    return carry({**entry, **nearest}, OF_V2, carried)


class PlansForV1:
    """The plans of one session, told to a version 1 client; `takes_plans` is its capability `plan`."""

    def __init__(self, *, takes_plans: bool) -> None:
        self._takes_plans = takes_plans
        self._plans: dict[str, Object] = {}

    def update(self, update: Object) -> Object:
        """Return the session update for a `plan_update` of version 2."""
        plan = as_object(update.get("plan"))
        plan_id = str(plan.get("planId"))
        rest = without(update, "sessionUpdate", "plan")
        is_known = plan.get("type") in ("items", "markdown", "file")
        if self._takes_plans and is_known and plan_id != ONLY_PLAN:
            if plan["type"] == "items":
                plan = {**plan, "entries": entries_to_v1(plan.get("entries"))}
            return {"sessionUpdate": "plan_update", **rest, "plan": plan}
        self._plans[plan_id] = plan
        made = {**rest, **self._all_entries()}
        return made if plan_id == ONLY_PLAN and plan.get("type") == "items" else carry(made, OF_V2, {"plan": plan})

    def remove(self, update: Object) -> Object:
        """Return the session update for a `plan_removed` of version 2."""
        plan_id = str(update.get("planId"))
        if self._takes_plans and plan_id not in self._plans:
            return update
        self._plans.pop(plan_id, None)
        rest = without(update, "sessionUpdate", "planId")
        return carry({**rest, **self._all_entries()}, OF_V2, {"removed": plan_id})

    def _all_entries(self) -> Object:
        entries = [entry for plan in self._plans.values() for entry in _entries_of(plan)]
        return {"sessionUpdate": "plan", "entries": entries}


def _entries_of(plan: Object) -> list[Object]:
    if plan.get("type") == "items":
        return entries_to_v1(plan.get("entries"))
    words = plan.get("content") or plan.get("uri") or f"A plan of type {plan.get('type')}"
    return [{"content": str(words), "priority": "medium", "status": "in_progress"}]
