"""Viewers that do not read, too many viewers, and viewers over HTTP."""

import asyncio
import json
import time

import pytest

from dragoman.bridge.problem import TooManyViewersError
from tests.bridge.viewers import (
    A_DAY_S,
    LOADING,
    OPTIONS,
    PATIENCE_S,
    SeenEvent,
    agent,
    events_of,
    join,
    serve,
    steps_text,
)
from tests.waiting import until


class HttpViewer:
    """A viewer over HTTP, which has one stream for the connection and one per session."""

    def __init__(self, served):
        self.viewer = served.open_viewer()
        self._next = 0

    async def initialize(self, **capabilities):
        params = {"protocolVersion": 1, "clientCapabilities": capabilities}
        line = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        return json.loads(await self.viewer.greet(line.encode()))

    def request(self, method, params):
        self._next += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        self.viewer.receive(line.encode())
        return self._next

    async def open_session(self, connection):
        self.request("session/new", {"cwd": "/work", "mcpServers": []})
        events = await read_until(connection, lambda message: "result" in message)
        return json.loads(events[-1].data)["result"]["sessionId"]

    def prompt(self, session, *steps):
        text = steps_text(*steps)
        return self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})


async def read_until(stream, condition, max_bytes=65536):
    events = []
    async with asyncio.timeout(PATIENCE_S):
        while True:
            batch = events_of(await stream.next_batch(max_bytes))
            assert batch
            events += batch
            if any(condition(json.loads(event.data)) for event in batch):
                return events


def texts(events):
    messages = [json.loads(event.data) for event in events]
    return [m["params"]["update"]["content"]["text"] for m in messages if m.get("method") == "session/update"]


def answers(request_id):
    return lambda message: message.get("id") == request_id and "method" not in message


async def test_http_initialize_is_answered_at_once_with_a_connection_id(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        answer = await one.initialize()
        assert answer["result"]["connectionId"] == one.viewer.id
        assert served.delivery.viewers.get(one.viewer.id) is one.viewer
        other = served.open_viewer()
        refused = json.loads(await other.greet(b'{"jsonrpc":"2.0","id":3,"method":"session/new"}'))
        assert refused["id"] == 3
        assert refused["error"]["code"] == -32600
        assert json.loads(await other.greet(b"{"))["error"]["code"] == -32700


async def test_http_messages_are_on_the_right_streams(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        connection = one.viewer.connection_stream(None)
        session = await one.open_session(connection)
        assert one.viewer.knows(session)
        stream = one.viewer.session_stream(session, None)
        prompt = one.prompt(session, {"flood": 3}, {"ask": OPTIONS})
        events = await read_until(stream, lambda message: message.get("method") == "session/request_permission")
        asked = json.loads(events[-1].data)
        one.viewer.receive(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {}}}).encode())
        events += await read_until(stream, answers(prompt))
        assert texts(events)[:3] == ["0", "1", "2"]
        ids = [event.id for event in events]
        assert len(set(ids)) == len(ids)
        echo = one.request("_echo", {"a": 1})
        assert len(await read_until(connection, answers(echo))) == 1


async def test_http_refusal_is_on_the_stream_of_its_session(tmp_path):
    async with serve(tmp_path, max_requests=1) as served:
        one = HttpViewer(served)
        await one.initialize()
        session = await one.open_session(one.viewer.connection_stream(None))
        stream = one.viewer.session_stream(session, None)
        first, second = one.prompt(session, {"cancel": True}), one.prompt(session)
        (refusal,) = await read_until(stream, answers(second))
        assert "1 requests" in json.loads(refusal.data)["error"]["data"]
        cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
        one.viewer.receive(json.dumps(cancel).encode())
        await read_until(stream, answers(first))


async def test_broken_stream_continues_after_the_last_received_event(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        connection = one.viewer.connection_stream(None)
        session = await one.open_session(connection)
        stream = one.viewer.session_stream(session, None)
        prompts = [one.prompt(session, {"flood": 5}) for _ in range(3)]
        everything = await read_until(stream, answers(prompts[-1]))
        for last in range(len(everything)):
            again = one.viewer.session_stream(session, everything[last].id.decode())
            rest = everything[last + 1 :]
            if rest:
                seen = await read_until(again, answers(prompts[-1]))
                assert [event.data for event in seen] == [event.data for event in rest]
                everything[last + 1 :] = seen


async def test_answers_on_a_broken_connection_stream_are_sent_again(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        stream = one.viewer.connection_stream(None)
        requests = [one.request("_echo", {"n": number}) for number in range(4)]
        events = await read_until(stream, answers(requests[-1]))
        again = one.viewer.connection_stream(events[1].id.decode())
        assert await stream.next_batch() == []
        seen = await read_until(again, answers(requests[-1]))
        assert [event.data for event in seen] == [event.data for event in events[2:]]


async def test_stream_broken_before_its_first_event_loses_no_answer(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        lost = one.viewer.connection_stream(None)
        created = one.request("session/new", {"cwd": "/work", "mcpServers": []})
        await read_until(lost, answers(created))
        reading_on = asyncio.create_task(lost.next_batch())  # everything was sent into a broken network
        await until(lambda: lost.is_hungry)
        connection = one.viewer.connection_stream(None)
        assert await reading_on == []
        (answer,) = await read_until(connection, answers(created))
        session = json.loads(answer.data)["result"]["sessionId"]
        lost = one.viewer.session_stream(session, None)
        prompt = one.prompt(session, {"say": "x"}, {"ask": OPTIONS})
        (*_, ask) = await read_until(lost, lambda message: message.get("method") == "session/request_permission")
        ask_id = json.loads(ask.data)["id"]
        await read_until(one.viewer.session_stream(session, None), lambda message: message.get("id") == ask_id)
        one.viewer.receive(json.dumps({"jsonrpc": "2.0", "id": ask_id, "result": {}}).encode())
        await read_until(one.viewer.session_stream(session, None), answers(prompt))


async def test_stream_reopened_without_an_id_starts_after_the_last_named_event(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        session = await one.open_session(one.viewer.connection_stream(None))
        stream = one.viewer.session_stream(session, None)
        first = one.prompt(session, {"say": "first"})
        events = await read_until(stream, answers(first))
        stream = one.viewer.session_stream(session, events[-1].id.decode())
        second = one.prompt(session, {"say": "second"})
        await read_until(stream, answers(second))
        stream = one.viewer.session_stream(session, None)
        third = one.prompt(session, {"say": "third"})
        events = await read_until(stream, answers(third))
        assert texts(events) == ["second", "third"]
        assert [json.loads(event.data).get("id") for event in events] == [None, second, None, third]


async def test_omitted_event_id_replays_the_whole_stream(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        connection = one.viewer.connection_stream(None)
        session = await one.open_session(connection)
        (last,) = await read_until(connection, answers(one.request("_echo", {})))
        one.viewer.connection_stream(last.id.decode())
        lost = one.viewer.session_stream(session, None)
        prompt = one.prompt(session, {"flood": 3})
        everything = await read_until(lost, answers(prompt))
        reading_on = asyncio.create_task(lost.next_batch())
        await until(lambda: lost.is_hungry)
        again = await read_until(one.viewer.session_stream(session, None), answers(prompt))
        assert await reading_on == []
        assert again == everything


async def test_prompt_without_a_stream_loses_no_earlier_answer(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        session = await one.open_session(one.viewer.connection_stream(None))
        broken = one.viewer.session_stream(session, None)
        last = broken.event_id().decode()
        first = one.prompt(session, {"say": "first"})
        await read_until(broken, answers(first))  # sent, but never received
        broken.end()
        second = one.prompt(session, {"say": "second"})
        events = await read_until(one.viewer.session_stream(session, last), answers(second))
        assert texts(events) == ["first", "second"]
        assert [json.loads(event.data).get("id") for event in events] == [None, first, None, second]


async def test_opening_a_stream_again_ends_the_older_one(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        first = one.viewer.connection_stream(None)
        waiting = asyncio.create_task(first.next_batch())
        await until(lambda: first.is_hungry)
        session = await one.open_session(one.viewer.connection_stream(None))
        assert await waiting == []
        older = one.viewer.session_stream(session, None)
        one.viewer.session_stream(session, None)
        assert await older.next_batch() == []


async def test_stream_can_be_opened_before_its_session_is_loaded(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    async with serve(tmp_path / "home", agent(capabilities=LOADING, store=str(store))) as served:
        owner = await join(served)
        session = await owner.new()
        await owner.prompt(session, {"flood": 3})
        one = HttpViewer(served)
        await one.initialize()
        connection = one.viewer.connection_stream(None)
        stream = one.viewer.session_stream(session, None)
        load = one.request("session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []})
        answer = asyncio.create_task(read_until(connection, answers(load)))
        events = await read_until(stream, lambda message: "2" in texts([_as_event(message)]))
        assert texts(events)[1:] == ["0", "1", "2"]
        reading_on = asyncio.create_task(stream.next_batch())
        await answer
        reading_on.cancel()


def _as_event(message):
    return SeenEvent(json.dumps(message).encode(), None)


async def test_load_is_answered_although_its_stream_was_never_opened(tmp_path):
    async with serve(tmp_path) as served:
        owner = await join(served)
        session = await owner.new()
        await owner.prompt(session, {"flood": 3})
        one = HttpViewer(served)
        await one.initialize()
        connection = one.viewer.connection_stream(None)
        load = one.request("session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []})
        await read_until(connection, answers(load))
        stream = one.viewer.session_stream(session, None)
        events = await read_until(stream, lambda message: "2" in texts([_as_event(message)]))
        assert texts(events)[1:] == ["0", "1", "2"]


async def test_new_connection_continues_by_event_id(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        session = await one.open_session(one.viewer.connection_stream(None))
        prompt = one.prompt(session, {"flood": 5})
        events = await read_until(one.viewer.session_stream(session, None), answers(prompt))
        await one.viewer.close()
        two = HttpViewer(served)
        await two.initialize()
        stream = two.viewer.session_stream(session, events[2].id.decode())
        load = two.request("session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []})
        seen = await read_until(stream, lambda message: "4" in texts([_as_event(message)]))
        assert texts(seen) == texts(events[3:])
        reading_on = asyncio.create_task(stream.next_batch())
        await read_until(two.viewer.connection_stream(None), answers(load))
        reading_on.cancel()


async def test_stream_of_an_unknown_session_is_refused(tmp_path):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        assert one.viewer.session_stream("unknown", None) is None
        assert not one.viewer.knows("unknown")


@pytest.mark.parametrize("event_id", ["", "x", "a.b.c", "1.2", "x.-1.0", "x.1.1e3", "…"])
async def test_foreign_event_id_is_harmless(tmp_path, event_id):
    async with serve(tmp_path) as served:
        one = HttpViewer(served)
        await one.initialize()
        session = await one.open_session(one.viewer.connection_stream(event_id))
        stream = one.viewer.session_stream(session, event_id)
        events = await read_until(stream, answers(one.prompt(session, {"say": "x"})))
        assert texts(events) == ["x"]


async def test_stalled_viewer_is_dropped_and_can_reconnect(tmp_path):
    async with serve(tmp_path) as served:
        owner = await join(served)
        session = await owner.new()
        stuck = await join(served, extensions=True)
        await stuck.load(session)
        prompt = owner.start_prompt(session, {"flood": 20_000})
        (first, *_) = events_of(await stuck.stream.next_batch(1))
        await owner.answer(prompt)
        await served.sweep(time.monotonic() + A_DAY_S)
        async with asyncio.timeout(PATIENCE_S):
            await stuck.viewer.closed.wait()
        assert "read nothing for 30 s" in stuck.viewer.close_reason
        assert served.delivery.viewers.get(stuck.viewer.id) is None
        assert await stuck.stream.next_batch() == []
        assert len(served.sessions.by_id[session].subscriptions) == 1
        back = await join(served, extensions=True)
        await back.load(session)
        assert len(back.said()) == 20_000
        assert first.data


async def test_waiting_viewer_is_not_dropped_during_long_silence(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        waiting = asyncio.create_task(one.stream.next_batch())
        await until(lambda: one.stream.is_hungry)
        await served.sweep(time.monotonic() + A_DAY_S)
        assert not one.viewer.closed.is_set()
        one.request("_echo", {})
        assert await waiting


async def test_viewer_with_too_many_unread_answers_is_dropped(tmp_path):
    async with serve(tmp_path, window_bytes=10_000) as served:
        one = await join(served)
        for number in range(40):
            one.send({"id": number, "method": "_echo", "params": {"x": "y" * 1_000}})
        async with asyncio.timeout(PATIENCE_S):
            await one.viewer.closed.wait()
        assert "10000 bytes" in one.viewer.close_reason
        assert "result" in await (await join(served)).ask("_echo")


async def test_answer_larger_than_the_window_is_delivered(tmp_path):
    async with serve(tmp_path, window_bytes=1_000) as served:
        one = await join(served)
        assert len((await one.ask("_echo", {"x": "y" * 100_000}))["result"]["x"]) == 100_000


async def test_too_many_viewers_are_refused(tmp_path):
    async with serve(tmp_path, max_viewers=2) as served:
        one = served.open_viewer()
        served.open_viewer()
        with pytest.raises(TooManyViewersError, match="2 viewers are connected to one, the limit") as refused:
            served.open_viewer()
        assert refused.value.limit == 2
        await one.close()
        served.open_viewer()


async def test_too_many_sessions_are_refused(tmp_path):
    async with serve(tmp_path, max_sessions=1) as served:
        one = await join(served)
        await one.new()
        assert "1 sessions are open" in (await one.ask("session/new", {"cwd": "/work"}))["error"]["data"]


async def test_cancelled_read_closes_the_stream(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        taking = asyncio.create_task(one.stream.next_batch())
        await until(lambda: one.stream.is_hungry)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert await one.stream.next_batch() == []


async def test_session_announcements_do_not_pile_up(tmp_path):
    async with serve(tmp_path, window_bytes=2_000) as served:
        one = await join(served)
        idle = await join(served, extensions=True)
        session = await one.new()
        for _ in range(30):
            await one.prompt(session, {"say": "x"})
        await one.ask("_echo")  # the answer to a prompt is sent before the announcement of its end
        assert not idle.viewer.closed.is_set()
        news = await idle.announced(session, lambda news: news["state"] == "idle")
        assert news["stopReason"] == "end_turn"
        assert len(idle.params_of("_dragoman/session")) == 1


async def test_requests_of_a_viewer_keep_their_order(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        requests = [one.request("_echo", {"n": number}) for number in range(50)]
        for request in requests:
            await one.answer(request)
        assert [message["result"]["n"] for message in one.seen[1:]] == list(range(50))
        await until(lambda: len(one.viewer.requests) == 0)
