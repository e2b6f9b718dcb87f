"""Changed methods of the clean agent."""

import os
import subprocess
import uuid
from collections.abc import Callable
from typing import Any

from tests.check.mutants.agent_edits import chunk
from tests.check.mutants.edits import INTERNAL_ERROR, INVENTED
from tests.check.mutants.peer import INVALID_PARAMS, Object, Refused


def keep_server(self: Any, session: Any, server: Object) -> None:
    """Leave the server running for some seconds, with an open stdin and its own session."""
    inner = ["sh", "-c", 'sleep 9 | exec "$@"', "sh", server["command"], *server["args"]]
    nowhere = subprocess.DEVNULL
    subprocess.Popen(inner, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def start_everywhere(self: Any, params: Object) -> Object:
    self.known = params["mcpServers"] = getattr(self, "known", None) or params["mcpServers"]
    return type(self).new_session(self, params)


def refuse_servers(kind: str) -> Callable[..., None]:
    def check(self: Any, params: Object) -> None:
        type(self).check_params(self, params)
        if any(kind in each for each in params["mcpServers"]):
            raise Refused(INVALID_PARAMS, "no such servers")

    return check


def open_anywhere(self: Any, params: Object) -> None:
    params.setdefault("cwd", "/")
    type(self).check_params(self, params)


def open_without_servers(self: Any, params: Object) -> None:
    params.setdefault("mcpServers", [])
    type(self).check_params(self, params)


def name_after_process(self: Any) -> str:
    return f"of-{os.getpid()}-{uuid.uuid4()}"


def open_own(method: str) -> Callable[..., Object]:
    """Load or resume only the sessions of this process."""

    def open_session(self: Any, params: Object) -> Object:
        session_id = params["sessionId"]
        if session_id.startswith("of-") and not session_id.startswith(f"of-{os.getpid()}-"):
            raise Refused(INTERNAL_ERROR, "it is of another process")
        return getattr(type(self), method)(self, params)

    return open_session


def never_answer(self: Any, request_id: Any) -> None:
    type(self).cancel_request(self, request_id)
    self.answer_prompt = lambda *_: None


def refuse_strange(self: Any, params: Object) -> Object:
    if any(name.startswith(INVENTED) for name in params["clientCapabilities"]):
        raise Refused(INTERNAL_ERROR, "there is no such capability")
    return type(self).initialize(self, params)


def agree_less_with_bare_clients(self: Any, version: int) -> int:
    return 1 if self.offers("terminal") else 0


def call_logout(self: Any, request_id: Any, method: str) -> None:
    if method == "logout":
        self.result(request_id, method, {})
    else:
        type(self).handle_strange_request(self, request_id, method)


def answer_anything(self: Any, request_id: Any, method: str) -> None:
    if method.startswith("_"):
        self.result(request_id, method, {})
    else:
        type(self).handle_strange_request(self, request_id, method)


def accept_unknown_sessions(name: str) -> Callable[..., Any]:
    """Return a method that succeeds for unknown sessions."""

    def accept(self: Any, params: Object) -> Object:
        return {} if params["sessionId"].startswith(INVENTED) else getattr(type(self), name)(self, params)

    return accept


def refuse_strangers(self: Any, params: Object) -> Object:
    if self.session_files.find(params["sessionId"]) is None:
        raise Refused(INTERNAL_ERROR, "there is no such session")
    return type(self).delete(self, params)


def replay_half(kind: str) -> Callable[..., None]:
    def replay(self: Any, session: Any) -> None:
        for update in session.history:
            if update["sessionUpdate"] != kind:
                self.update(session.id, **update)

    return replay


def refuse_content(kind: str) -> Callable[..., None]:
    def handle(self: Any, request_id: Any, params: Object) -> None:
        if any(each["type"] == kind for each in params["prompt"]):
            raise Refused(INVALID_PARAMS, "no such content")
        type(self).handle_prompt(self, request_id, params)

    return handle


def replay_backwards(self: Any, session: Any) -> None:
    for update in reversed(session.history):
        self.update(session.id, **update)


def replay_late(self: Any, params: Object) -> None:
    if "sessionId" in params and self.open[params["sessionId"]].history:
        self.update(params["sessionId"], **self.open[params["sessionId"]].history[-1])


def replay_on_resume(self: Any, params: Object) -> Object:
    return self.load(params)


def list_unfiltered(self: Any, params: Object) -> Object:
    return type(self).list_sessions(self, {name: value for name, value in params.items() if name != "cwd"})


def list_other_cwd(self: Any, params: Object) -> Object:
    result = type(self).list_sessions(self, params)
    if "cwd" not in params and "cursor" not in params:
        result["sessions"][0]["cwd"] = "/somewhere/else"
    return result


def accept_any_cursor(self: Any, cursor: str | None) -> int | None:
    return int(cursor.removeprefix("before-")) if cursor and cursor.startswith("before-") else None


def repeat_cursor(self: Any, params: Object) -> Object:
    result = type(self).list_sessions(self, params)
    return {**result, "nextCursor": params["cursor"]} if "cursor" in params else result


def close_at_once(self: Any, request_id: Any, session: Any) -> None:
    """Answer, and let the turn run to its end."""
    self.forget(session)
    self.result(request_id, "session/close", {})


def unlink(self: Any, session: Any) -> None:
    type(self).forget(self, session)
    self.session_files.delete(session.id)


def stay_open(self: Any, session: Any) -> None:
    """Continue to accept prompts."""


def set_any_mode(self: Any, params: Object) -> Object:
    self.find(params)
    return {}


def set_nothing(self: Any, params: Object) -> Object:
    session = self.find(params)
    model = session.model
    result = type(self).set_option(self, params)
    if params["configId"] == "model":
        session.model = model
        result = {"configOptions": session.options()}
    return result


def leave_out(self: Any, params: Object) -> Object:
    options = type(self).set_option(self, params)["configOptions"]
    return {"configOptions": [each for each in options if each["id"] != params["configId"]]}


def set_anything(self: Any, params: Object) -> Object:
    try:
        return type(self).set_option(self, params)
    except Refused:
        return {"configOptions": self.find(params).options()}


def prompt_anybody(self: Any, params: Object) -> Object:
    return {} if params["sessionId"].startswith(INVENTED) else type(self).set_mode(self, params)


def make_way(self: Any, request_id: Any, session: Any) -> None:
    """End the first turn in favour of the second, which then runs in its place."""
    with self.lock:
        self.result(session.prompt_id, "session/prompt", {"stopReason": "cancelled"})
        session.prompt_id = request_id
        self.answer_prompt = lambda _, known: type(self).answer_prompt(self, request_id, known)


def cancel_later(self: Any, session: Any) -> None:
    """Apply a cancel in an idle session to the next turn."""
    session.is_doomed = session.idle.is_set()
    type(self).cancel(self, session)


def end_doomed(self: Any, request_id: Any, session: Any) -> None:
    if getattr(session, "is_doomed", False):
        session.cancelled.set()
    type(self).answer_prompt(self, request_id, session)


def end_when_idle(self: Any) -> None:
    for session in self.open.values():
        session.idle.wait()
    type(self).end(self)


def end_well(self: Any, request_id: Any, session: Any) -> None:
    self.result(request_id, "session/prompt", {"stopReason": "end_turn"})


def fail_when_cancelled(self: Any, request_id: Any, session: Any) -> None:
    if session.cancelled.is_set():
        self.error(request_id, "session/prompt", INTERNAL_ERROR, "aborted")
    else:
        type(self).answer_prompt(self, request_id, session)


def forget_cancelled(self: Any, request_id: Any, session: Any) -> None:
    type(self).answer_prompt(self, request_id, session)
    if session.cancelled.is_set():
        self.forget(session)


def speak_after_cancel(self: Any, request_id: Any, session: Any) -> None:
    type(self).answer_prompt(self, request_id, session)
    if session.cancelled.is_set():
        self.send("late", chunk(session.id))


def hang_when_cancelled(self: Any, request_id: Any, session: Any) -> None:
    if not session.cancelled.is_set():
        type(self).answer_prompt(self, request_id, session)


def ask_aside(self: Any, method: str, params: Object) -> Object:
    """Request permission with a notification, which gets no answer."""
    if method != "session/request_permission":
        return type(self).ask(self, method, params)
    self.notify(method, params)
    return {}


def pretend(path: str) -> Callable[..., bool]:
    """Assume a capability."""
    return lambda self, asked: asked == path or type(self).offers(self, asked)


def keep_terminal(self: Any, method: str, params: Object) -> Object:
    return {} if method == "terminal/release" else type(self).ask(self, method, params)


def use_released(self: Any, method: str, params: Object) -> Object:
    result = type(self).ask(self, method, params)
    if method == "terminal/release":
        type(self).ask(self, "terminal/output", params)
    return result


def use_strange_terminal(self: Any, method: str, params: Object) -> Object:
    if method == "terminal/output":
        type(self).ask(self, method, {**params, "terminalId": "nobody's"})
    return type(self).ask(self, method, params)


def ask_two_pages(self: Any, requests: list[tuple[str, Object]]) -> list[Object]:
    return type(self).ask_at_once(self, [requests[0], *requests])
