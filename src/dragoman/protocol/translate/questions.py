"""Questions of an agent to the user: permission requests with their subject, and elicitations."""

from collections.abc import Callable

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
from dragoman.protocol.translate.tool_call import ToolCallsForV1, call_to_v2

UNTITLED = "The agent asks for permission"
_OPTION_KINDS = frozenset({"allow_once", "allow_always", "reject_once", "reject_always"})
_FORMATS = frozenset({"email", "uri", "date", "date-time"})


def permission_to_v2(params: Object, known_title: str | None) -> Object:
    """Return the parameters of a permission request for a version 2 client."""
    bare, carried = split_carried(params, OF_V2)
    call = call_to_v2(as_object(bare.get("toolCall")))
    title = str(call.get("title") or known_title or UNTITLED)
    options = objects_in(bare.get("options")) + objects_in(carried.get("options"))
    translated = {
        **without(bare, "toolCall", "options"),
        "title": title,
        "subject": {"type": "tool_call", "toolCall": call},
    }
    translated = {**translated, **without(carried, "options"), "options": options}
    return translated if call.get("title") or carried else carry(translated, OF_V1, {"isUntitled": True})


def permission_to_v1(params: Object, calls: ToolCallsForV1, make_id: Callable[[], str]) -> Object:
    """Return the parameters of a permission request for a version 1 client, which only knows tool calls.

    An option of a kind unknown to version 1 is left out, because a policy could mistake it for another kind.
    """
    params, of_v1 = split_carried(params, OF_V1)
    subject = as_object(params.get("subject"))
    carried: Object = {}
    if subject.get("type") == "tool_call":
        call = calls.fields(as_object(subject.get("toolCall")))
        if not call.get("title") and "isUntitled" not in of_v1:
            call["title"] = params.get("title")
            carried |= {"title": params.get("title"), "subject": subject}
        if call.get("title") not in (None, params.get("title")):
            carried["title"] = params.get("title")
    else:
        call = _call_of(subject, params, make_id)
        carried |= {"title": params.get("title"), "subject": params.get("subject")}
    if params.get("description") is not None:
        carried["description"] = params["description"]
    options = objects_in(params.get("options"))
    known = [each for each in options if each.get("kind") in _OPTION_KINDS]
    if len(known) < len(options):
        carried["options"] = [each for each in options if each not in known]
    translated = without(params, "title", "description", "subject")
    return carry({**translated, "toolCall": call, "options": known}, OF_V2, carried)


def _call_of(subject: Object, params: Object, make_id: Callable[[], str]) -> Object:
    """Return a tool call that shows a subject of another type."""
    title, description = str(params.get("title")), params.get("description")
    content = [{"type": "content", "content": {"type": "text", "text": str(description)}}] if description else []
    if subject.get("type") != "command":
        return {"toolCallId": make_id(), "title": title, "kind": "other", "status": "pending", "content": content}
    command = {"command": subject.get("command"), "cwd": subject.get("cwd")}
    call_id = subject.get("toolCallId") or make_id()
    shown = {
        "type": "content",
        "content": {"type": "text", "text": f"$ {subject.get('command')}\n(in {subject.get('cwd')})"},
    }
    return {"toolCallId": call_id, "title": title, "kind": "execute", "rawInput": command, "content": [shown, *content]}


def outcome_to_v1(result: Object) -> Object:
    """Return the answer of a version 2 client. An unknown outcome does not count as approval."""
    outcome = as_object(result.get("outcome"))
    if outcome.get("outcome") in ("selected", "cancelled"):
        return result
    return carry({**result, "outcome": {"outcome": "cancelled"}}, OF_V2, {"outcome": outcome})


def elicitation_to_v2(params: Object) -> Object:
    """Return the parameters of an elicitation for a version 2 client, whose schema needs a type and properties."""
    schema = params.get("requestedSchema")
    if not isinstance(schema, dict):
        return params
    form = as_object(schema)
    properties = {name: restore(as_object(each), OF_V2) for name, each in as_object(form.get("properties")).items()}
    return {**params, "requestedSchema": {**form, "type": "object", "properties": properties}}


def elicitation_to_v1(params: Object) -> Object:
    """Return the parameters of an elicitation for a version 1 client, which knows four string formats."""
    schema = params.get("requestedSchema")
    if not isinstance(schema, dict):
        return params
    form = as_object(schema)
    properties = {name: _property_to_v1(as_object(each)) for name, each in as_object(form.get("properties")).items()}
    return {**params, "requestedSchema": {**form, "properties": properties}}


def _property_to_v1(schema: Object) -> Object:
    schema = restore(schema, OF_V1)
    value: Json = schema.get("format")
    if value is None or value in _FORMATS:
        return schema
    return carry(without(schema, "format"), OF_V2, {"format": value})
