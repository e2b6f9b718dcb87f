"""The turns of a session: prompts that wait for their answer, and the state of the session, in both versions of ACP.

In version 1 a turn is a request that lasts until its answer. In version 2 a prompt is answered once its message is
inserted, and states tell the rest. All viewers of a session share its turns, whoever has begun them:

    agent    viewer of version 1                       viewer of version 2
    v1       its prompt is the agent's                 its prompt is answered at the first sign of work on it; further
                                                       prompts are held until the turn has ended; it is told states
    v2       its prompt is answered by the end of      its prompt and the states are the agent's
             the work in which it was inserted
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.bridge.delivery import EarlierTurn, Viewer, ViewerRequest
from dragoman.bridge.envelope import encode, fields_of
from dragoman.bridge.registry.prompt_queue import PromptQueue
from dragoman.bridge.registry.repeated_prompts import RepeatedPrompts
from dragoman.errors import ErrorCode
from dragoman.protocol.translate.envelope import Object, as_object
from dragoman.protocol.translate.turn import MAX_HELD_PROMPTS, TurnForV1Client, V2TurnState

_IDLE: Object = {"sessionUpdate": "state_update", "state": "idle"}


class WaitingRequest(msgspec.Struct, eq=False):
    """A request that waits until the agent has the session again."""

    request: ViewerRequest
    go_on: Callable[[], None]


class SessionTurns:
    """The prompts under way on one session that one version has and the other says otherwise."""

    def __init__(self, earlier: Mapping[str, EarlierTurn]) -> None:
        self.repeated = RepeatedPrompts(earlier)
        self.held: deque[ViewerRequest] = deque()
        """Prompts of version 2 that wait for the end of the turn of an agent of version 1."""
        self.queue = PromptQueue()
        """Prompts that people want sent after the turn."""
        self.last_state: Object = _IDLE
        """The state that viewers of version 2 were told last."""
        self._inserting: list[tuple[ViewerRequest, str]] = []
        """Prompts of version 2 that the agent shows no work on yet, with the ids of their messages."""
        self._states = TurnForV1Client()
        self._prompts: dict[int, ViewerRequest] = {}
        """Prompts of version 1 at an agent of version 2, by their ids there."""

    # An agent of version 1.

    def hold(self, request: ViewerRequest) -> None:
        """Have a prompt wait for the end of the turn; too many are refused."""
        if len(self.held) < MAX_HELD_PROMPTS:
            self.held.append(request)
            return
        problem = f"{MAX_HELD_PROMPTS} prompts wait already; send this one when a turn has ended"
        request.refuse(ErrorCode.INTERNAL_ERROR, problem)

    def insert(self, request: ViewerRequest, message_id: str) -> None:
        """Expect work on a prompt of version 2."""
        self._inserting.append((request, message_id))

    def see_work(self) -> None:
        """Answer the prompts that the agent works on."""
        if self._inserting:
            inserting, self._inserting = self._inserting, []
            for request, message_id in inserting:
                request.answer({"messageId": message_id})

    def refuse_insertion(self, request: ViewerRequest) -> None:
        """Forget a prompt that the agent has refused."""
        self._inserting = [each for each in self._inserting if each[0] is not request]

    def withdraw(self, viewer: Viewer | None = None, id_: bytes | None = None) -> bool:
        """Answer held prompts as cancelled, all or one of a viewer; tells whether there were any."""
        found = [each for each in self.held if viewer is None or (each.viewer is viewer and each.id == id_)]
        for request in found:
            self.held.remove(request)
            request.refuse(ErrorCode.REQUEST_CANCELLED, "the prompt was not inserted")
        return bool(found)

    # An agent of version 2.

    @property
    def is_active(self) -> bool:
        """Whether an agent of version 2 is at work."""
        return self._states.state is V2TurnState.ACTIVE

    @property
    def has_prompts(self) -> bool:
        """Whether prompts of version 1 wait for an agent of version 2."""
        return bool(self._prompts)

    def send(self, agent_id: bytes, request: ViewerRequest) -> None:
        """Note a prompt of version 1 that an agent of version 2 was sent."""
        self._prompts[int(agent_id)] = request
        prompt = msgspec.json.decode(fields_of(request.params).get("prompt", b"[]"))
        self._states.prompt({"id": int(agent_id), "params": {"prompt": prompt}})

    def answered(self, agent_id: bytes, line: bytes) -> None:
        """Take the agent's answer to a prompt of version 1, which names the message or is an error."""
        response = {**as_object(msgspec.json.decode(line)), "id": int(agent_id)}
        if self._states.is_pending(int(agent_id)):
            self._give(self._states.answered(response))

    def take_state(self, update: Object) -> None:
        """Take a state of the agent, and answer the prompts whose work has ended."""
        self.last_state = update
        self._give(self._states.take_state(update))

    def find_echo(self, update: Object) -> Viewer | None:
        """Return the viewer of version 1 whose prompt a user's message repeats."""
        content = update.get("content")
        blocks = [as_object(content)] if isinstance(content, dict) else content
        agent_id = self._states.find_echo(str(update.get("messageId")), blocks)
        request = None if agent_id is None else self._prompts.get(agent_id)
        return None if request is None else request.viewer

    def uninserted(self) -> list[bytes]:
        """Return the ids of the prompts of version 1 that the agent has not inserted."""
        return [b"%d" % each for each in self._states.waiting_ids()]

    def is_inserted(self, agent_id: bytes) -> bool:
        """Whether a prompt of version 1 is inserted, so that only cancelling the session ends it."""
        return self._states.is_inserted(int(agent_id))

    def end(self, data: dict[str, Any] | None) -> None:
        """End all work, because the agent has ended (with the data of its failure) or the session was closed."""
        prompts, self._prompts = self._prompts, {}
        self._states, self.last_state = TurnForV1Client(), _IDLE
        for request in prompts.values():
            if data is None:
                request.answer({"stopReason": "cancelled"})
            else:
                request.fail(data)

    def _give(self, answers: list[Object]) -> None:
        for answer in answers:
            request = self._prompts.pop(answer["id"], None)
            if request is not None:
                request.pass_on(encode(answer))
