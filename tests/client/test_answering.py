"""The answers to the agent's permission requests and elicitations."""

import json

import pytest

from dragoman.client.events import PermissionRequested
from dragoman.client.policies import Decision, allow_all
from dragoman.client.services.elicitation import accept
from tests.client.driving import END, read, session_with, text
from tests.commands import raw

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
    {"optionId": "not-now", "name": "Not now", "kind": "reject_once"},
]
CALL = {"update": {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Dig", "rawInput": {"depth": 3}}}
PARAMS = {"sessionId": "s", "toolCall": {"toolCallId": "c", "status": "pending"}, "options": OPTIONS}
ASK = {"id": 5, "method": "session/request_permission", "params": PARAMS}


class Says:
    def __init__(self, decision):
        self._decision = decision
        self.questions = []

    async def decide(self, question):
        self.questions.append(question)
        if isinstance(self._decision, Exception):
            raise self._decision
        return self._decision


async def events_of(policy, ask=ASK):
    async with session_with(raw({}, [CALL, ask, {"hear": "answer"}, END]), policy=policy) as session:
        return await read(session.prompt("go"))


async def answer_to(policy):
    events = await events_of(policy)
    assert sum(isinstance(event, PermissionRequested) for event in events) == 1
    return json.loads(text(events))["result"]["outcome"]


@pytest.mark.parametrize(
    ("decision", "option"),
    [
        (Decision("allow"), "once"),
        (Decision("allow", "always"), "always"),
        (Decision("deny"), "not-now"),
        (Decision("deny", "never"), "never"),
        (Decision("deny", "always"), "not-now"),
        (RuntimeError("a bug in the policy"), "not-now"),
        (None, "not-now"),
    ],
)
async def test_decision_selects_a_matching_option(decision, option):
    policy = None if decision is None else Says(decision)
    assert await answer_to(policy) == {"outcome": "selected", "optionId": option}


async def test_allow_without_an_allow_once_option_is_denied(caplog):
    options = [OPTIONS[0], OPTIONS[3]]
    events = await events_of(allow_all(), {**ASK, "params": {**PARAMS, "options": options}})
    [asked] = [event for event in events if isinstance(event, PermissionRequested)]
    assert (asked.decision.verdict, "no option to allow it once" in asked.decision.reason) == ("deny", True)
    assert json.loads(text(events))["result"]["outcome"]["optionId"] == "not-now"
    assert "Dig was denied" in caplog.text


async def test_question_contains_the_whole_tool_call():
    policy = Says(Decision("allow"))
    await answer_to(policy)
    [question] = policy.questions
    assert (question.session_id, question.cwd) == ("s", "/")
    assert (question.tool_call.title, question.tool_call.raw_input) == ("Dig", {"depth": 3})
    assert [option.option_id for option in question.options] == ["always", "once", "never", "not-now"]


async def answer_to_elicitation(elicit, **scope):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"mode": "form", "message": "Who?", "requestedSchema": schema, **scope}
    ask = {"id": "e", "method": "elicitation/create", "params": params}
    async with session_with(raw({}, [ask, {"hear": "answer"}, END]), elicit=elicit) as session:
        return json.loads(text(await read(session.prompt("go"))))


@pytest.mark.parametrize("scope", [{"sessionId": "s"}, {"requestId": 3}])
async def test_callback_answers_an_elicitation(scope):
    async def elicit(request):
        assert request.message == "Who?"
        return accept({"name": "Ada"})

    answer = await answer_to_elicitation(elicit, **scope)
    assert answer["result"] == {"action": "accept", "content": {"name": "Ada"}}


async def test_a_callback_that_fails_declines():
    async def elicit(request):
        raise RuntimeError("a bug in the callback")

    assert (await answer_to_elicitation(elicit, sessionId="s"))["result"] == {"action": "decline"}
