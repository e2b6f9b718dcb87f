"""Two peers under arbitrary schedules keep the promises of the peer's docstring."""

import asyncio
import json
import os
import warnings
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import decode

from dragoman.errors import ConnectionClosedError, ErrorCode, RemoteError, RpcError
from dragoman.wire import Peer, memory_pair

PATIENCE_S = 20
"""No schedule needs this long, even on a busy machine, so a slower one hangs."""

SIDES = st.sampled_from((0, 1))
GARBAGE = st.sampled_from(
    (b"garbage", b"5", b"[]", b"{}", b"\xff", b'{"jsonrpc":"2.0","id":1e9,"result":1}', b'{"jsonrpc":"2.0","id":null}')
)
STEPS = st.one_of(
    st.tuples(st.just("call"), SIDES, st.sampled_from(("echo", "wait", "tell", "refuse", "crash", "cling"))),
    st.tuples(st.just("notify"), SIDES, st.sampled_from(("quick", "slow", "fail", "torn"))),
    st.tuples(st.just("cancel"), SIDES, st.integers(0, 5)),
    st.tuples(st.just("garbage"), SIDES, GARBAGE),
    st.tuples(st.just("anonymous"), SIDES, st.sampled_from(("echo", "wait"))),
    st.tuples(st.just("deaf"), SIDES, st.booleans()),
    st.tuples(st.just("open"), SIDES, st.none()),
    st.tuples(st.just("tick"), SIDES, st.integers(1, 4)),
)
SCHEDULES = st.lists(STEPS, max_size=40)
ALLOWED_CODES = {
    "echo": set(),
    "tell": set(),
    "wait": {ErrorCode.REQUEST_CANCELLED},
    "cling": set(),
    "refuse": {ErrorCode.RESOURCE_NOT_FOUND},
    "crash": {ErrorCode.INTERNAL_ERROR},
}

every_schedule = settings(max_examples=2000 if os.environ.get("DRAGOMAN_SOAK") else 120)


class Tap:
    """A transport that records its lines."""

    def __init__(self, transport):
        self.transport = transport
        self.lines = []

    def __getattr__(self, name):
        return getattr(self.transport, name)

    def write(self, lines):
        self.lines += bytes(lines).splitlines()
        self.transport.write(lines)


class Side:
    """One peer with its received messages, sent messages and pending calls."""

    def __init__(self, transport):
        self.tap = Tap(transport)
        self.peer = Peer(self.tap, self)
        self.gate = asyncio.Event()
        self.seen = []
        self.told = 0
        self.sent = []
        self.calls = []
        self.handled = Counter()
        self.anonymous = 0

    async def request(self, request):
        token = json.loads(bytes(request.params))
        self.handled[token] += 1
        match request.method:
            case "wait":
                await self.gate.wait()
            case "tell":
                number = await self.notify("slow" if token % 2 else "quick")
                return [token, number]
            case "refuse":
                raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, token)
            case "crash":
                raise RpcError(ErrorCode.INTERNAL_ERROR, object())
            case "cling":
                try:
                    await self.gate.wait()
                except asyncio.CancelledError:
                    return [token, None]
        return [token, None]

    def notification(self, method, params):
        if method in ("slow", "torn"):
            return self.slowly(method, decode(params))
        self.seen.append(decode(params))
        if method == "fail":
            raise KeyError(method)
        return None

    async def slowly(self, method, number):
        await asyncio.sleep(0)
        self.seen.append(number)
        if method == "torn":
            raise asyncio.CancelledError

    async def notify(self, method):
        """Send the next numbered notification."""
        number = len(self.sent)
        self.sent.append(number)
        await self.peer.notify(method, number)
        return number

    async def calls_ended(self):
        """Wait until every call has ended."""
        if self.calls:
            await asyncio.wait([call for _, _, call in self.calls])


class Conversation:
    """Two sides, and the steps of a schedule."""

    def __init__(self, tasks):
        near, far = memory_pair()
        self.sides = [Side(near), Side(far)]
        self.tasks = tasks
        self.tokens = 0
        self.cancelled = set()

    async def step(self, step, at, what):
        """Run one step."""
        side = self.sides[at]
        match step:
            case "call":
                self.tokens += 1
                side.calls.append((what, self.tokens, self.tasks.create_task(self.call(at, what, self.tokens))))
            case "notify":
                self.tasks.create_task(side.notify(what))
                await asyncio.sleep(0)
            case "cancel" if what < len(side.calls):
                side.calls[what][2].cancel()
                self.cancelled.add(side.calls[what][1])
            case "garbage":
                side.tap.transport.write(what + b"\n")
            case "anonymous":
                self.tokens += 1
                side.anonymous += 1
                message = b'{"jsonrpc":"2.0","id":null,"method":"%b","params":%d}\n' % (what.encode(), self.tokens)
                side.tap.transport.write(message)
            case "deaf":
                (side.tap.pause_reading if what else side.tap.resume_reading)()
            case "open":
                side.gate.set()
            case "tick":
                for _ in range(what):
                    await asyncio.sleep(0)

    async def call(self, at, method, token):
        """Call the other side. Check that the answer belongs to this call and follows earlier notifications."""
        side = self.sides[at]
        try:
            given, number = decode(await side.peer.call(method, Raw(b"%d" % token)))
        except RemoteError as error:
            assert error.code in ALLOWED_CODES[method]
            return error
        except (ConnectionClosedError, asyncio.CancelledError) as error:
            return error
        assert given == token
        assert number is None or number in side.seen
        return given

    async def finish(self):
        """Open all gates and resume both sides until every call is answered."""
        for side in self.sides:
            side.gate.set()
            side.tap.resume_reading()
        for side in self.sides:
            await side.calls_ended()

    def check_order(self):
        """Check that each side received the other's notifications in order and once."""
        for side, other in zip(self.sides, reversed(self.sides), strict=True):
            assert side.seen == other.sent[: len(side.seen)]

    def check_answers(self):
        """Check that no request ran twice and no id was answered twice."""
        for side in self.sides:
            assert all(count == 1 for count in side.handled.values())
            answers = [json.loads(line) for line in side.tap.lines if b'"method"' not in line]
            ids = Counter(answer["id"] for answer in answers)
            assert all(count == 1 for given, count in ids.items() if given is not None)


def run(scenario):
    """Run a scenario in a new loop. It must end in time, leave no task and raise no unseen exception."""
    alarms = []

    async def bounded():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: alarms.append(context))
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            await scenario(Conversation(tasks))
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(bounded())
    assert not alarms
    assert not [str(each.message) for each in caught]


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level("CRITICAL", "dragoman")


@pytest.mark.soak
@every_schedule
@given(SCHEDULES)
@example([("call", 0, "tell"), ("notify", 1, "torn"), ("notify", 1, "slow"), ("call", 0, "tell")])
@example([("anonymous", 0, "wait"), ("anonymous", 0, "wait"), ("tick", 0, 4)])
def test_calls_are_answered_once_and_after_earlier_notifications(schedule):
    async def scenario(conversation):
        async with conversation.sides[0].peer, conversation.sides[1].peer:
            for step in schedule:
                await conversation.step(*step)
                conversation.check_order()
            await conversation.finish()
            for at in (0, 1):
                await conversation.call(at, "echo", -1 - at)
        conversation.check_order()
        conversation.check_answers()
        for side, other in zip(conversation.sides, reversed(conversation.sides), strict=True):
            assert side.seen == other.sent
            for method, token, call in side.calls:
                if token not in conversation.cancelled:
                    assert call.result() == token or isinstance(call.result(), RemoteError), method

    run(scenario)


@pytest.mark.soak
@every_schedule
@given(SCHEDULES, SIDES, st.booleans())
@example([("call", 1, "wait"), ("call", 0, "wait"), ("deaf", 0, True)], 1, True)
def test_closing_at_any_moment_ends_every_call(schedule, first, tick):
    async def scenario(conversation):
        sides = [conversation.sides[first], conversation.sides[1 - first]]
        async with sides[1].peer:
            async with sides[0].peer:
                for step in schedule:
                    await conversation.step(*step)
                if tick:
                    await asyncio.sleep(0)
            await sides[0].calls_ended()
            sides[1].tap.resume_reading()
            sides[1].gate.set()
            await sides[1].calls_ended()
            with pytest.raises(ConnectionClosedError):
                await sides[1].peer.call("echo", 0)
        conversation.check_order()
        conversation.check_answers()

    run(scenario)


@pytest.mark.soak
@every_schedule
@given(st.lists(st.tuples(SIDES, st.integers(1, 200_000), st.sampled_from(("quick", "slow"))), max_size=12), SIDES)
def test_unread_peer_waits_and_loses_nothing(messages, deaf):
    async def scenario(conversation):
        sides = conversation.sides
        async with sides[0].peer, sides[1].peer:
            sides[deaf].tap.pause_reading()

            async def send(at):
                for number, (_, size, method) in enumerate(each for each in messages if each[0] == at):
                    await sides[at].peer.notify(method, [number, "x" * size])

            async with asyncio.TaskGroup() as senders:
                for at in (0, 1):
                    senders.create_task(send(at))
                for _ in range(10):
                    await asyncio.sleep(0)
                assert sides[1 - deaf].tap.unsent_bytes < 1_000_000
                sides[deaf].tap.resume_reading()
            for at in (0, 1):
                await conversation.call(at, "echo", -1 - at)
                numbers = [number for number, _ in sides[1 - at].seen]
                assert numbers == list(range(sum(each[0] == at for each in messages)))

    run(scenario)
