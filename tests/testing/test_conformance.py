"""The scripted agent obeys every ACP rule that the checker can exercise with it."""

import pytest

from dragoman.testing import steps
from tests.commands import scripted

TURN = [
    steps.Think("Let me see."),
    steps.Say("Hello."),
    steps.AskPermission(),
    steps.Update({"sessionUpdate": "plan", "entries": [{"content": "Rest", "priority": "low", "status": "pending"}]}),
]


@pytest.mark.acp_agent(*scripted(TURN))
def test_the_scripted_agent_passes_the_checker(acp_agent):
    acp_agent.assert_conforms()
