"""Lines taken apart and put together: whatever is in them stays as it is."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bridge.envelope import add_cursor, rename_session, session_of_update, with_id

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.just("_meta"), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(TEXT | st.sampled_from(["_meta", "dragoman", "update"]), JSON, max_size=4)


@st.composite
def notifications(draw):
    """Any notification, its members in any order, with white space or without."""
    params = {"sessionId": draw(TEXT), **draw(OBJECT)}
    params["sessionId"] = draw(TEXT)
    members = [("jsonrpc", "2.0"), ("method", "session/update"), ("params", params)]
    members += [item for item in draw(OBJECT).items() if item[0] not in ("id", "jsonrpc", "method", "params")]
    message = dict(draw(st.permutations(members)))
    return json.dumps(message, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))).encode()


@given(notifications())
def test_a_cursor_is_added_and_nothing_else_changes(line):
    before, after = json.loads(line), json.loads(add_cursor(line, b"abc.7", 5))
    meta = after["params"].pop("_meta")
    assert meta.pop("dragoman") == {"cursor": "abc.7", "time": 5}
    old = before["params"].pop("_meta", {})
    assert meta == {key: value for key, value in (old if isinstance(old, dict) else {}).items() if key != "dragoman"}
    assert after == before


@given(notifications())
def test_the_session_of_an_update_is_found_wherever_it_stands(line):
    assert session_of_update(line) == json.loads(line)["params"]["sessionId"]


@given(notifications(), st.sampled_from([b"1", b'"x"', b"null"]))
def test_an_id_is_all_that_changes(line, id_):
    assert json.loads(with_id(line, id_)) == json.loads(line) | {"id": json.loads(id_)}


@given(notifications(), TEXT)
def test_a_session_is_all_that_is_renamed(line, session):
    before = json.loads(line)
    before["params"]["sessionId"] = session
    assert json.loads(rename_session(line, session)) == before


@given(st.binary() | JSON.map(msgspec.json.encode))
def test_what_is_no_update_has_no_session(line):
    assert session_of_update(line) is None


def test_a_request_is_no_update():
    line = b'{"jsonrpc":"2.0","id":1,"method":"session/update","params":{"sessionId":"s"}}'
    assert session_of_update(line) is None
    assert session_of_update(line.replace(b'"id":1,', b"")) == "s"
