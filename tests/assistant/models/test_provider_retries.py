import asyncio
from contextlib import aclosing

import pytest

from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import ReplyRequest, ReplyRetry, ReplyText
from dragoman.assistant.models.provider import RetryBudget
from dragoman.assistant.models.provider_connection import RetryAdvice
from dragoman.assistant.models.providers import RetryPolicy
from dragoman.errors import ContextOverflowError, MissingKeyError, ModelError
from tests.assistant.models.asking import AT_ONCE, asked, only, parts_of, prompt, text_of
from tests.assistant.models.loopback import Anthropic, Chat, Google, Refusal, Responses, Stream, sse
from tests.table import each_row

WIRES = [Chat(), Anthropic(), Responses(), Google()]
every_format = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
GARBAGE = [b"event: content_block_delta\ndata: {not json\n\n", b"data: \xff\xfe\x00\n\n"]
OVERLOADED = Refusal(529, "Overloaded", error={"type": "overloaded_error"})


@every_format
async def test_rate_limit_waits_as_long_as_the_provider_asks(wire):
    limited = Refusal(429, "slow down", {"retry-after-ms": "30"})
    async with asked(wire, limited, wire.reply(("text", "Hi"))) as (provider, model):
        parts = await parts_of(model)
    assert only(ReplyRetry, parts) == [parts[0]]
    assert parts[0].delay_s == pytest.approx(0.03)
    assert "slow down" in parts[0].reason
    assert text_of(parts) == "Hi"
    assert len(provider.requests) == 2


async def test_too_long_wait_is_left_to_the_user():
    wire = Chat()
    async with asked(wire, Refusal(429, "slow down", {"retry-after": "3600"})) as (provider, model):
        with pytest.raises(ModelError, match="asks to wait 3600 s"):
            await parts_of(model)
    assert len(provider.requests) == 1


@every_format
@each_row("refusal", [Refusal(500), Refusal(502), Refusal(503), OVERLOADED])
async def test_failing_provider_is_asked_again(wire, refusal):
    async with asked(wire, refusal, refusal, wire.reply(("text", "Hi"))) as (_, model):
        parts = await parts_of(model)
    assert len(only(ReplyRetry, parts)) == 2
    assert text_of(parts) == "Hi"


@every_format
async def test_reply_with_a_dropped_connection_is_requested_again(wire):
    dropped = wire.reply(("text", "Half of "), end="drop")
    async with asked(wire, dropped, wire.reply(("text", "All of it"))) as (_, model):
        parts = await parts_of(model)
    assert "".join(part.text for part in only(ReplyText, parts)).endswith("All of it")
    [retry] = only(ReplyRetry, parts)
    assert "lost" in retry.reason
    assert text_of(parts) == "All of it"


@every_format
async def test_connection_dropped_before_the_reply_is_retried(wire):
    async with asked(wire, Stream([], "drop"), wire.reply(("text", "Hi"))) as (_, model):
        parts = await parts_of(model)
    assert len(only(ReplyRetry, parts)) == 1
    assert text_of(parts) == "Hi"


@every_format
@each_row("garbage", GARBAGE)
async def test_garbage_in_the_stream_is_retried(wire, garbage):
    garbled = wire.reply(("text", "Hm "), ("raw", garbage))
    async with asked(wire, garbled, wire.reply(("text", "Hi"))) as (_, model):
        parts = await parts_of(model)
    assert text_of(parts) == "Hi"
    assert "unreadable" in only(ReplyRetry, parts)[0].reason


BROKEN_OFF = [
    ("text", "Half of "),
    ("thought", "Let me "),
    ("call", "c1", "look", '{"path": "a"}'),
]


def without_end(wire, *pieces, last=()):
    """Return a reply without an end mark, on a connection that closes cleanly."""
    return Stream([*wire.reply(*pieces, end="drop").events, *last])


@every_format
@each_row("piece", BROKEN_OFF)
async def test_stream_without_an_end_mark_is_retried(wire, piece):
    async with asked(wire, without_end(wire, piece), wire.reply(("text", "All of it"))) as (_, model):
        parts = await parts_of(model)
    assert text_of(parts) == "All of it"
    [retry] = only(ReplyRetry, parts)
    assert "ended its answer early" in retry.reason


async def test_stream_cut_inside_a_call_is_retried():
    wire = Chat()
    begun = without_end(wire, ("call", "c1", "look", '{"pa'))
    async with asked(wire, begun, wire.reply(("text", "All of it"))) as (_, model):
        parts = await parts_of(model)
    assert "ended its answer early" in only(ReplyRetry, parts)[0].reason
    assert only(ToolUse, parts) == []


@every_format
async def test_replies_that_never_complete_are_a_failure(wire):
    async with asked(wire, without_end(wire, ("text", "Half of "))) as (provider, model):
        with pytest.raises(ModelError, match="ended its answer early; gave up after 3 tries"):
            await parts_of(model)
    assert len(provider.requests) == 3


@pytest.mark.parametrize(
    ("wire", "last"),
    [
        (Chat(), [Chat().chunk({}, "stop")]),
        (Chat(), [sse("[DONE]")]),
        (Chat(), [b"data:[DONE]\r\n\r\n"]),
        (Chat(), [b"data: [DO", b"NE]\n\n"]),
        (Anthropic(), [Anthropic().ending("stop", 7)]),
    ],
    ids=["chat-reason-alone", "chat-done-alone", "chat-done-in-crlf", "chat-done-in-pieces", "anthropic-reason-alone"],
)
async def test_one_of_two_end_marks_is_enough(wire, last):
    async with asked(wire, without_end(wire, ("text", "Hi"), last=last)) as (provider, model):
        parts = await parts_of(model)
    assert text_of(parts) == "Hi"
    assert len(provider.requests) == 1


async def test_text_that_looks_like_the_end_mark_is_not_one():
    wire = Chat()
    quoted = without_end(wire, ("text", "It ends with\ndata: [DONE]"))
    async with asked(wire, quoted, wire.reply(("text", "Hi"))) as (_, model):
        parts = await parts_of(model)
    assert text_of(parts) == "Hi"


async def test_silence_counts_as_a_dropped_connection():
    wire = Chat()
    silent = wire.reply(("text", "Half of "), end="hang")
    async with asked(wire, silent, wire.reply(("text", "Hi")), silence_s=0.5) as (_, model):
        parts = await parts_of(model)
    assert text_of(parts) == "Hi"
    assert "nothing for too long" in only(ReplyRetry, parts)[0].reason


@every_format
async def test_retries_stop_after_the_maximum(wire):
    async with asked(wire, Refusal(500, "on fire")) as (provider, model):
        with pytest.raises(ModelError, match="on fire; gave up after 3 tries"):
            await parts_of(model)
    assert len(provider.requests) == 3


@every_format
@each_row(
    ("refusal", "error", "words"),
    [
        (Refusal(400, "bad temperature"), ModelError, "bad temperature"),
        (Refusal(401, "who are you"), MissingKeyError, "who are you.*api_key"),
        (Refusal(403, "not you"), MissingKeyError, "not you.*api_key"),
        (Refusal(404, "no such model"), ModelError, "no such model.*check the name"),
        (Refusal(402, "pay first"), ModelError, "pay first"),
        (Refusal(400, "prompt is too long: 250000 tokens > 200000 maximum"), ContextOverflowError, "too long"),
        (Refusal(400, "This model's maximum context length is 8192 tokens."), ContextOverflowError, "8192"),
    ],
)
async def test_permanent_failure_is_reported_at_once(wire, refusal, error, words):
    async with asked(wire, refusal) as (provider, model):
        with pytest.raises(error, match=words) as caught:
            await parts_of(model)
    assert type(caught.value) is error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len(provider.requests) == 1


async def test_exhausted_quota_is_not_a_rate_limit():
    wire = Chat()
    async with asked(wire, Refusal(429, "buy more", error={"code": "insufficient_quota"})) as (provider, model):
        with pytest.raises(ModelError, match="no credit or quota left: buy more"):
            await parts_of(model)
    assert len(provider.requests) == 1


@every_format
async def test_cancelling_during_the_stream_closes_the_connection(wire):
    async with asked(wire, wire.reply(("text", "Once upon "), end="hang")) as (provider, model):
        begun = asyncio.Event()

        async def listen():
            async with aclosing(model.start().reply(ReplyRequest((prompt("tell"),)))) as parts:
                async for _ in parts:
                    begun.set()

        task = asyncio.create_task(listen())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.hung_up.wait()
        assert asyncio.all_tasks() - {asyncio.current_task()} <= set(provider.connections.values())


@every_format
async def test_cancelling_before_the_first_chunk_closes_the_connection(wire):
    async with asked(wire, Stream([], "hang")) as (provider, model):
        task = asyncio.create_task(parts_of(model))
        await provider.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.hung_up.wait()


@every_format
async def test_abandoned_reply_closes_the_connection(wire):
    async with asked(wire, wire.reply(("text", "Once upon "), end="hang")) as (provider, model):
        async with aclosing(model.start().reply(ReplyRequest((prompt("tell"),)))) as parts:
            await anext(parts)
        await provider.hung_up.wait()


async def test_wait_before_a_retry_can_be_cancelled():
    wire = Chat()
    async with (
        asked(wire, Refusal(429, "later", {"retry-after": "9"})) as (_, model),
        aclosing(model.start().reply(ReplyRequest((prompt("hi"),)))) as parts,
    ):
        assert isinstance(await anext(parts), ReplyRetry)
        task = asyncio.ensure_future(anext(parts))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_connections_are_reused_and_finally_closed():
    wire = Chat()
    async with asked(wire, wire.reply(("text", "Hi"))) as (provider, model):
        await parts_of(model)
        await parts_of(model)
        assert provider.connection_count == 1
        [task] = provider.connections.values()
        await model.close()
        await asyncio.wait([task])
        assert provider.connection_count == 0


def test_delays_grow_with_jitter_up_to_a_limit():
    patience = RetryBudget(RetryPolicy(max_tries=9, first_delay_s=1, max_delay_s=8, max_wait_s=1000))
    delays = [patience.next_try(RetryAdvice("busy")).delay_s for _ in range(6)]
    for delay_s, most_s in zip(delays, [1, 2, 4, 8, 8, 8], strict=True):
        assert most_s / 2 <= delay_s <= most_s


def test_sum_of_delays_is_limited():
    patience = RetryBudget(RetryPolicy(max_tries=9, max_wait_s=10))
    patience.next_try(RetryAdvice("busy", 6))
    with pytest.raises(ModelError, match="asks to wait 6 s"):
        patience.next_try(RetryAdvice("busy", 6))


def test_policy_without_retries_asks_once():
    with pytest.raises(ModelError, match="1 tries"):
        RetryBudget(RetryPolicy(max_tries=1)).next_try(RetryAdvice("busy"))
    assert AT_ONCE.max_tries == 3
