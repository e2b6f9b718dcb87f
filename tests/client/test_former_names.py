"""Names that were documented before their present ones go on working."""

from dragoman import client
from dragoman.client import PolicyRule, Question, Read, Several, ToolAction, ToolCallState, Write
from tests.client.driving import session_with
from tests.commands import raw


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
