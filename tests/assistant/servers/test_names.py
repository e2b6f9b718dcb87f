"""The names of server tools for the model."""

import re

from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.servers.mcp_tool import MAX_LENGTH, name_tools

PROVIDERS = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")


def test_name_joins_server_and_tool():
    assert name_tools([("time", "get_current_time")]) == {("time", "get_current_time"): "time__get_current_time"}


def test_foreign_letters_are_replaced():
    assert list(name_tools([("my server", "größe/prüfen")]).values()) == ["my_server__gr_e_pr_fen"]


def test_colliding_names_are_made_unique():
    names = name_tools([("a", "b.c"), ("a", "b/c"), ("a__b", "c")])
    assert len(set(names.values())) == 3


def test_name_of_another_tool_is_not_reused():
    (name,) = name_tools([("read", "file")], taken=["read__file"]).values()
    assert name != "read__file"


def test_name_does_not_depend_on_the_server_order():
    pairs = [("a", "x.y"), ("a", "x/y"), ("b", "z")]
    assert name_tools(pairs) == name_tools(reversed(pairs))


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), unique=True, max_size=30))
def test_names_are_unique_and_valid_for_every_provider(pairs):
    names = name_tools(pairs)
    assert set(names) == set(pairs)
    assert len(set(names.values())) == len(pairs)
    assert all(len(name) <= MAX_LENGTH and PROVIDERS.fullmatch(name) for name in names.values())
