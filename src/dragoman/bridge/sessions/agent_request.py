"""A request of the agent to its client, from its arrival until it is settled."""

import asyncio
from typing import Literal

from msgspec import Raw

from dragoman.bridge.envelope import ELICIT, parse_list
from dragoman.bridge.sessions.session import ServedSession
from dragoman.bridge.viewers import Subscription, Viewer
from dragoman.errors import ErrorCode
from dragoman.protocol import methods
from dragoman.protocol.permission_options import find_default
from dragoman.wire.envelope import fields_of, make_error, make_result, string_of

PERMISSION = methods.SESSION_REQUEST_PERMISSION.name
QUESTIONS = frozenset({PERMISSION, ELICIT})

SettledBy = Literal["viewer", "link", "timeout", "cancel", "agent"]


class AgentRequest:
    """One request of the agent, until it is answered."""

    def __init__(
        self,
        agent_id: bytes,
        method: str,
        params: Raw,
        line: bytes,
        *,
        session: ServedSession | None = None,
        only: Viewer | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.method = method
        self.params = params
        self.line = line
        self.session = session
        self.only = only
        """The viewer whose request it is about, if any. Only that viewer can answer."""
        self.asked: dict[Viewer, bytes] = {}
        """Viewers that have not answered yet, with the id of the request at each."""
        self.refused_by: set[Viewer] = set()
        """Viewers that answered with an error."""
        self.timer: asyncio.TimerHandle | None = None
        """Runs while no connected viewer can answer."""
        self.settled_by: SettledBy | None = None
        self.result: Raw | None = None
        """The result that settled it. None while it is open, and for an error."""

    @property
    def is_settled(self) -> bool:
        """Whether it was answered, or no longer needs an answer."""
        return self.settled_by is not None

    @property
    def is_question(self) -> bool:
        """Whether the user must answer it."""
        return self.method in QUESTIONS

    def refusal(self) -> bytes:
        """Return the answer for the agent if the user does not answer: the rejecting option, or else an error."""
        if self.method == ELICIT:
            return make_result(self.agent_id, {"action": "decline"})
        option = self._rejecting_option()
        if option is None:
            problem = "no viewer could answer, and no option rejects the request"
            return make_error(self.agent_id, ErrorCode.INTERNAL_ERROR, problem)
        return make_result(self.agent_id, {"outcome": {"outcome": "selected", "optionId": option}})

    def cancellation(self) -> bytes:
        """Return the answer for a cancelled turn."""
        if self.method == ELICIT:
            return make_result(self.agent_id, {"action": "cancel"})
        return make_result(self.agent_id, {"outcome": {"outcome": "cancelled"}})

    def stop_timer(self) -> None:
        """Stop the timeout for a viewer to connect."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def subscription_of(self, viewer: Viewer) -> Subscription | None:
        """Return a viewer's subscription to the session of the request."""
        return self.session.subscriptions.get(viewer) if self.session else None

    def options(self) -> list[dict[str, Raw]]:
        """Return the options of a permission request."""
        options = [fields_of(each) for each in parse_list(fields_of(self.params).get("options"))]
        return [fields for fields in options if "optionId" in fields]

    def _rejecting_option(self) -> Raw | None:
        named = self.options()
        position = find_default([string_of(fields.get("kind")) for fields in named], "reject")
        return None if position is None else named[position]["optionId"]
