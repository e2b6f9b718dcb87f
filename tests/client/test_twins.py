"""The client without `async` has everything that the one with it has."""

import inspect

import pytest

from dragoman.client import (
    RemoteAgent,
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
from dragoman.client.internal import is_internal
from dragoman.testing import steps
from tests.client.driving import END, agent_of, chunk
from tests.commands import raw, scripted

TWINS = [(RemoteAgent, SyncAgent), (Session, SyncSession), (Turn, SyncTurn)]
CALLS = [(connect, connect_sync), (connect_url, connect_url_sync)]
RENAMED = {"aclose": "close"}
INTERNAL = {"link", "check", "on_detach"}  # attributes that the parts of the client use among themselves
FORMER = {"strays"}


def public(kind, instance):
    """Return the names of the methods and attributes that users have."""
    names = {name for name in [*dir(kind), *vars(instance)] if not name.startswith("_")}
    return {name for name in names if not is_internal(getattr(kind, name, None))} - INTERNAL - FORMER


def parameters(function):
    """Return the names, kinds and defaults of a function's parameters."""
    given = inspect.signature(inspect.unwrap(function)).parameters.values()
    return [(each.name, each.kind, each.default) for each in given]


async def test_every_public_name_of_a_class_has_a_twin_with_the_same_parameters():
    async with agent_of(raw({}, [chunk("a"), END])) as agent:
        session = await agent.new_session("/")
        instances = {RemoteAgent: agent, Session: session}
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
def test_the_functions_take_the_same_arguments(call, twin):
    assert parameters(twin) == parameters(call)


def test_a_result_is_had_without_async():
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
