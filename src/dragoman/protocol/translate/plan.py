"""Plans: one per session in version 1, any number by id in version 2, as items, Markdown or a file.

A version 1 client that advertises `plan` receives plans as in version 2. Any other client receives one list with the
entries of all plans, in the order of the plans. A Markdown or file plan becomes one entry.
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
    split_carried,
    without,
)

ONLY_PLAN = "plan"
"""The id of a version 1 agent's only plan, which has no id."""


def plan_to_v2(update: Object) -> Object:
    """Return a version 1 `plan` as a version 2 `plan_update`."""
    bare, carried = split_carried(without(update, "sessionUpdate", "entries"), OF_V2)
    if "removed" in carried:
        return {"sessionUpdate": "plan_removed", **bare, "planId": carried["removed"]}
    plan = as_object(carried.get("plan")) or {
        "type": "items",
        "planId": ONLY_PLAN,
        "entries": entries_to_v2(update.get("entries")),
    }
    return {"sessionUpdate": "plan_update", **bare, "plan": plan}


def plan_update_to_v2(update: Object) -> Object:
    """Return a version 1 `plan_update`, which is unstable there, as a version 2 one."""
    plan = as_object(update.get("plan"))
    if plan.get("type") == "items":
        plan = {**plan, "entries": entries_to_v2(plan.get("entries"))}
    return {**update, "plan": plan}


def entries_to_v2(entries: Json) -> list[Object]:
    """Return the entries of a version 1 plan as version 2 entries."""
    return [restore(each, OF_V2) for each in objects_in(entries)]


def entries_to_v1(entries: Json) -> list[Object]:
    """Return the entries of a plan with priorities and statuses that version 1 has."""
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
    """The plans of one session for a version 1 client. `supports_plans` is its capability `plan`."""

    def __init__(self, *, supports_plans: bool) -> None:
        self._supports_plans = supports_plans
        self._plans: dict[str, Object] = {}

    def update(self, update: Object) -> Object:
        """Return the session update for a version 2 `plan_update`."""
        plan = as_object(update.get("plan"))
        plan_id = str(plan.get("planId"))
        rest = without(update, "sessionUpdate", "plan")
        is_known = plan.get("type") in ("items", "markdown", "file")
        if self._supports_plans and is_known and plan_id != ONLY_PLAN:
            if plan["type"] == "items":
                plan = {**plan, "entries": entries_to_v1(plan.get("entries"))}
            return {"sessionUpdate": "plan_update", **rest, "plan": plan}
        self._plans[plan_id] = plan
        translated = {**rest, **self._all_entries()}
        return (
            translated
            if plan_id == ONLY_PLAN and plan.get("type") == "items"
            else carry(translated, OF_V2, {"plan": plan})
        )

    def remove(self, update: Object) -> Object:
        """Return the session update for a version 2 `plan_removed`."""
        plan_id = str(update.get("planId"))
        if self._supports_plans and plan_id not in self._plans:
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
    text = plan.get("content") or plan.get("uri") or f"A plan of type {plan.get('type')}"
    return [{"content": str(text), "priority": "medium", "status": "in_progress"}]
