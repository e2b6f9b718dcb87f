import asyncio
import json

import pytest
from msgspec import Raw
from msgspec.json import decode

from dragoman.errors import MESSAGES, DeadlockError, ErrorCode, InvalidResultError, RemoteError, RpcError
from dragoman.wire import MAX_IN_FLIGHT
from dragoman.wire.peer import CRASHED
from tests.table import each_row
from tests.waiting import until
from tests.wire.peers import Recorder, catch, peer_and_raw_end, two_peers

# ── requests and answers ────────────────────────────────────────────────────────────────────────────


@each_row("request_id", [0, 7, -1, "seven", "", "1", None, 1.5, 2**70])
async def test_id_is_returned_unchanged(request_id):
    async with peer_and_raw_end() as (_, end, _):
        answer = await end.ask({"id": request_id, "method": "echo", "params": {"a": 1}})
        assert answer == {"jsonrpc": "2.0", "id": request_id, "result": {"a": 1}}
        assert type(answer["id"]) is type(request_id)


async def test_params_and_results_arrive_unchanged():
    params = {"unknown": None, "nested": {"x": [1, 2.5, "é\u2028"]}}
    async with two_peers() as (peer, _):
        assert decode(await peer.call("echo", params)) == params


async def test_requests_run_concurrently():
    async with peer_and_raw_end() as (_, end, handler):
        end.send({"id": 1, "method": "wait"})
        assert (await end.ask({"id": 2, "method": "echo", "params": {}}))["id"] == 2
        handler.gate.set()
        assert (await end.receive()) == {"jsonrpc": "2.0", "id": 1, "result": "waited"}


async def test_refusal_is_sent_with_code_message_and_data():
    async with two_peers() as (peer, _):
        with pytest.raises(RemoteError) as caught:
            await peer.call("refuse")
    assert (caught.value.code, caught.value.message, caught.value.data) == (
        ErrorCode.RESOURCE_NOT_FOUND,
        "Resource not found: no such thing",
        "no such thing",
    )


@pytest.mark.parametrize("method", ["crash", "unencodable"])
async def test_handler_crash_is_an_internal_error_without_details(method, caplog):
    async with peer_and_raw_end() as (_, end, _):
        answer = await end.ask({"id": 1, "method": method})
        assert answer["error"]["code"] == ErrorCode.INTERNAL_ERROR
        assert answer["error"]["message"] == f"Internal error: {CRASHED}"
        assert "secret-canary" not in json.dumps(answer)
        assert "Traceback" not in json.dumps(answer)
    assert any(record.exc_info for record in caplog.records)


async def test_request_with_an_id_in_use_is_refused():
    async with peer_and_raw_end() as (_, end, handler):
        end.send({"id": 1, "method": "wait"})
        refusal = await end.ask({"id": 1, "method": "echo"})
        assert refusal["error"]["code"] == ErrorCode.INVALID_REQUEST
        handler.gate.set()
        assert (await end.receive())["result"] == "waited"


async def test_only_requests_over_the_concurrency_limit_are_refused():
    async with peer_and_raw_end() as (_, end, handler):
        for number in range(MAX_IN_FLIGHT + 3):
            end.send({"id": number, "method": "wait"})
        refused = [await end.receive() for _ in range(3)]
        assert [answer["id"] for answer in refused] == [MAX_IN_FLIGHT, MAX_IN_FLIGHT + 1, MAX_IN_FLIGHT + 2]
        assert all(answer["error"]["code"] == ErrorCode.INVALID_REQUEST for answer in refused)
        handler.gate.set()
        answered = {(await end.receive())["id"] for _ in range(MAX_IN_FLIGHT)}
        assert answered == set(range(MAX_IN_FLIGHT))


# ── malformed and unexpected lines ──────────────────────────────────────────────────────────────────


@each_row(
    ("line", "code"),
    [
        (b"not json", ErrorCode.PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":', ErrorCode.PARSE_ERROR),
        (b"\xff\xfe", ErrorCode.PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":NaN}', ErrorCode.PARSE_ERROR),
        (b"5", ErrorCode.INVALID_REQUEST),
        (b"[]", ErrorCode.INVALID_REQUEST),
        (b'[{"jsonrpc":"2.0","id":1,"method":"echo"}]', ErrorCode.INVALID_REQUEST),
        (b"{}", ErrorCode.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","method":5}', ErrorCode.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","params":' + b"[" * 5000 + b"]" * 5000 + b"}", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_malformed_line_does_not_end_the_connection(line, code):
    async with peer_and_raw_end() as (_, end, _):
        answer = await end.ask(line)
        assert (answer["id"], answer["error"]["code"]) == (None, code)
        assert answer["error"]["message"] == f"{MESSAGES[code]}: {answer['error']['data']}"
        assert (await end.ask({"id": 2, "method": "echo", "params": {}}))["result"] == {}


@each_row(
    "line",
    [
        b"",
        b"  \r",
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":"99","error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","method":"crash"}',
        b'{"jsonrpc":"2.0","method":"$/cancel_request"}',
        b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}',
    ],
)
async def test_line_that_needs_no_answer_gets_none(line):
    async with peer_and_raw_end() as (_, end, _):
        assert (await end.ask(line + b'\n{"jsonrpc":"2.0","id":2,"method":"echo","params":{}}'))["id"] == 2


async def test_malformed_response_fails_its_call():
    async with peer_and_raw_end() as (peer, end, _):
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(catch(peer.call("m")))
            request = await end.receive()
            end.send(b'{"id":%d,"result":{}}' % request["id"])
        assert isinstance(call.result(), InvalidResultError)


async def test_a_malformed_error_object_still_fails_the_call():
    async with peer_and_raw_end() as (peer, end, _):
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(catch(peer.call("m")))
            end.send({"id": (await end.receive())["id"], "error": "broken"})
        assert isinstance(call.result(), RemoteError)


async def test_requests_with_a_null_id_are_answered_and_end_with_the_connection():
    async with peer_and_raw_end() as (_, end, handler):
        for _ in range(3):
            end.send({"id": None, "method": "wait"})
        handler.gate.set()
        assert [(await end.receive())["id"] for _ in range(3)] == [None] * 3
        handler.gate.clear()
        for _ in range(3):
            end.send({"id": None, "method": "wait"})
        await end.ask({"id": 1, "method": "echo"})
    assert handler.cancelled == [b"null"] * 3


@pytest.mark.parametrize("data", [object(), {"deep": [object()]}, ["\ud800", object()]], ids=["object", "deep", "half"])
async def test_error_details_that_cannot_be_encoded_are_omitted(data):
    class Refuses(Recorder):
        async def request(self, request):
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, data)

    async with peer_and_raw_end(Refuses()) as (_, end, _):
        for request_id in (1, 2):
            answer = await end.ask({"id": request_id, "method": "m"})
            assert (answer["id"], answer["error"]["code"]) == (request_id, ErrorCode.RESOURCE_NOT_FOUND)


async def test_lone_surrogate_is_replaced_when_sent():
    class Answers(Recorder):
        async def request(self, request):
            return {"text": "\ud800", "raw": Raw(b'{"a":[1]}'), "none": None}

    async with peer_and_raw_end(Answers()) as (_, end, _):
        answer = await end.ask({"id": 1, "method": "m"})
    assert answer["result"] == {"text": "\ufffd", "raw": {"a": [1]}, "none": None}


@pytest.mark.parametrize("method", ["slow", "quick"])
async def test_cancelled_notification_handler_does_not_stop_the_peer(method):
    class Cancelled(Recorder):
        def notification(self, method, params):
            if method == "slow":
                return self.slowly(params)
            raise asyncio.CancelledError

        async def slowly(self, params):
            raise asyncio.CancelledError

    async with peer_and_raw_end(Cancelled()) as (_, end, _):
        end.send({"method": method})
        assert (await end.ask({"id": 1, "method": "echo", "params": {}}))["result"] == {}


# ── order ───────────────────────────────────────────────────────────────────────────────────────────


async def test_block_of_lines_keeps_its_place_among_messages():
    many = b'{"jsonrpc":"2.0","method":"many"}\n' * 3_000
    async with peer_and_raw_end() as (peer, end, _):
        await peer.notify("before", {})
        peer.write(many)
        await peer.notify("after", {})
        methods = [json.loads(await end.lines.get())["method"] for _ in range(3_002)]
    assert methods == ["before", *["many"] * 3_000, "after"]


async def test_notifications_are_handled_in_order_even_when_some_are_slow():
    async with peer_and_raw_end() as (_, end, handler):
        for number in range(20):
            end.send({"method": "slow" if number % 3 == 0 else "quick", "params": number})
        await end.ask({"id": 1, "method": "echo"})
        assert [params for _, params in handler.seen] == list(range(20))


async def test_response_is_delivered_after_earlier_notifications():
    async with peer_and_raw_end() as (peer, end, handler):

        async def answer():
            request = await end.receive()
            for number in range(5):
                end.send({"method": "slow", "params": number})
            end.send({"id": request["id"], "result": "done"})

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(answer())
            assert decode(await peer.call("m")) == "done"
            assert len(handler.seen) == 5


async def test_request_starts_after_earlier_notifications():
    async with peer_and_raw_end() as (_, end, handler):
        end.send({"method": "slow", "params": 1})
        await end.ask({"id": 1, "method": "echo"})
        assert handler.seen == [("slow", 1)]


async def test_call_from_a_notification_handler_raises_deadlock_error():
    raised = asyncio.Queue()

    class Calls(Recorder):
        def notification(self, method, params):
            return self.call_back()

        async def call_back(self):
            try:
                await peer.call("echo")
            except DeadlockError as error:
                raised.put_nowait(error)

    async with peer_and_raw_end(Calls()) as (peer, end, _):
        end.send({"method": "n"})
        async with asyncio.timeout(30):
            assert "start a task" in str(await raised.get())


async def test_a_task_started_by_a_notification_handler_may_call():
    results = asyncio.Queue()

    class Spawns(Recorder):
        async def slowly(self, params):
            tasks.create_task(self.call())

        async def call(self):
            results.put_nowait(await peer.call("echo", {"x": 1}))

    async with two_peers(Spawns()) as (peer, opposite), asyncio.TaskGroup() as tasks, asyncio.timeout(30):
        await opposite.notify("slow", {})
        assert decode(await results.get()) == {"x": 1}


# ── cancelling ──────────────────────────────────────────────────────────────────────────────────────


async def test_cancelling_a_call_cancels_the_request_on_the_other_side():
    opposite_handler = Recorder()
    async with two_peers(None, opposite_handler) as (peer, _):
        call = asyncio.ensure_future(peer.call("wait"))
        await peer.call("echo")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await peer.call("echo")
        assert len(opposite_handler.cancelled) == 1


@pytest.mark.parametrize(("request_id", "other_id"), [(1, "1"), ("1", 1)])
async def test_cancel_reaches_only_its_request(request_id, other_id):
    async with peer_and_raw_end() as (_, end, handler):
        end.send({"id": request_id, "method": "wait"})
        end.send({"id": other_id, "method": "wait"})
        answer = await end.ask({"method": "$/cancel_request", "params": {"requestId": request_id}})
        assert answer["id"] == request_id
        assert answer["error"] == {"code": ErrorCode.REQUEST_CANCELLED, "message": "Request cancelled"}
        handler.gate.set()
        assert await end.receive() == {"jsonrpc": "2.0", "id": other_id, "result": "waited"}


@pytest.mark.parametrize(("method", "result"), [("answers-cancel", "answered the cancel"), ("catches", "partial")])
async def test_handler_may_answer_a_cancelled_request(method, result):
    async with peer_and_raw_end() as (_, end, _):
        end.send({"id": 1, "method": method})
        await end.ask({"id": 2, "method": "echo"})
        answer = await end.ask({"method": "$/cancel_request", "params": {"requestId": 1}})
        assert answer == {"jsonrpc": "2.0", "id": 1, "result": result}


async def test_cancel_does_not_reach_a_later_request_with_the_same_id():
    async with peer_and_raw_end() as (_, end, _):
        end.send(
            b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}\n'
            b'{"jsonrpc":"2.0","id":7,"method":"echo","params":{}}'
        )
        assert (await end.receive())["result"] == {}


async def test_a_late_answer_to_a_cancelled_call_is_ignored():
    async with peer_and_raw_end() as (peer, end, _):
        call = asyncio.ensure_future(peer.call("m"))
        request = await end.receive()
        call.cancel()
        cancel = await end.receive()
        assert cancel["params"] == {"requestId": request["id"]}
        end.send({"id": request["id"], "result": 1})
        assert (await end.ask({"id": 1, "method": "echo", "params": {}}))["result"] == {}


async def test_request_has_started_before_the_next_notification():
    begun = []

    class Begins(Recorder):
        async def request(self, request):
            begun.append(request.method)

        def notification(self, method, params):
            begun.append(method)

    async with peer_and_raw_end(Begins()) as (_, end, _), asyncio.timeout(30):
        pair = b'{"jsonrpc":"2.0","id":%d,"method":"r%d"}\n{"jsonrpc":"2.0","method":"n%d"}\n'
        end.send(b"".join(pair % (n, n, n) for n in range(3)).rstrip())
        await until(lambda: len(begun) >= 6)
    assert begun == ["r0", "n0", "r1", "n1", "r2", "n2"]
