"""Lines sent to a real connection with real routes: each is handled or answered as documented."""

import asyncio
import gc
import json
import logging
from collections import Counter
from unicodedata import category

from msgspec import UNSET

from dragoman.errors import MESSAGES, ConnectionClosedError, ErrorCode, InvalidResultError, RemoteError
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.wire import LineSplitter, Malformed, Oversized, memory_pair, parse
from dragoman.wire.message import MAX_MESSAGE, replace_lone_surrogates
from tests.fuzz.made_json import METHODS, make_text

PATIENCE_S = 20
"""No input needs this long, even on a busy machine, so a slower one hangs."""

_SLOW_METHODS = {"session/prompt", "terminal/wait_for_exit"}
_IDS = ["0", "1", "2", "7", '"7"', '""', "null", "1.5", "-3", '"\\u0037"', "99999999999999999999", "true", "[7]"]
_OUTCOMES = (v1.RequestPermissionResponse, RemoteError, InvalidResultError, ConnectionClosedError)
_COLLECT_EVERY = 500

_runner = None
_count = 0


def check(data):
    """Check a stream that arrives in one piece."""
    _run([data])


def check_made(provider):
    """Check a conversation made by the fuzzer, in pieces of its choice."""
    stream = b"".join(_make_line(provider) for _ in range(provider.ConsumeIntInRange(1, 12)))
    cuts = sorted(provider.ConsumeIntListInRange(provider.ConsumeIntInRange(0, 4), 0, max(len(stream), 1)))
    _run([stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)])


# ── making ──────────────────────────────────────────────────────────────────────────────────────────


def _make_line(provider):
    kind = provider.ConsumeIntInRange(0, 9)
    if kind == 0:
        return provider.ConsumeBytes(provider.ConsumeIntInRange(0, 30)) + b"\n"
    line = _make_message(provider, kind)
    if provider.ConsumeIntInRange(0, 9) == 1 and line:
        at = provider.ConsumeIntInRange(0, len(line))
        line = line[:at] + provider.ConsumeBytes(3) + line[at + provider.ConsumeIntInRange(0, 3) :]
    return line + b"\n"


def _make_message(provider, kind):
    given = provider.PickValueInList(_IDS).encode()
    if kind == 1:
        return b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % given
    if kind == 2:
        result = make_text(provider, v1.RequestPermissionResponse)
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (given, result)
    if kind == 3:
        return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":"m"}}' % (given, provider.ConsumeInt(4))
    method = provider.PickValueInList(METHODS)
    params = make_text(provider, method.params)
    head = b'{"jsonrpc":"2.0",' + (b'"id":%b,' % given if method.kind == "request" or kind == 4 else b"")
    return head + b'"method":"%b","params":%b}' % (method.name.encode(), params)


# ── running ─────────────────────────────────────────────────────────────────────────────────────────


class _Alarms(logging.Handler):
    """Collects logged errors, and exceptions that reached the event loop."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.raised = []

    def emit(self, record):
        self.raised.append(self.format(record))

    def on_exception(self, loop, context):
        self.raised.append(str(context))


def _run(pieces):
    global _runner, _count
    _runner = _runner or asyncio.Runner()
    alarms = _Alarms()
    watched = [logging.getLogger(name) for name in ("asyncio", "dragoman")]
    for each in watched:
        each.addHandler(alarms)
        each.propagate = False
    _runner.get_loop().set_exception_handler(alarms.on_exception)
    try:
        _runner.run(_converse(pieces))
    finally:
        for each in watched:
            each.removeHandler(alarms)
            each.propagate = True
    _count += 1
    if _count % _COLLECT_EVERY == 0:
        gc.collect()
    assert not alarms.raised, alarms.raised


class _FarEnd:
    """Collects the answers by id. Only the input answers our calls."""

    def __init__(self, transport):
        self.transport = transport
        self.answers = []
        self.news = asyncio.Event()

    def lines_received(self, lines):
        for line in lines:
            answer = json.loads(line, parse_constant=_refuse)
            assert answer["jsonrpc"] == "2.0"
            if "method" not in answer:
                _check_answer(answer)
                self.answers.append((bytes(parse(line).id), answer))
        self.news.set()

    def input_ended(self, *, was_file):
        pass

    async def answers_to(self, count):
        """Wait until this many answers have arrived."""
        while len(self.answers) < count:
            self.news.clear()
            await self.news.wait()


def _refuse(constant):
    raise ValueError(constant)


def _check_answer(answer):
    assert set(answer) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), answer
    if "error" in answer:
        phrase, colon, sentence = answer["error"]["message"].partition(": ")
        assert phrase == MESSAGES[ErrorCode(answer["error"]["code"])]
        assert bool(sentence.strip()) == bool(colon)
        assert len(sentence) < MAX_MESSAGE
        # Unassigned characters hide nothing, but controls, bidi marks and line ends would.
        assert all(letter.isprintable() or category(letter) in ("Co", "Cn") for letter in sentence)
        assert answer["error"]["code"] != ErrorCode.INTERNAL_ERROR, answer


async def _converse(pieces):
    near, far = memory_pair()
    gate = asyncio.Event()
    expected = _expected_answers(b"".join(pieces) + b"\n")
    fresh = _fresh_id(b"".join(pieces))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        end = _FarEnd(far)
        far.start(end, tasks)
        async with Connection(near, _routes(gate)) as connection:
            calls = [tasks.create_task(_outcome(connection)) for _ in range(2)]
            await asyncio.sleep(0)
            for piece in pieces:
                far.write(piece)
                await asyncio.sleep(0)
            await _probe(end, fresh + b'a"', b"\n")
            gate.set()
            await end.answers_to(sum(expected.values()) + 1)
            await _probe(end, fresh + b'b"')
        await far.close()
    assert all(isinstance(call.result(), _OUTCOMES) for call in calls)
    assert Counter(given for given, _ in end.answers if not given.startswith(fresh)) == expected
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def _probe(end, request_id, before=b""):
    """Check that a new request is answered under its id."""
    end.transport.write(before + b'{"jsonrpc":"2.0","id":%b,"method":"_probe","params":{"x":1}}\n' % request_id)
    while not any(given == request_id for given, _ in end.answers):
        await end.answers_to(len(end.answers) + 1)
    assert [answer["result"] for given, answer in end.answers if given == request_id] == [{"x": 1}]


def _fresh_id(data):
    start = b'"probe-'
    while start[1:] in data:
        start += b"-"
    return start


def _expected_answers(data):
    """Return the expected number of answers per id: one per request and per invalid line."""
    expected = Counter()
    for line in LineSplitter().feed(data):
        message = parse(line)
        if isinstance(message, Malformed) and isinstance(line, bytes):  # half surrogate pairs are replaced, not refused
            message = parse(replace_lone_surrogates(line) or line)
        assert not isinstance(line, Oversized)
        if isinstance(message, Malformed):
            expected[message.id] += message.answerable
        elif message.id is not UNSET and message.method is not None:
            expected[bytes(message.id)] += 1
    return +expected


async def _outcome(connection):
    """Await our call, which must end in a result or a documented error."""
    try:
        params = v1.RequestPermissionRequest(session_id="s", tool_call=v1.ToolCallUpdate(tool_call_id="t"), options=[])
        return await connection.call(methods.SESSION_REQUEST_PERMISSION, params)
    except (RemoteError, InvalidResultError, ConnectionClosedError) as error:
        return error


def _routes(gate):
    """Return routes for every method. Some wait, some use a coroutine, and all return their params."""

    async def answer(params, request):
        if request.method in _SLOW_METHODS:
            await gate.wait()
        return params

    async def echo(params):
        return params

    async def answer_slowly(params):
        await asyncio.sleep(0)

    routes = Routes("agent")
    for method in METHODS:
        if method.kind == "request":
            routes.on_incoming_request(method, answer)
        else:
            routes.on_notification(method, answer_slowly if len(method.name) % 2 else lambda params: None)
    routes.on_extension("_probe", echo)
    return routes
