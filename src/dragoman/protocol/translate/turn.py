"""Turns: a request that lasts until its answer in version 1, a course of states in version 2.

`TurnForV2Client` tells the turns of a version 1 agent as states. It sends one prompt at a time to the agent, because a
version 1 agent takes no second one; further prompts are held, as version 2 allows. A prompt is answered with the id of
its message when the agent shows the first sign of work on it: an agent that refuses the prompt has inserted nothing,
and its error is the answer.

    state      event       next       told to the client
    IDLE       prompt      SENT       running
    SENT       work        RUNNING    {messageId}, user_message
    SENT       question    ASKING     {messageId}, user_message, requires_action
    RUNNING    question    ASKING     requires_action
    ASKING     answered    RUNNING    running
    SENT       done        IDLE       {messageId}, user_message, idle with the stop reason
    SENT       refused     IDLE       the error, idle
    RUNNING    done        IDLE       idle with the stop reason, or with the error
    ASKING     done        IDLE       the same

`TurnForV1Client` answers the prompts of a version 1 client when the states of a version 2 agent say that the work has
ended. Only an idle that follows on running or requires_action ends anything: repeated ones are snapshots.

    state      event             next       answered
    IDLE       running           ACTIVE
    IDLE       requires_action   ACTIVE
    ACTIVE     running           ACTIVE
    ACTIVE     requires_action   ACTIVE
    ACTIVE     idle              IDLE       every prompt whose message is inserted
    IDLE       idle              IDLE

`unknown` and states that are not known change nothing: the work may go on.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from dragoman.protocol.translate.content import blocks_to_v1
from dragoman.protocol.translate.envelope import (
    INTERNAL_ERROR,
    OF_V2,
    REQUEST_CANCELLED,
    Json,
    Object,
    as_list,
    as_object,
    carry,
    error,
    key_of,
    notification,
    request,
    result,
    take_carried,
    update,
    without,
)

MAX_HELD_PROMPTS = 64
"""Prompts that wait behind a turn; a client that sends more is told so."""
STOP_REASONS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})


class V1TurnState(Enum):
    """The state of a version 1 agent's turn."""

    IDLE = auto()
    SENT = auto()
    RUNNING = auto()
    ASKING = auto()


_V1_TURNS: dict[tuple[V1TurnState, str], V1TurnState] = {
    (V1TurnState.IDLE, "prompt"): V1TurnState.SENT,
    (V1TurnState.SENT, "work"): V1TurnState.RUNNING,
    (V1TurnState.RUNNING, "question"): V1TurnState.ASKING,
    (V1TurnState.ASKING, "answered"): V1TurnState.RUNNING,
    (V1TurnState.SENT, "done"): V1TurnState.IDLE,
    (V1TurnState.RUNNING, "done"): V1TurnState.IDLE,
    (V1TurnState.ASKING, "done"): V1TurnState.IDLE,
}


class TurnForV2Client:
    """The turn of one session of a version 1 agent; each method returns the messages for the client, in order."""

    def __init__(self, session_id: str, make_id: Callable[[], str]) -> None:
        self.state = V1TurnState.IDLE
        self._session_id = session_id
        self._make_id = make_id
        self._prompt: Object = {}
        self._held: deque[Object] = deque()
        self._questions: set[bytes] = set()

    @property
    def prompt_id(self) -> Json:
        """The id of the prompt that was sent to the agent last."""
        return self._prompt.get("id")

    def is_prompt(self, request_id: Json) -> bool:
        """Whether a request is the prompt of the turn, sent to the agent."""
        return self.state is not V1TurnState.IDLE and key_of(self.prompt_id) == key_of(request_id)

    def prompt(self, message: Object) -> tuple[list[Object], list[Object]]:
        """Take a prompt; return the messages for the client and those for the agent."""
        if self.state is V1TurnState.IDLE:
            self._prompt = message
            self._step("prompt")
            return [self._tell_state("running")], [_prompt_to_v1(message)]
        if len(self._held) >= MAX_HELD_PROMPTS:
            words = f"Internal error: {MAX_HELD_PROMPTS} prompts wait already; send this one when a turn has ended"
            return [error(message["id"], INTERNAL_ERROR, words)], []
        self._held.append(message)
        return [], []

    def work(self, echo: Object | None = None) -> list[Object]:
        """See the agent at work on the prompt; `echo` is an update by which it may show the prompt itself."""
        if self.state is not V1TurnState.SENT:
            return []
        self._step("work")
        return self._insert(echo if echo is not None and self._is_of_prompt(echo) else None)

    def question(self, request_id: Json) -> list[Object]:
        """See the agent ask the person something."""
        told = self.work()
        if self.state is V1TurnState.IDLE:
            return told
        self._questions.add(key_of(request_id))
        if self.state is V1TurnState.ASKING:
            return told
        self._step("question")
        return [*told, self._tell_state("requires_action")]

    def answered(self, request_id: Json) -> list[Object]:
        """See a question answered or withdrawn; others may be open."""
        self._questions.discard(key_of(request_id))
        if self._questions or self.state is not V1TurnState.ASKING:
            return []
        self._step("answered")
        return [self._tell_state("running")]

    def done(self, response: Object) -> tuple[list[Object], list[Object]]:
        """Take the agent's answer to the prompt; return the messages for the client and those for the agent."""
        failure = as_object(response.get("error"))
        is_cancelled = failure.get("code") == REQUEST_CANCELLED
        was_refused = self.state is V1TurnState.SENT and bool(failure)
        told: list[Object] = []
        if was_refused:
            told.append(
                error(
                    self._prompt["id"],
                    failure.get("code", INTERNAL_ERROR),
                    failure.get("message", ""),
                    failure.get("data"),
                )
            )
        elif self.state is V1TurnState.SENT:
            told += self._insert(None)
        if failure:
            ended: Object = {"stopReason": "cancelled"} if is_cancelled else {"stopReason": "error", "error": failure}
            ended = {} if was_refused and not is_cancelled else ended
        else:
            ended = _ended_to_v2(as_object(response.get("result")))
        told += self._end(ended)
        if not self._held:
            return told, []
        more, prompts = self.prompt(self._held.popleft())
        return told + more, prompts

    def cancel(self, request_id: Json) -> list[Object]:
        """Withdraw a prompt that is held."""
        found = [each for each in self._held if key_of(each["id"]) == key_of(request_id)]
        for each in found:
            self._held.remove(each)
        return [_cancelled(each) for each in found]

    def close(self) -> list[Object]:
        """End everything, as the session is closed: what was inserted ends cancelled, the rest was never inserted."""
        told = [_cancelled(each) for each in self._held]
        self._held.clear()
        if self.state is V1TurnState.IDLE:
            return told
        if self.state is V1TurnState.SENT:
            told.append(_cancelled(self._prompt))
        return [*told, *self._end({"stopReason": "cancelled"})]

    def _is_of_prompt(self, echo: Object) -> bool:
        """Whether a user's chunk begins the prompt: another may be of someone else."""
        said = as_object(echo.get("content"))
        first, *_ = as_list(as_object(self._prompt.get("params")).get("prompt")) or [{}]
        wanted = as_object(first)
        if said.get("type") == "text" == wanted.get("type"):
            return str(wanted.get("text")).startswith(str(said.get("text")))
        return said.get("type") == wanted.get("type")

    def _insert(self, echo: Object | None) -> list[Object]:
        message_id = (echo or {}).get("messageId") or self._make_id()
        told = [result(self._prompt["id"], {"messageId": message_id})]
        if echo is not None:
            echo["messageId"] = message_id
            return told
        content = as_object(self._prompt.get("params")).get("prompt", [])
        said = {"sessionUpdate": "user_message", "messageId": message_id, "content": content}
        return [*told, update(self._session_id, said)]

    def _end(self, ended: Object) -> list[Object]:
        self._step("done")
        self._questions.clear()
        return [self._tell_state("idle", ended)]

    def _tell_state(self, state: str, more: Object | None = None) -> Object:
        return update(self._session_id, {"sessionUpdate": "state_update", "state": state, **(more or {})})

    def _step(self, event: str) -> None:
        self.state = _V1_TURNS[self.state, event]


def _prompt_to_v1(message: Object) -> Object:
    params = as_object(message.get("params"))
    return request(message["id"], "session/prompt", {**params, "prompt": blocks_to_v1(params.get("prompt"))})


def _cancelled(message: Object) -> Object:
    return error(message["id"], REQUEST_CANCELLED, "Request cancelled: the prompt was not inserted")


def _ended_to_v2(answer: Object) -> Object:
    """Return the members of an idle state from the answer to a prompt."""
    answer, carried = take_carried(answer, OF_V2)
    return {**answer, **without(carried, "messageId")}


class V2TurnState(Enum):
    """The foreground state of a version 2 agent's session."""

    IDLE = auto()
    ACTIVE = auto()


_V2_TURNS: dict[tuple[V2TurnState, str], V2TurnState] = {
    (V2TurnState.IDLE, "running"): V2TurnState.ACTIVE,
    (V2TurnState.IDLE, "requires_action"): V2TurnState.ACTIVE,
    (V2TurnState.ACTIVE, "running"): V2TurnState.ACTIVE,
    (V2TurnState.ACTIVE, "requires_action"): V2TurnState.ACTIVE,
    (V2TurnState.ACTIVE, "idle"): V2TurnState.IDLE,
    (V2TurnState.IDLE, "idle"): V2TurnState.IDLE,
}


class _PendingPrompt:
    """A prompt of a version 1 client: waiting for its message to be inserted, then for the end of the work."""

    def __init__(self, message: Object) -> None:
        self.id: Json = message["id"]
        self.blocks: Json = as_object(message.get("params")).get("prompt")
        self.message_id: str | None = None
        self.is_inserted = False


class TurnForV1Client:
    """The prompts of a version 1 client on one session of a version 2 agent."""

    def __init__(self) -> None:
        self.state = V2TurnState.IDLE
        self.is_of_prompt = False
        """Whether the work began while a prompt waited; the prompt may have been refused since."""
        self._prompts: dict[bytes, _PendingPrompt] = {}
        self._last: tuple[set[str], Object] = (set(), {})
        """The messages echoed in the last work that ended, and its end: an answer may come after both."""
        self._echoed: set[str] = set()

    @property
    def has_prompts(self) -> bool:
        """Whether prompts wait for their answer."""
        return bool(self._prompts)

    @property
    def owes_last_end(self) -> bool:
        """Whether the end of the last work is still to be told as the answer to a prompt."""
        return any(each.message_id in self._last[0] for each in self._prompts.values())

    def prompt(self, message: Object) -> None:
        """Take a prompt that goes to the agent."""
        self._prompts[key_of(message["id"])] = _PendingPrompt(message)

    def is_pending(self, request_id: Json) -> bool:
        """Whether a prompt waits for its answer."""
        return key_of(request_id) in self._prompts

    def is_inserted(self, request_id: Json) -> bool:
        """Whether the message of a prompt is inserted, so that only cancelling the session ends it."""
        prompt = self._prompts.get(key_of(request_id))
        return prompt is not None and prompt.is_inserted

    def waiting_ids(self) -> list[Json]:
        """Return the ids of the prompts whose message is not inserted."""
        return [each.id for each in self._prompts.values() if not each.is_inserted]

    def answered(self, response: Object) -> list[Object]:
        """Take the agent's answer to a prompt, and return the client's where that is due."""
        prompt = self._prompts[key_of(response["id"])]
        if "error" in response:
            del self._prompts[key_of(response["id"])]
            is_cancelled = as_object(response["error"]).get("code") == REQUEST_CANCELLED
            return [result(prompt.id, {"stopReason": "cancelled"}) if is_cancelled else response]
        prompt.message_id = str(as_object(response.get("result")).get("messageId"))
        prompt.is_inserted = True
        ended, end = self._last
        return self._finish(prompt, end) if prompt.message_id in ended else []

    def is_echo(self, message_id: str, blocks: Json | None) -> bool:
        """Whether a user message echoes a prompt that waits."""
        return self.find_echo(message_id, blocks) is not None

    def find_echo(self, message_id: str, blocks: Json | None) -> Json:
        """Return the id of the prompt that a user message echoes: by its id or, before that is known, by its content.

        None where it echoes none that waits.
        """
        for prompt in self._prompts.values():
            if prompt.message_id == message_id:
                self._echoed.add(message_id)
                return prompt.id
            if prompt.message_id is None and blocks is not None and blocks == prompt.blocks:
                prompt.message_id = message_id
                self._echoed.add(message_id)
                return prompt.id
        return None

    def take_state(self, state: Object) -> list[Object]:
        """Take a state and return the answers that are due."""
        event = str(state.get("state"))
        if (self.state, event) not in _V2_TURNS:
            return []
        was_active = self.state is V2TurnState.ACTIVE
        self.state = _V2_TURNS[self.state, event]
        if self.state is V2TurnState.ACTIVE:
            self.is_of_prompt = self.is_of_prompt or (not was_active and self.has_prompts)
            return []
        self.is_of_prompt = False
        if not was_active:
            return []
        self._last, self._echoed = (self._echoed, state), set()
        inserted = [each for each in self._prompts.values() if each.is_inserted]
        return [answer for each in inserted for answer in self._finish(each, state)]

    def _finish(self, prompt: _PendingPrompt, state: Object) -> list[Object]:
        del self._prompts[key_of(prompt.id)]
        return [_ended_to_v1(prompt, state)]


def _ended_to_v1(prompt: _PendingPrompt, state: Object) -> Object:
    """Return the answer to a prompt from the idle state that ends it."""
    reason = state.get("stopReason")
    if reason == "error":
        failure = as_object(state.get("error")) or {
            "code": INTERNAL_ERROR,
            "message": "Internal error: the agent gave no reason",
        }
        return {"jsonrpc": "2.0", "id": prompt.id, "error": failure}
    carried: Object = {"messageId": prompt.message_id}
    if reason not in STOP_REASONS:
        carried["stopReason"] = reason
    if state.get("background") is not None:
        carried["background"] = state["background"]
    made = without(state, "sessionUpdate", "state", "stopReason", "background", "error")
    return result(
        prompt.id, carry({"stopReason": reason if reason in STOP_REASONS else "end_turn", **made}, OF_V2, carried)
    )


def cancel_request(request_id: Json) -> Object:
    """Return the notification that withdraws a request."""
    return notification("$/cancel_request", {"requestId": request_id})
