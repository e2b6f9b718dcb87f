"""Changes of single fields in lines leave all other bytes as they are."""

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bridge.envelope import (
    OrdinaryRun,
    add_cursor,
    add_cursors,
    ordinary_runs,
    rename_session,
    session_of_update,
)
from dragoman.wire import MAX_NESTING
from dragoman.wire.envelope import with_id
from tests.table import each_row

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.just("_meta"), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(TEXT | st.sampled_from(["_meta", "dragoman", "update"]), JSON, max_size=4)


@st.composite
def notifications(draw):
    """Draw a notification with its members in any order, with or without white space."""
    params = {"sessionId": draw(TEXT), **draw(OBJECT)}
    params["sessionId"] = draw(TEXT)
    members = [("jsonrpc", "2.0"), ("method", "session/update"), ("params", params)]
    members += [item for item in draw(OBJECT).items() if item[0] not in ("id", "jsonrpc", "method", "params")]
    message = dict(draw(st.permutations(members)))
    return json.dumps(message, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))).encode()


@given(notifications())
def test_only_a_cursor_is_added(line):
    before, after = json.loads(line), json.loads(add_cursor(line, b"abc.7", 5))
    meta = after["params"].pop("_meta")
    assert meta.pop("dragoman") == {"cursor": "abc.7", "time": 5}
    old = before["params"].pop("_meta", {})
    assert meta == {key: value for key, value in (old if isinstance(old, dict) else {}).items() if key != "dragoman"}
    assert after == before


def chunk(session="s", text="x", kind="agent_message_chunk", **more):
    """Return the line of an update, as most agents write it."""
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}, **more}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


@given(st.lists(notifications() | st.builds(chunk, TEXT, TEXT), min_size=1, max_size=5), st.integers(1, 10**9))
def test_cursors_of_many_lines_equal_those_of_single_lines(lines, first):
    added = add_cursors(b"\n".join([*lines, b""]), b"abc", first, 5)
    each = [add_cursor(line, b"abc.%d" % number, 5) for number, line in enumerate(lines, first)]
    assert list(map(json.loads, added.split(b"\n")[:-1])) == list(map(json.loads, each))


@given(st.lists(st.builds(chunk, TEXT, TEXT, st.sampled_from(["agent_message_chunk", "plan"])), min_size=1, max_size=8))
def test_updates_are_cut_into_runs_of_one_session_each(lines):
    runs = ordinary_runs(b"\n".join([*lines, b""]))
    assert b"".join([run.lines for run in runs]) == b"\n".join([*lines, b""])
    for run in runs:
        named = [json.loads(line)["params"]["sessionId"] for line in run.lines.split(b"\n")[:-1]]
        assert named == [run.session_id] * run.count
    assert all(one.session_id != other.session_id for one, other in pairwise(runs))


LIAR = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"mine","update":%b}%b}'
PLAN = b'{"sessionUpdate":"plan"}'
LIES = {
    "again": LIAR % (PLAN + b',"sessionId":"yours"', b""),
    "escaped": LIAR % (PLAN + rb',"session\u0049d":"yours"', b""),
    "params again": LIAR % (PLAN, b',"params":{"sessionId":"yours","update":{"sessionUpdate":"plan"}}'),
    "before": LIAR.replace(b'{"sessionId":', b'{"sessionId":"no","sessionId":"no","sessionId":')
    % (PLAN + b',"sessionId":"yours"', b""),
    "nested": LIAR.replace(b'"mine"', b'"yours"') % (b'{"sessionUpdate":"plan","params":{"sessionId":"mine"}}', b""),
}


@pytest.mark.parametrize("line", LIES.values(), ids=LIES)
def test_session_of_a_line_matches_every_decoder(line):
    assert json.loads(line)["params"]["sessionId"] == "yours"
    assert ordinary_runs(line + b"\n") == [OrdinaryRun("yours", line + b"\n", 1)]
    assert session_of_update(line) == "yours"
    assert [run.session_id for run in ordinary_runs(chunk("mine") + b"\n" + line + b"\n")] == ["mine", "yours"]


NOT_ORDINARY = {
    "a request": chunk().replace(b'{"jsonrpc":"2.0",', b'{"jsonrpc":"2.0","id":1,'),
    "an id of null": chunk().replace(b'{"jsonrpc":"2.0",', b'{"jsonrpc":"2.0","id":null,'),
    "an id at the end": chunk()[:-1] + b',"id":"x"}',
    "an answer": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "another method": chunk().replace(b"session/update", b"session/other"),
    "another method, given last": chunk()[:-1] + b',"method":"session/other"}',
    "another order": b'{"method":"session/update",' + chunk().replace(b'"method":"session/update",', b"")[1:],
    "a change of mode": chunk(kind="current_mode_update"),
    "a change, given last": chunk()[:-3] + b',"sessionUpdate":"session_info_update"}}}',
    "a notice": chunk(kind="notice"),
    "no JSON": chunk()[:-1],
    "two values": chunk() + b" {}",
    "no UTF-8": chunk(text="y").replace(b"y", b"\xff"),
    "a carriage return": chunk() + b"\r",
    "blank": b"",
    "white space": b"  ",
    "white space in front": b" " + chunk(),
    "too deep": chunk(text="y").replace(b'"y"', (MAX_NESTING - 3) * b"[" + (MAX_NESTING - 3) * b"]"),
}


@each_row("line", NOT_ORDINARY.values())
def test_block_with_another_kind_of_line_is_read_line_by_line(line):
    assert ordinary_runs(chunk() + b"\n" + line + b"\n" + chunk() + b"\n") is None
    assert ordinary_runs(line + b"\n") is None


@given(notifications())
def test_session_of_an_update_is_found_at_any_position(line):
    assert session_of_update(line) == json.loads(line)["params"]["sessionId"]


@given(notifications(), st.sampled_from([b"1", b'"x"', b"null"]))
def test_only_the_id_changes(line, id_):
    assert json.loads(with_id(line, id_)) == json.loads(line) | {"id": json.loads(id_)}


@given(notifications(), TEXT)
def test_only_the_session_is_renamed(line, session):
    before = json.loads(line)
    before["params"]["sessionId"] = session
    assert json.loads(rename_session(line, session)) == before


@given(st.binary() | JSON.map(msgspec.json.encode))
def test_other_message_has_no_session(line):
    assert session_of_update(line) is None


def test_request_is_not_an_update():
    line = b'{"jsonrpc":"2.0","id":1,"method":"session/update","params":{"sessionId":"s"}}'
    assert session_of_update(line) is None
    assert session_of_update(line.replace(b'"id":1,', b"")) == "s"
