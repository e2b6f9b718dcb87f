"""The synchronous client has everything that the asynchronous one has."""

import inspect

import pytest

from dragoman.client import (
    AgentConnection,
    Session,
    SyncAgent,
    SyncSession,
    SyncTurn,
    Turn,
    connect,
    connect_sync,
    connect_url,
    connect_url_sync,
)
from dragoman.testing import steps
from tests.client.driving import END, agent_of, chunk
from tests.commands import raw, scripted

TWINS = [(AgentConnection, SyncAgent), (Session, SyncSession), (Turn, SyncTurn)]
CALLS = [(connect, connect_sync), (connect_url, connect_url_sync)]
RENAMED = {"aclose": "close"}
INTERNAL = {"link", "check", "on_detach"}  # attributes for internal use by the client


def public(kind, instance):
    """Return the names of the public methods and attributes."""
    names = {name for name in [*dir(kind), *vars(instance)] if not name.startswith("_")}
    return {name for name in names if not hasattr(getattr(kind, name, None), "__dragoman_internal__")} - INTERNAL


def parameters(function):
    """Return the names, kinds and defaults of a function's parameters."""
    given = inspect.signature(inspect.unwrap(function)).parameters.values()
    return [(each.name, each.kind, each.default) for each in given]


async def test_every_public_method_has_a_synchronous_twin():
    async with agent_of(raw({}, [chunk("a"), END])) as agent:
        session = await agent.new_session("/")
        instances = {AgentConnection: agent, Session: session}
        turn = session.prompt("go")
        for kind, twin in TWINS:
            instance = instances.get(kind)
            names = public(kind, instance) if instance else public(kind, type("Empty", (), {})())
            made = twin(None, instance or turn)
            for name in sorted(names):
                other = RENAMED.get(name, name)
                assert hasattr(made, other), f"{twin.__name__} has no {other}"
                if inspect.isfunction(getattr(kind, name, None)):
                    assert parameters(getattr(twin, other)) == parameters(getattr(kind, name)), name
        await turn.aclose()


@pytest.mark.parametrize(("call", "twin"), CALLS)
def test_synchronous_functions_have_the_same_parameters(call, twin):
    assert parameters(twin) == parameters(call)


def test_synchronous_client_returns_a_result():
    with connect_sync(scripted([steps.Say("a"), steps.Say("b")])) as agent:
        session = agent.new_session("/")
        assert repr(agent).startswith("<SyncAgent dragoman-scripted-agent ")
        assert repr(session) == f"<SyncSession {session.id} in /, idle>"
        assert session.run("go").text == "ab"
        with session.prompt("go") as turn:
            next(turn)
            assert turn.result(timeout_s=30).text == "ab"
        assert turn.is_over
        assert agent.open_sessions[0].id == session.id
