"""The turns of a session: prompts that wait for their answer, and the state of the session, in both versions of ACP.

In version 1 a turn is a request that lasts until its answer. In version 2 a prompt is answered once its message is
inserted, and state updates report the rest. All viewers of a session share its turns:

    agent    viewer of version 1                       viewer of version 2
    v1       prompts are forwarded unchanged           a prompt is answered at the first sign of work on it,
                                                       further prompts are held until the turn ends,
                                                       and the viewer receives states made from the turns
    v2       a prompt is answered at the end of        prompts and states are forwarded unchanged
             the work in which it was inserted
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery import UserBlock, read_user_message
from dragoman.bridge.sessions.prompt_queue import PromptQueue
from dragoman.bridge.sessions.repeated_prompts import RepeatedPrompts
from dragoman.bridge.viewers import Viewer, ViewerRequest
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol.prompt_echo import PromptEcho
from dragoman.protocol.translate.envelope import Object, as_object
from dragoman.protocol.translate.turn import MAX_HELD_PROMPTS, TurnForV1Client, V2TurnState
from dragoman.wire.envelope import encode, fields_of

_MAX_ECHOES = 8
"""Messages of one turn that the agent may repeat: its prompt and its steering messages."""

_IDLE: Object = {"sessionUpdate": "state_update", "state": "idle"}


class SessionTurns:
    """The running and waiting prompts of one session, with the state that the other version needs."""

    def __init__(self, earlier_answers: Mapping[str, bytes | None]) -> None:
        self.repeated = RepeatedPrompts(earlier_answers)
        self.held: list[ViewerRequest] = []
        """Prompts of version 2 that wait for the end of the turn of an agent of version 1."""
        self.queue = PromptQueue()
        """Prompts that users queued until the end of the turn."""
        self.last_state: Object = _IDLE
        """The last state that viewers of version 2 received."""
        self._inserting: list[tuple[ViewerRequest, str]] = []
        """Prompts of version 2 before the first sign of work on them, with the ids of their messages."""
        self._echoes: list[PromptEcho] = []
        self._states = TurnForV1Client()
        self._prompts: dict[int, ViewerRequest] = {}
        """Prompts of version 1 at an agent of version 2, by their ids at the agent."""

    # An agent of version 1.

    def hold(self, request: ViewerRequest) -> None:
        """Hold a prompt until the end of the turn. Raises RpcError if too many wait."""
        if len(self.held) >= MAX_HELD_PROMPTS:
            problem = f"{MAX_HELD_PROMPTS} prompts are already waiting; send this one when a turn has ended"
            raise RpcError(ErrorCode.INTERNAL_ERROR, problem)
        self.held.append(request)

    def insert(self, request: ViewerRequest, message_id: str) -> None:
        """Expect work on a prompt of version 2."""
        self._inserting.append((request, message_id))

    @property
    def expects_echo(self) -> bool:
        """Whether the agent may repeat a prompt."""
        return bool(self._echoes)

    def expect_echo(self, prompt: list[Raw]) -> None:
        """Remember a prompt that was sent to the agent, because the agent may repeat it."""
        self._echoes.append(PromptEcho(msgspec.json.decode(each, type=UserBlock).said for each in prompt))
        del self._echoes[:-_MAX_ECHOES]

    def is_echo(self, line: bytes) -> bool:
        """Return whether an update repeats a part of a prompt, which the journal has already."""
        message = read_user_message(line)
        if message is None or len(message.blocks) != 1:
            return False
        return any(echo.consume(message.blocks[0].said, message.message_id) for echo in self._echoes)

    def forget_echoes(self) -> None:
        """Forget the prompts that the agent may repeat, because the turn has ended."""
        self._echoes.clear()

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
        """Answer held prompts as cancelled, all or one of a viewer. Return whether there were any."""
        found = [each for each in self.held if viewer is None or (each.viewer is viewer and each.id == id_)]
        for request in found:
            self.held.remove(request)
            request.refuse(ErrorCode.REQUEST_CANCELLED, "the prompt was not inserted")
        return bool(found)

    # An agent of version 2.

    @property
    def is_active(self) -> bool:
        """Whether an agent of version 2 is working."""
        return self._states.state is V2TurnState.ACTIVE

    @property
    def has_prompts(self) -> bool:
        """Whether prompts of version 1 wait for an agent of version 2."""
        return bool(self._prompts)

    def send(self, agent_id: bytes, request: ViewerRequest) -> None:
        """Remember a prompt of version 1 that was sent to an agent of version 2."""
        self._prompts[int(agent_id)] = request
        prompt = msgspec.json.decode(fields_of(request.params).get("prompt", b"[]"))
        self._states.prompt({"id": int(agent_id), "params": {"prompt": prompt}})

    def answered(self, agent_id: bytes, line: bytes) -> None:
        """Handle the agent's answer to a prompt of version 1, which has the message id or an error."""
        response = {**as_object(msgspec.json.decode(line)), "id": int(agent_id)}
        if self._states.is_pending(int(agent_id)):
            self._send_answers(self._states.answered(response))

    def follow_state(self, update: Object) -> None:
        """Apply a state of the agent, and answer the prompts whose work has ended."""
        self.last_state = update
        self._send_answers(self._states.apply_state(update))

    def find_echo(self, update: Object) -> Viewer | None:
        """Return the viewer of version 1 whose prompt a user message repeats."""
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
        """End all prompts, because the agent has ended (with the data of its failure) or the session was closed."""
        prompts, self._prompts = self._prompts, {}
        self._states, self.last_state = TurnForV1Client(), _IDLE
        for request in prompts.values():
            if data is None:
                request.answer({"stopReason": "cancelled"})
            else:
                request.fail(data)

    def _send_answers(self, answers: list[Object]) -> None:
        for answer in answers:
            request = self._prompts.pop(answer["id"], None)
            if request is not None:
                request.pass_on(encode(answer))
