"""A request of the agent that viewers are asked.

A question (a permission, an elicitation) goes to everybody who can answer it, and the first answer settles it. Any
other request (a file, a terminal, an extension) goes to one viewer, and to another if that one leaves without one.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import fields_of, make_error, make_result, parse_list, string_of
from dragoman.bridge.hub.abilities import ELICIT
from dragoman.errors import ErrorCode
from dragoman.protocol.permission_options import find_default

if TYPE_CHECKING:
    from dragoman.bridge.hub.session import Session
    from dragoman.bridge.hub.viewer import Viewer

PERMISSION = "session/request_permission"
QUESTIONS = frozenset({PERMISSION, ELICIT})

By = Literal["viewer", "timeout", "cancel", "agent"]


class Ask:
    """One request of the agent, until it is answered."""

    def __init__(
        self,
        agent_id: bytes,
        method: str,
        params: Raw,
        line: bytes,
        *,
        session: "Session | None" = None,
        only: "Viewer | None" = None,
    ) -> None:
        self.agent_id = agent_id
        self.method = method
        self.params = params
        self.line = line
        self.session = session
        self.only = only
        """The viewer whose own request it is about, if it is about one."""
        self.is_question = method in QUESTIONS
        self.asked: dict[Viewer, bytes] = {}
        """Who was asked and has not answered, with the id that the request has there."""
        self.refused_by: set[Viewer] = set()
        """Who answered with an error."""
        self.last_error: bytes | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.settled = False

    def refusal(self) -> bytes:
        """Answer for nobody: as a person would who does not want it."""
        if self.method == ELICIT:
            return make_result(self.agent_id, {"action": "decline"})
        option = self._rejecting_option()
        if option is None:
            problem = "nobody was there to answer, and none of the options is a refusal"
            return make_error(self.agent_id, ErrorCode.INTERNAL_ERROR, problem)
        return make_result(self.agent_id, {"outcome": {"outcome": "selected", "optionId": option}})

    def cancellation(self) -> bytes:
        """Answer for a turn that was cancelled."""
        if self.method == ELICIT:
            return make_result(self.agent_id, {"action": "cancel"})
        return make_result(self.agent_id, {"outcome": {"outcome": "cancelled"}})

    def stop_timer(self) -> None:
        """Wait no longer for somebody to come."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _rejecting_option(self) -> Raw | None:
        options = [fields_of(each) for each in parse_list(fields_of(self.params).get("options"))]
        named = [fields for fields in options if "optionId" in fields]
        position = find_default([string_of(fields.get("kind")) for fields in named], "reject")
        return None if position is None else named[position]["optionId"]


def outcome_of(answer: bytes) -> Any:
    """Give the result of an answer, to be told to those who did not give it; None if it is an error."""
    result = fields_of(Raw(answer)).get("result", UNSET)
    return None if result is UNSET else result
