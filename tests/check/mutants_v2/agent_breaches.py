"""The changes that make the clean agent break the rules that only version 2 has, one for each rule."""

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from dragoman.check.driver import ScriptTurn
from tests.check.mutants.edits import code, drop, nothing, set_result
from tests.check.mutants.peer import INVALID_PARAMS, METHOD_NOT_FOUND, Breach, Lines, Object, Refused, override

WORK = (ScriptTurn("work"),)
CANCELLED = (ScriptTurn("work", cancel="permission"),)
INTERNAL_ERROR = -32603


class Mutant(NamedTuple):
    """A breach, the scenes that expose it, and rules that it inevitably breaks as well."""

    breach: Breach
    scenes: tuple[str, ...] = ("converse",)
    turns: tuple[ScriptTurn, ...] = WORK
    options: dict[str, Any] = {}  # noqa: RUF012 -- never changed
    implied: frozenset[str] = frozenset()


def set_update(where: Callable[[Object], bool] = lambda update: True, /, **fields: Any) -> Callable[[Object], None]:
    """Change fields of updates that match a condition."""

    def edit(message: Object) -> None:
        update = message["params"]["update"]
        if where(update):
            update.update(fields)

    return edit


def without(name: str, where: Callable[[Object], bool] = lambda update: True) -> Callable[[Object], None]:
    """Remove a field of an update."""

    def edit(message: Object) -> None:
        update = message["params"]["update"]
        if where(update):
            update.pop(name, None)

    return edit


def silent(where: Callable[[Object], bool]) -> Callable[[Object], Any]:
    """Drop updates that match a condition."""
    return lambda message: [] if where(message["params"]["update"]) else None


def is_state(name: str) -> Callable[[Object], bool]:
    return lambda update: update["state"] == name


def patched(old: str, new: str) -> Callable[[Object], None]:
    """Change the text of patches."""

    def edit(message: Object) -> None:
        for each in message["params"]["update"].get("content") or ():
            if each.get("type") == "diff":
                each["patch"]["text"] = each["patch"]["text"].replace(old, new)

    return edit


def strayed(message: Object) -> None:
    for each in message["params"]["update"].get("content") or ():
        if each.get("type") == "diff":
            each["changes"][0]["path"] += ".other"


def sent_as(message: Object) -> None:
    message["error"]["data"] = {"sessionId": "another"} if "sessionId" in message["error"].get("data", {}) else None


def answer_late(self: Any, session: Any) -> None:
    type(self).end_work(self, session)
    for request_id, message_id in getattr(self, "late", {}).items():
        type(self).answer_prompt(self, request_id, message_id)
    self.late = {}


def keep_answer(self: Any, request_id: Any, message_id: str) -> None:
    self.late = {**getattr(self, "late", {}), request_id: message_id}


def refuse_shown(self: Any, request_id: Any, message_id: str) -> None:
    self.error(request_id, "session/prompt", INTERNAL_ERROR, "it could not be worked on")


def resume_anything(self: Any, params: Object) -> Object:
    return type(self).resume(
        self, {**params, **({"replayFrom": {"type": "start"}} if params.get("replayFrom") else {})}
    )


def replay_renamed(self: Any, session: Any) -> None:
    for update in session.history:
        self.update(session.id, **(update | ({"messageId": f"new-{uuid.uuid4()}"} if "messageId" in update else {})))


def close_known(self: Any, request_id: Any, params: Object) -> None:
    if params["sessionId"] in self.open:
        type(self).close_session(self, request_id, params)
    else:
        self.error(request_id, "session/close", -32002, "there is no such session", {"sessionId": params["sessionId"]})


def cancel_anything(self: Any, params: Object) -> Object:
    offered = self.item_cancels.get(params.get("toolCallId") or params.get("terminalId") or "")
    if offered is not None:
        offered.set()
    return {}


def refuse_item(self: Any, params: Object) -> Object:
    if "terminalId" in params and params["terminalId"] not in self.item_cancels:
        raise Refused(INTERNAL_ERROR, "there is nothing to cancel")
    return type(self).cancel_item(self, params)


def cancel_quietly(self: Any, session: Any) -> None:
    session.cancelled.set()
    self.refuse_held(session)
    for _, answer in self.pop_questions(session):
        answer.put({})


def forget_route(name: str) -> Callable[..., Object]:
    """Return a step that offers to cancel an item by this field, without supporting the method."""

    def cancel_item(self: Any, params: Object) -> Object:
        if params.get(name) in self.item_cancels:
            raise Refused(METHOD_NOT_FOUND, "there is no such method")
        return type(self).cancel_item(self, params)

    return cancel_item


def say_first(self: Any, session: Any) -> None:
    self.say(session)
    type(self).work(self, session)


def close_and_forget(self: Any, request_id: Any, params: Object) -> None:
    self.held.pop(params["sessionId"], None)
    type(self).close_session(self, request_id, params)


def cancel_and_forget(self: Any, session: Any) -> None:
    self.held.pop(session.id, None)
    type(self).cancel(self, session)


def cancel_all(self: Any, session: Any) -> None:
    for each in tuple(self.open.values()):
        type(self).cancel(self, each)


def accept_booleans(self: Any, params: Object) -> Object:
    if params["type"] == "boolean" and params["configId"] != "fast":
        return {"configOptions": self.options(self.find(params))}
    return type(self).set_option(self, params)


def set_and_refuse(self: Any, params: Object) -> Object:
    try:
        return type(self).set_option(self, params)
    except Refused:
        if params["configId"] == "model":
            self.find(params).model = "large"
        raise


def check_underscore(self: Any, params: Object) -> None:
    if params["type"].startswith("_"):
        raise Refused(INVALID_PARAMS, "there is no such type of values")


def refuse_version_badly(self: Any, asked: int) -> Refused:
    return Refused(INVALID_PARAMS, "there is no such version")


def relative_command(message: Object) -> None:
    if message["params"]["subject"]["type"] == "command":
        message["params"]["subject"]["cwd"] = "here"


def needs_servers(self: Any, params: Object) -> None:
    if "mcpServers" not in params:
        raise Refused(INVALID_PARAMS, "mcpServers is missing")
    type(self).check_params(self, params)


PARTS = ("cancel_parts",)
BACK = ("reopen_sessions",)

# The key of a rule's second mutant is the rule's id followed by a description.
BREACHES: dict[str, Mutant] = {
    "ACP-WIRE-011 held prompt lost": Mutant(
        override(handle_held=lambda self, session: self.held.pop(session.id, None)),
        ("queue_prompt",),
        options={"turn_timeout_s": 3.0},
    ),
    "ACP-INIT-011": Mutant(Lines("result initialize", drop("result", "info")), ()),
    "ACP-INIT-012": Mutant(override(refuse_version=refuse_version_badly), ("no_version",)),
    "ACP-RESUME-004": Mutant(
        override(resume=lambda self, params: self.settings(self.fetch(params))),
        BACK,
        implied=frozenset({"ACP-LOAD-001", "ACP-RESUME-005"}),
    ),
    "ACP-RESUME-005": Mutant(override(resume=resume_anything), BACK),
    "ACP-LOAD-008": Mutant(override(replay=replay_renamed), BACK),
    "ACP-CLOSE-005": Mutant(override(close_session=close_known), ("unknown_sessions",)),
    "ACP-CONFIG-011": Mutant(
        Lines("error session/set_config_option", code(INTERNAL_ERROR)),
        ("options",),
        implied=frozenset({"ACP-CONFIG-013"}),
    ),
    "ACP-CONFIG-009 boolean for a select": Mutant(override(set_option=accept_booleans), ("options",)),
    "ACP-CONFIG-011 refused and set": Mutant(override(set_option=set_and_refuse), ("options",)),
    "ACP-CONFIG-012": Mutant(
        Lines(
            "result session/new",
            lambda message: message["result"]["configOptions"][0]["options"].append({"value": "ask", "name": "Ask"}),
        ),
        ("lists",),
    ),
    "ACP-CONFIG-013": Mutant(override(check_value_type=lambda self, params: None), ("options",)),
    "ACP-CONFIG-013 type without an underscore": Mutant(override(check_value_type=check_underscore), ("options",)),
    "ACP-PROMPT-006 all sessions cancelled": Mutant(override(cancel=cancel_all), ("two_sessions",)),
    "ACP-PROMPT-010": Mutant(Lines("error session/(prompt|resume)", sent_as), ("unknown_sessions",)),
    "ACP-PROMPT-011": Mutant(Lines("result session/prompt", set_result(messageId=None))),
    "ACP-PROMPT-012": Mutant(Lines("update user_message", nothing)),
    "ACP-PROMPT-013": Mutant(override(answer_prompt=keep_answer, end_work=answer_late)),
    "ACP-PROMPT-013 never answered": Mutant(
        override(answer_prompt=lambda self, request_id, message_id: None),
        ("converse", "two_prompts", "close", "reopen_sessions"),
        options={"turn_timeout_s": 1.5, "timeout_s": 1.0},
    ),
    "ACP-PROMPT-014": Mutant(
        Lines("update state_update", silent(lambda update: update["state"] != "idle")), options={"turn_timeout_s": 1.5}
    ),
    "ACP-PROMPT-014 running after the first output": Mutant(override(work=say_first)),
    "ACP-PROMPT-015": Mutant(Lines("update state_update", without("stopReason"))),
    "ACP-PROMPT-016": Mutant(Lines("update state_update", silent(is_state("idle"))), options={"turn_timeout_s": 1.5}),
    "ACP-PROMPT-017": Mutant(Lines("update state_update", silent(is_state("requires_action"))), ("reject",)),
    "ACP-PROMPT-018": Mutant(override(go_on=lambda self, session: None)),
    "ACP-PROMPT-019": Mutant(override(answer_prompt=refuse_shown)),
    "ACP-PROMPT-020": Mutant(Lines("update state_update", without("background", is_state("idle")))),
    "ACP-PROMPT-021": Mutant(
        Lines(
            "update state_update",
            set_update(is_state("requires_action"), background=[{"type": "terminal", "terminalId": "none"}]),
        )
    ),
    "ACP-PROMPT-022": Mutant(
        Lines("update terminal_update", silent(lambda update: "exitStatus" in update)),
    ),
    "ACP-CANCEL-005": Mutant(override(cancel=cancel_quietly), turns=CANCELLED),
    "ACP-CANCEL-006": Mutant(Lines("error session/prompt", code(INTERNAL_ERROR)), ("two_prompts",)),
    "ACP-CANCEL-006 held prompt lost at cancel": Mutant(
        override(cancel=cancel_and_forget), ("two_prompts",), options={"turn_timeout_s": 3.0}
    ),
    "ACP-CANCEL-006 held prompt lost at close": Mutant(
        override(close_session=close_and_forget), ("close",), options={"timeout_s": 1.0}
    ),
    "ACP-MSG-001": Mutant(Lines("update agent_thought_chunk", without("messageId"))),
    "ACP-MSG-002": Mutant(Lines("update agent_(thought_chunk|message|message_chunk)", set_update(messageId="same"))),
    "ACP-TOOL-011": Mutant(
        Lines("update tool_call_update", without("title", lambda update: update.get("status") == "pending"))
    ),
    "ACP-TOOL-012": Mutant(Lines("update tool_call_update", patched("diff --git /", "diff --git a/"))),
    "ACP-TOOL-013": Mutant(Lines("update tool_call_update", strayed)),
    "ACP-TOOL-014": Mutant(
        Lines("update tool_call_update", without("capabilities", lambda update: update.get("capabilities", 1) is None))
    ),
    "ACP-TOOL-015": Mutant(override(cancel_item=cancel_anything), PARTS, implied=frozenset({"ACP-TERM-011"})),
    "ACP-TOOL-016": Mutant(override(end_call=lambda self, session, call_id, status: None), PARTS),
    "ACP-TOOL-017": Mutant(override(cancel_item=forget_route("toolCallId")), PARTS),
    "ACP-PERM-007": Mutant(Lines("request session/request_permission", relative_command)),
    "ACP-PERM-008": Mutant(
        override(approves=lambda self, outcome: outcome.get("optionId") != "no"), ("converse", "send_unknown_answers")
    ),
    "ACP-PERM-008 unknown option": Mutant(
        override(
            approves=lambda self, outcome: outcome.get("outcome") == "selected" and outcome.get("optionId") != "no"
        ),
        ("converse", "send_unknown_answers"),
    ),
    "ACP-TERM-007": Mutant(
        Lines("update terminal_update", set_update(lambda update: "output" in update, output="made"))
    ),
    "ACP-TERM-008": Mutant(Lines("update terminal_output_chunk", set_update(data="made, in plain words"))),
    "ACP-TERM-009": Mutant(
        Lines("update terminal_update", set_update(lambda update: "output" in update, command="make again"))
    ),
    "ACP-TERM-010": Mutant(
        Lines("update terminal_update", without("capabilities", lambda update: update.get("capabilities", 1) is None))
    ),
    "ACP-TERM-011": Mutant(override(cancel_item=refuse_item), PARTS),
    "ACP-TERM-012": Mutant(
        override(end_terminal=lambda self, session, terminal_id, data: None),
        PARTS,
        implied=frozenset({"ACP-PROMPT-022"}),
    ),
    "ACP-TERM-013": Mutant(override(cancel_item=forget_route("terminalId")), PARTS),
    "ACP-CMD-004": Mutant(
        Lines(
            "update available_commands_update",
            set_update(availableCommands=[{"type": "command", "name": "re view", "description": "d"}]),
        )
    ),
    "ACP-CONTENT-004": Mutant(override(check_blocks=lambda self, blocks: None), ("contents",)),
    "ACP-ELICIT-001": Mutant(override(offers=lambda self, path: True), BACK),
    "ACP-EXT-006": Mutant(
        Lines("update tool_call_update", set_update(lambda update: update.get("kind") == "execute", kind="shell"))
    ),
    "ACP-MCP-006": Mutant(
        override(
            is_bad_server=lambda self, server: (
                not server.get("type", "").startswith("_") and not {"command", "url"} & server.keys()
            )
        ),
        ("bad_parameters",),
    ),
    "ACP-MCP-007": Mutant(override(check_params=needs_servers), ("bad_parameters",)),
}
