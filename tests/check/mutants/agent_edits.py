"""Changed messages of the clean agent."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.check.mutants.edits import fail
from tests.check.mutants.peer import Object

NOT_FOUND = -32002
NOTE: Object = {"jsonrpc": "2.0", "method": "_clean/note", "params": {}}


def update_of(message: Object) -> Object:
    return message["params"]["update"]


def result_of(message: Object) -> Object:
    return message["result"]


def set_update(**fields: Any) -> Callable[[Object], None]:
    """Change fields of the update."""
    return lambda message: update_of(message).update(fields)


def chunk(session_id: str) -> Object:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "late"}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": update}}


def of_call(kind: str, edit: Callable[[Object], Any]) -> Callable[[Object], Any]:
    """Change only messages about tool calls of this kind."""
    return lambda message: edit(message) if re.match(kind, update_of(message)["toolCallId"]) else None


def of_mode(mode: str, edit: Callable[[Object], Any]) -> Callable[[Object], Any]:
    """Change only elicitations in this mode."""
    return lambda message: edit(message) if message["params"]["mode"] == mode else None


def option(number: int, **fields: Any) -> Callable[[Object], None]:
    """Change a config option of a new session."""
    return lambda message: result_of(message)["configOptions"][number].update(fields)


def listed(**fields: Any) -> Callable[[Object], None]:
    """Change the first session of a list, if there is one."""

    def edit(message: Object) -> None:
        for each in result_of(message)["sessions"][:1]:
            each.update(fields)

    return edit


def refuse_emptiness(message: Object) -> Any:
    return None if result_of(message)["sessions"] else fail(NOT_FOUND)(message)


def command(**fields: Any) -> Callable[[Object], None]:
    return lambda message: update_of(message)["availableCommands"][0].update(fields)


def pretty(message: Object) -> list[Any]:
    return [message, json.dumps(NOTE, indent=1).encode() + b"\n"]


def null_string_id(message: Object) -> None:
    if isinstance(message["id"], str):
        message["id"] = None


def early(message: Object) -> list[Object]:
    update = {"sessionUpdate": "session_info_update", "title": "too early"}
    session_id = result_of(message)["sessionId"]
    params = {"sessionId": session_id, "update": update}
    return [{"jsonrpc": "2.0", "method": "session/update", "params": params}, message]


def cancel_oneself(message: Object) -> list[Object]:
    params = {"sessionId": result_of(message)["sessionId"]}
    return [message, {"jsonrpc": "2.0", "method": "session/cancel", "params": params}]


def offer_no_load(message: Object) -> None:
    result_of(message)["agentCapabilities"]["loadSession"] = False


def rename_capabilities(message: Object) -> None:
    result_of(message)["capabilities"] = result_of(message).pop("agentCapabilities")


def snake(message: Object) -> None:
    update_of(message)["available_commands"] = update_of(message).pop("availableCommands")


def with_id(message: Object) -> None:
    message["id"] = 9999


def first_mode_only(message: Object) -> None:
    result_of(message)["modes"]["availableModes"].pop(0)


def double_mode(message: Object) -> None:
    result_of(message)["modes"]["availableModes"] *= 2


def nameless_mode(message: Object) -> None:
    result_of(message)["modes"]["availableModes"][0]["name"] = 5


def boolean_option(message: Object) -> None:
    more = {"type": "boolean", "id": "fast", "name": "fast", "currentValue": True}
    result_of(message)["configOptions"].append(more)


def double_option(message: Object) -> None:
    result_of(message)["configOptions"].append(result_of(message)["configOptions"][1])


def mute_mode(message: Object) -> None:
    update_of(message)["modeId"] = update_of(message).pop("currentModeId")


def same_call(message: Object) -> None:
    update_of(message)["toolCallId"] = "always"


def twice_over(message: Object) -> Any:
    if update_of(message)["status"] != "completed":
        return None
    again = json.loads(json.dumps(message))
    update_of(again)["status"] = "in_progress"
    return [message, again, message]


def unless(status: str) -> Callable[[Object], Any]:
    return lambda message: [] if update_of(message)["status"] == status else None


def completed(message: Object) -> None:
    if update_of(message)["status"] == "failed":
        update_of(message)["status"] = "completed"


def relative_diff(message: Object) -> None:
    for each in update_of(message).get("content", ()):
        each["path"] = "made.txt"


def foreign_terminal(message: Object) -> None:
    update_of(message)["content"][0]["terminalId"] = "nobody's"


def line_zero(message: Object) -> None:
    update_of(message)["locations"][0]["line"] = 0


def same_options(message: Object) -> None:
    for each in message["params"]["options"]:
        each["optionId"] = "yes"


def nameless_option(message: Object) -> None:
    message["params"]["options"] = [dict(each) for each in message["params"]["options"]]
    del message["params"]["options"][0]["name"]


def run_before_answer(message: Object) -> list[Object]:
    call = message["params"]["toolCall"]["toolCallId"]
    update = {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress"}
    params = {"sessionId": message["params"]["sessionId"], "update": update}
    return [message, {"jsonrpc": "2.0", "method": "session/update", "params": params}]


def of_content(kind: str, **fields: Any) -> Callable[[Object], None]:
    def edit(message: Object) -> None:
        content = update_of(message)["content"]
        if content["type"] == kind:
            update_of(message)["content"] = {**content, **fields}

    return edit


def textless(message: Object) -> None:
    content = dict(update_of(message)["content"])
    content.pop("text", None)
    update_of(message)["content"] = content


def ask_password(message: Object) -> None:
    message["params"]["requestedSchema"]["properties"]["password"] = {"type": "string"}


def doubled(name: str) -> Callable[[Object], None]:
    return lambda message: update_of(message).update({name: update_of(message)[name] * 2})
