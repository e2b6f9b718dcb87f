"""Names that were documented before their present ones go on working."""

from dragoman import client
from dragoman.client import (
    PolicyRule,
    Question,
    Read,
    Several,
    ToolAction,
    ToolCallState,
    Write,
    errors,
    events,
    policies,
)
from tests.client.driving import session_with
from tests.commands import raw

FORMER = """
Asked BadAddress BadDirectory BadRule CancelIgnored CommandsChanged ConnectFailed Content Decision Deed Done Event
Foreign MissingCapability ModeChanged NeedsLogin NotAnAgent NotOffered NotRecorded Noticed OptionsChanged Other
OtherContent PlanChanged Policy PolicyRule PromptRunning Question Read Refused Rule Run SessionClosed Several
StartTimeout Text Thought TitleChanged ToolAction ToolChanged TrajectoryUnreadable TurnStopped UsageChanged UserText
Withdrawn Write WrongVersion allow_all allow_reads ask deny_all rules
"""


def test_names_that_moved_into_groups_are_still_found_in_the_package():
    groups = [client, events, policies, errors]
    assert [name for name in FORMER.split() if not hasattr(client, name)] == []
    moved = set(FORMER.split()) - {"Content", "Deed", "Rule"}
    assert [name for name in moved if sum(name in group.__all__ for group in groups) != 1] == []


def test_the_former_names_of_classes_are_the_present_classes():
    assert client.Deed == ToolAction
    assert client.Rule is PolicyRule


def test_the_action_of_a_question_has_its_former_name_too():
    action = Several((Read("/a"), Write("/b")))
    question = Question("s", ToolCallState("c"), (), "/", action)
    assert question.deed is question.action
    assert action.deeds == action.actions


async def test_events_between_turns_have_their_former_name_too():
    async with session_with(raw({})) as session:
        assert session.strays is session.events_between_turns
