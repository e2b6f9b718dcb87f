"""Turns: a request that lasts until its response in version 1, a sequence of states in version 2.

`TurnForV2Client` shows the turns of a version 1 agent as states. It sends one prompt at a time to the agent, because a
version 1 agent does not accept a second one. Further prompts are held, as version 2 allows. A prompt is answered with
its message id at the first sign that the agent works on it. An agent that refuses the prompt has not inserted it, and
its error is the response.

    state      event       next       sent to the client
    IDLE       prompt      SENT       running
    SENT       work        RUNNING    {messageId}, user_message
    SENT       question    ASKING     {messageId}, user_message, requires_action
    RUNNING    question    ASKING     requires_action
    ASKING     answered    RUNNING    running
    SENT       done        IDLE       {messageId}, user_message, idle with the stop reason
    SENT       refused     IDLE       the error, idle
    RUNNING    done        IDLE       idle with the stop reason, or with the error
    ASKING     done        IDLE       the same

`TurnForV1Client` answers the prompts of a version 1 client when a version 2 agent's states show that the work has
ended. Only an idle after running or requires_action ends a turn. Repeated states are snapshots.

    state      event             next       answered
    IDLE       running           ACTIVE
    IDLE       requires_action   ACTIVE
    ACTIVE     running           ACTIVE
    ACTIVE     requires_action   ACTIVE
    ACTIVE     idle              IDLE       every prompt whose message is inserted
    IDLE       idle              IDLE

The state `unknown` and unrecognised states change nothing, because the work may continue.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from dragoman.errors import ErrorCode
from dragoman.protocol.prompt_echo import PromptEcho
from dragoman.protocol.translate.content import blocks_to_v1
from dragoman.protocol.translate.envelope import (
    OF_V2,
    Json,
    Object,
    as_object,
    carry,
    error,
    key_of,
    notification,
    objects_in,
    request,
    result,
    split_carried,
    update,
    without,
)

MAX_HELD_PROMPTS = 64
"""Maximum number of prompts held during a turn. Further prompts are refused."""
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
    """The turn of one session of a version 1 agent. Each method returns the messages for the client, in order."""

    def __init__(self, session_id: str, make_id: Callable[[], str]) -> None:
        self.state = V1TurnState.IDLE
        self._session_id = session_id
        self._make_id = make_id
        self._prompt: Object = {}
        self._message_id = ""
        self._is_own_echo = False
        """Whether the agent's own chunks show the prompt to the client."""
        self._echo = PromptEcho([])
        self._held: deque[Object] = deque()
        self._questions: set[bytes] = set()

    @property
    def prompt_id(self) -> Json:
        """The id of the last prompt that was sent to the agent."""
        return self._prompt.get("id")

    def is_prompt(self, request_id: Json) -> bool:
        """Return whether a request is the current turn's prompt."""
        return self.state is not V1TurnState.IDLE and key_of(self.prompt_id) == key_of(request_id)

    def prompt(self, message: Object) -> tuple[list[Object], list[Object]]:
        """Start or hold a prompt. Return the messages for the client and for the agent."""
        if self.state is V1TurnState.IDLE:
            self._prompt = message
            self._echo = echo_of(as_object(message.get("params")).get("prompt"))
            self._step("prompt")
            return [self._state_update("running")], [_prompt_to_v1(message)]
        if len(self._held) >= MAX_HELD_PROMPTS:
            problem = (
                f"Internal error: {MAX_HELD_PROMPTS} prompts are already waiting; send this one when a turn has ended"
            )
            return [error(message["id"], ErrorCode.INTERNAL_ERROR, problem)], []
        self._held.append(message)
        return [], []

    def work(self) -> list[Object]:
        """Record a sign of work on the prompt."""
        if self.state is not V1TurnState.SENT:
            return []
        self._step("work")
        return self._insert(None)

    def user_chunk(self, chunk: Object, given_id: Json) -> tuple[list[Object], bool]:
        """Handle a user message chunk from the agent, which may repeat the prompt.

        `given_id` is the message id, if the agent sent one. Return the messages for the client, and whether to send the
        chunk itself. It is not sent if we have already sent the prompt.
        """
        if self.state is V1TurnState.IDLE or not is_echo(self._echo, chunk.get("content"), given_id):
            return self.work(), True
        if self.state is V1TurnState.SENT:
            self._step("work")
            return self._insert(chunk), True
        chunk["messageId"] = self._message_id
        return [], self._is_own_echo

    def question(self, request_id: Json) -> list[Object]:
        """Record a question from the agent to the user."""
        messages = self.work()
        if self.state is V1TurnState.IDLE:
            return messages
        self._questions.add(key_of(request_id))
        if self.state is V1TurnState.ASKING:
            return messages
        self._step("question")
        return [*messages, self._state_update("requires_action")]

    def answered(self, request_id: Json) -> list[Object]:
        """Record that a question was answered or withdrawn. Others may still be open."""
        self._questions.discard(key_of(request_id))
        if self._questions or self.state is not V1TurnState.ASKING:
            return []
        self._step("answered")
        return [self._state_update("running")]

    def done(self, response: Object) -> tuple[list[Object], list[Object]]:
        """Handle the agent's response to the prompt. Return the messages for the client and for the agent."""
        failure = as_object(response.get("error"))
        is_cancelled = failure.get("code") == ErrorCode.REQUEST_CANCELLED
        was_refused = self.state is V1TurnState.SENT and bool(failure)
        messages: list[Object] = []
        if was_refused:
            messages.append(
                error(
                    self._prompt["id"],
                    failure.get("code", ErrorCode.INTERNAL_ERROR),
                    failure.get("message", ""),
                    failure.get("data"),
                )
            )
        elif self.state is V1TurnState.SENT:
            messages += self._insert(None)
        if failure:
            ended: Object = {"stopReason": "cancelled"} if is_cancelled else {"stopReason": "error", "error": failure}
            ended = {} if was_refused and not is_cancelled else ended
        else:
            ended = _ended_to_v2(as_object(response.get("result")))
        messages += self._end(ended)
        if not self._held:
            return messages, []
        more, prompts = self.prompt(self._held.popleft())
        return messages + more, prompts

    def cancel(self, request_id: Json) -> list[Object]:
        """Withdraw a held prompt."""
        found = [each for each in self._held if key_of(each["id"]) == key_of(request_id)]
        for each in found:
            self._held.remove(each)
        return [_cancelled(each) for each in found]

    def cancel_held(self) -> list[Object]:
        """Withdraw all held prompts, because the session is closed or its work is cancelled."""
        messages = [_cancelled(each) for each in self._held]
        self._held.clear()
        return messages

    def close(self) -> list[Object]:
        """End the turn because the session is closed.

        An inserted prompt ends as cancelled. Other prompts are refused as not inserted.
        """
        messages = self.cancel_held()
        if self.state is V1TurnState.IDLE:
            return messages
        if self.state is V1TurnState.SENT:
            messages.append(_cancelled(self._prompt))
        return [*messages, *self._end({"stopReason": "cancelled"})]

    def _insert(self, echo: Object | None) -> list[Object]:
        self._message_id = message_id = (echo or {}).get("messageId") or self._make_id()
        self._is_own_echo = echo is not None
        messages = [result(self._prompt["id"], {"messageId": message_id})]
        if echo is not None:
            echo["messageId"] = message_id
            return messages
        content = as_object(self._prompt.get("params")).get("prompt", [])
        update_fields = {"sessionUpdate": "user_message", "messageId": message_id, "content": content}
        return [*messages, update(self._session_id, update_fields)]

    def _end(self, ended: Object) -> list[Object]:
        self._step("done")
        self._questions.clear()
        return [self._state_update("idle", ended)]

    def _state_update(self, state: str, more: Object | None = None) -> Object:
        return update(self._session_id, {"sessionUpdate": "state_update", "state": state, **(more or {})})

    def _step(self, event: str) -> None:
        self.state = _V1_TURNS[self.state, event]


def echo_of(prompt: Json) -> PromptEcho:
    """Return a recogniser for chunks that repeat a prompt."""
    return PromptEcho(map(_text_of, objects_in(prompt)))


def is_echo(echo: PromptEcho, block: Json, message_id: Json = None) -> bool:
    """Return whether a user message chunk repeats the next part of a prompt."""
    return echo.consume(_text_of(as_object(block)), str(message_id) if message_id else None)


def _text_of(block: Object) -> str | None:
    return str(block.get("text")) if block.get("type") == "text" else None


def _prompt_to_v1(message: Object) -> Object:
    params = as_object(message.get("params"))
    return request(message["id"], "session/prompt", {**params, "prompt": blocks_to_v1(params.get("prompt"))})


def _cancelled(message: Object) -> Object:
    return error(message["id"], ErrorCode.REQUEST_CANCELLED, "Request cancelled: the prompt was not inserted")


def _ended_to_v2(answer: Object) -> Object:
    """Return the fields of an idle state from the response to a prompt."""
    answer, carried = split_carried(answer, OF_V2)
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
    """A version 1 client's prompt. It waits for its message to be inserted, then for the end of the work."""

    def __init__(self, message: Object) -> None:
        self.id: Json = message["id"]
        self.blocks: Json = as_object(message.get("params")).get("prompt")
        self.message_id: str | None = None
        self.is_inserted = False

    def begins_with(self, blocks: list[Object]) -> bool:
        """Return whether content is the prompt's content, or a chunk with its beginning."""
        echo = echo_of(self.blocks)
        return blocks == self.blocks or (len(blocks) == 1 and is_echo(echo, blocks[0]))


class TurnForV1Client:
    """The prompts of a version 1 client in one session of a version 2 agent."""

    def __init__(self) -> None:
        self.state = V2TurnState.IDLE
        self.was_prompted = False
        """Whether the work started while a prompt was pending. The prompt may have been refused since."""
        self._prompts: dict[bytes, _PendingPrompt] = {}
        self._last: tuple[set[str], Object] = (set(), {})
        """The messages echoed during the last work, and its final state. A response may arrive after both."""
        self._echoed: set[str] = set()

    @property
    def has_prompts(self) -> bool:
        """Whether prompts are pending."""
        return bool(self._prompts)

    @property
    def has_pending_end(self) -> bool:
        """Whether the end of the last work still has to be sent as the response to a prompt."""
        return any(each.message_id in self._last[0] for each in self._prompts.values())

    def prompt(self, message: Object) -> None:
        """Record a prompt that is sent to the agent."""
        self._prompts[key_of(message["id"])] = _PendingPrompt(message)

    def is_pending(self, request_id: Json) -> bool:
        """Return whether a prompt is pending."""
        return key_of(request_id) in self._prompts

    def is_inserted(self, request_id: Json) -> bool:
        """Return whether a prompt's message is inserted, so that only cancelling the session ends it."""
        prompt = self._prompts.get(key_of(request_id))
        return prompt is not None and prompt.is_inserted

    def waiting_ids(self) -> list[Json]:
        """Return the ids of the prompts whose message is not inserted."""
        return [each.id for each in self._prompts.values() if not each.is_inserted]

    def answered(self, response: Object) -> list[Object]:
        """Handle the agent's response to a prompt. Return the client's response if it is due."""
        prompt = self._prompts[key_of(response["id"])]
        if "error" in response:
            del self._prompts[key_of(response["id"])]
            is_cancelled = as_object(response["error"]).get("code") == ErrorCode.REQUEST_CANCELLED
            return [result(prompt.id, {"stopReason": "cancelled"}) if is_cancelled else response]
        prompt.message_id = str(as_object(response.get("result")).get("messageId"))
        prompt.is_inserted = True
        ended, end = self._last
        return self._finish(prompt, end) if prompt.message_id in ended else []

    def is_echo(self, message_id: str, blocks: Json | None) -> bool:
        """Return whether a user message echoes a pending prompt."""
        return self.find_echo(message_id, blocks) is not None

    def find_echo(self, message_id: str, blocks: Json | None) -> Json:
        """Return the id of the pending prompt that a user message echoes, or None.

        The prompt is found by its message id, or by its content before the id is known.
        """
        for prompt in self._prompts.values():
            if prompt.message_id == message_id:
                self._echoed.add(message_id)
                return prompt.id
            if prompt.message_id is None and blocks is not None and prompt.begins_with(objects_in(blocks)):
                prompt.message_id = message_id
                self._echoed.add(message_id)
                return prompt.id
        return None

    def apply_state(self, state: Object) -> list[Object]:
        """Apply a state and return the responses that are due."""
        event = str(state.get("state"))
        if (self.state, event) not in _V2_TURNS:
            return []
        was_active = self.state is V2TurnState.ACTIVE
        self.state = _V2_TURNS[self.state, event]
        if self.state is V2TurnState.ACTIVE:
            self.was_prompted = self.was_prompted or (not was_active and self.has_prompts)
            return []
        self.was_prompted = False
        if not was_active:
            return []
        self._last, self._echoed = (self._echoed, state), set()
        inserted = [each for each in self._prompts.values() if each.is_inserted]
        return [answer for each in inserted for answer in self._finish(each, state)]

    def _finish(self, prompt: _PendingPrompt, state: Object) -> list[Object]:
        del self._prompts[key_of(prompt.id)]
        return [_ended_to_v1(prompt, state)]


def _ended_to_v1(prompt: _PendingPrompt, state: Object) -> Object:
    """Return the response to a prompt from the idle state that ends it."""
    reason = state.get("stopReason")
    if reason == "error":
        failure = as_object(state.get("error")) or {
            "code": ErrorCode.INTERNAL_ERROR,
            "message": "Internal error: the agent gave no reason",
        }
        return {"jsonrpc": "2.0", "id": prompt.id, "error": failure}
    carried: Object = {"messageId": prompt.message_id}
    if reason not in STOP_REASONS:
        carried["stopReason"] = reason
    if state.get("background") is not None:
        carried["background"] = state["background"]
    rest = without(state, "sessionUpdate", "state", "stopReason", "background", "error")
    return result(
        prompt.id, carry({"stopReason": reason if reason in STOP_REASONS else "end_turn", **rest}, OF_V2, carried)
    )


def cancel_request(request_id: Json) -> Object:
    """Return the notification that withdraws a request."""
    return notification("$/cancel_request", {"requestId": request_id})
