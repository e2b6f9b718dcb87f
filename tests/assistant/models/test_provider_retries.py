import asyncio
from contextlib import aclosing

import pytest

from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import ModelRequest, ReplyRetry, ReplyText
from dragoman.assistant.models.provider import RetryBudget
from dragoman.assistant.models.provider_connection import RetryAdvice
from dragoman.assistant.models.providers import RetryPolicy
from dragoman.errors import ContextOverflow, MissingKey, ModelFailure
from tests.assistant.models.asking import AT_ONCE, asked, only, parts_of, prompt, text_of
from tests.assistant.models.loopback import Anthropic, Chat, Google, Refusal, Responses, Stream, sse

WIRES = [Chat(), Anthropic(), Responses(), Google()]
every_format = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
GARBAGE = [b"event: content_block_delta\ndata: {not json\n\n", b"data: \xff\xfe\x00\n\n"]
OVERLOADED = Refusal(529, "Overloaded", error={"type": "overloaded_error"})


@every_format
async def test_a_rate_limit_is_waited_out_for_as_long_as_the_provider_asks(wire):
    limited = Refusal(429, "slow down", {"retry-after-ms": "30"})
    async with asked(wire, limited, wire.reply(("text", "Hi"))) as (provider, model):
        parts = await parts_of(model)
    assert only(ReplyRetry, parts) == [parts[0]]
    assert parts[0].delay_s == pytest.approx(0.03)
    assert "slow down" in parts[0].reason
    assert text_of(parts) == "Hi"
    assert len(provider.requests) == 2


async def test_a_wait_that_is_too_long_is_left_to_the_person():
    wire = Chat()
    async with asked(wire, Refusal(429, "slow down", {"retry-after": "3600"})) as (provider, model):
        with pytest.raises(ModelFailure, match="wait for 3600 s"):
            await parts_of(model)
    assert len(provider.requests) == 1


@every_format
@pytest.mark.parametrize("refusal", [Refusal(500), Refusal(502), Refusal(503), OVERLOADED], ids=lambda r: r.status)
async def test_a_provider_with_a_problem_is_asked_again(wire, refusal):
    async with asked(wire, refusal, refusal, wire.reply(("text", "Hi"))) as (_, model):
        parts = await parts_of(model)
    assert len(only(ReplyRetry, parts)) == 2
    assert text_of(parts) == "Hi"


@every_format
async def test_a_reply_whose_connection_drops_is_asked_for_anew(wire):
    dropped = wire.reply(("text", "Half of "), end="drop")
    async with asked(wire, dropped, wire.reply(("text", "All of it"))) as (_, model):
        parts = await parts_of(model)
    assert "".join(part.text for part in only(ReplyText, parts)).endswith("All of it")
    [retry] = only(ReplyRetry, parts)
    assert "lost" in retry.reason
    assert text_of(parts) == "All of it"


@every_format
async def test_a_connection_that_drops_before_the_reply_is_tried_again(wire):
    async with asked(wire, Stream([], "drop"), wire.reply(("text", "Hi"))) as (_, model):
        parts = await parts_of(model)
    assert len(only(ReplyRetry, parts)) == 1
    assert text_of(parts) == "Hi"


@every_format
@pytest.mark.parametrize("garbage", GARBAGE, ids=["json", "bytes"])
async def test_garbage_in_the_stream_is_asked_about_again(wire, garbage):
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
    """A reply that is never said to be complete, on a connection that ends well."""
    return Stream([*wire.reply(*pieces, end="drop").events, *last])


@every_format
@pytest.mark.parametrize("piece", BROKEN_OFF, ids=lambda piece: piece[0])
async def test_a_stream_that_ends_well_without_the_end_of_the_reply_is_asked_for_again(wire, piece):
    async with asked(wire, without_end(wire, piece), wire.reply(("text", "All of it"))) as (_, model):
        parts = await parts_of(model)
    assert text_of(parts) == "All of it"
    [retry] = only(ReplyRetry, parts)
    assert "broke off" in retry.reason


async def test_a_stream_that_ends_in_the_middle_of_a_call_is_asked_for_again():
    wire = Chat()
    begun = without_end(wire, ("call", "c1", "look", '{"pa'))
    async with asked(wire, begun, wire.reply(("text", "All of it"))) as (_, model):
        parts = await parts_of(model)
    assert "broke off" in only(ReplyRetry, parts)[0].reason
    assert only(ToolUse, parts) == []


@every_format
async def test_replies_that_never_come_to_an_end_are_a_failure(wire):
    async with asked(wire, without_end(wire, ("text", "Half of "))) as (provider, model):
        with pytest.raises(ModelFailure, match="broke off its answer; gave up after 3 tries"):
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
async def test_one_of_two_marks_of_the_end_is_enough(wire, last):
    async with asked(wire, without_end(wire, ("text", "Hi"), last=last)) as (provider, model):
        parts = await parts_of(model)
    assert text_of(parts) == "Hi"
    assert len(provider.requests) == 1


async def test_words_that_look_like_the_mark_of_the_end_are_none():
    wire = Chat()
    quoted = without_end(wire, ("text", "It ends with\ndata: [DONE]"))
    async with asked(wire, quoted, wire.reply(("text", "Hi"))) as (_, model):
        parts = await parts_of(model)
    assert text_of(parts) == "Hi"


async def test_silence_counts_as_a_dropped_connection():
    wire = Chat()
    silent = wire.reply(("text", "Half of "), end="hang")
    async with asked(wire, silent, wire.reply(("text", "Hi")), silence_s=0.05) as (_, model):
        parts = await parts_of(model)
    assert text_of(parts) == "Hi"
    assert "nothing for too long" in only(ReplyRetry, parts)[0].reason


@every_format
async def test_it_gives_up_after_so_many_tries(wire):
    async with asked(wire, Refusal(500, "on fire")) as (provider, model):
        with pytest.raises(ModelFailure, match="on fire; gave up after 3 tries"):
            await parts_of(model)
    assert len(provider.requests) == 3


@every_format
@pytest.mark.parametrize(
    ("refusal", "error", "words"),
    [
        (Refusal(400, "bad temperature"), ModelFailure, "bad temperature"),
        (Refusal(401, "who are you"), MissingKey, "who are you.*api_key"),
        (Refusal(403, "not you"), MissingKey, "not you.*api_key"),
        (Refusal(404, "no such model"), ModelFailure, "no such model.*check the name"),
        (Refusal(402, "pay first"), ModelFailure, "pay first"),
        (Refusal(400, "prompt is too long: 250000 tokens > 200000 maximum"), ContextOverflow, "too long"),
        (Refusal(400, "This model's maximum context length is 8192 tokens."), ContextOverflow, "8192"),
    ],
    ids=["400", "401", "403", "404", "402", "overflow-anthropic", "overflow-openai"],
)
async def test_what_will_not_pass_is_said_at_once(wire, refusal, error, words):
    async with asked(wire, refusal) as (provider, model):
        with pytest.raises(error, match=words) as caught:
            await parts_of(model)
    assert type(caught.value) is error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len(provider.requests) == 1


async def test_exhausted_quota_is_no_rate_limit():
    wire = Chat()
    async with asked(wire, Refusal(429, "buy more", error={"code": "insufficient_quota"})) as (provider, model):
        with pytest.raises(ModelFailure, match="no credit or quota left: buy more"):
            await parts_of(model)
    assert len(provider.requests) == 1


@every_format
async def test_cancelling_while_it_streams_hangs_up_at_once(wire):
    async with asked(wire, wire.reply(("text", "Once upon "), end="hang")) as (provider, model):
        begun = asyncio.Event()

        async def listen():
            async with aclosing(model.start().reply(ModelRequest((prompt("tell"),)))) as parts:
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
async def test_cancelling_before_the_first_word_hangs_up_at_once(wire):
    async with asked(wire, Stream([], "hang")) as (provider, model):
        task = asyncio.create_task(parts_of(model))
        await provider.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.hung_up.wait()


@every_format
async def test_a_reply_that_nobody_reads_on_is_hung_up(wire):
    async with asked(wire, wire.reply(("text", "Once upon "), end="hang")) as (provider, model):
        async with aclosing(model.start().reply(ModelRequest((prompt("tell"),)))) as parts:
            await anext(parts)
        await provider.hung_up.wait()


async def test_a_wait_for_the_next_try_can_be_cancelled():
    wire = Chat()
    async with (
        asked(wire, Refusal(429, "later", {"retry-after": "9"})) as (_, model),
        aclosing(model.start().reply(ModelRequest((prompt("hi"),)))) as parts,
    ):
        assert isinstance(await anext(parts), ReplyRetry)
        task = asyncio.ensure_future(anext(parts))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_connections_are_kept_for_the_next_request_and_closed_in_the_end():
    wire = Chat()
    async with asked(wire, wire.reply(("text", "Hi"))) as (provider, model):
        await parts_of(model)
        await parts_of(model)
        assert provider.connection_count == 1
        [task] = provider.connections.values()
        await model.close()
        await asyncio.wait([task])
        assert provider.connection_count == 0


def test_waits_grow_are_jittered_and_are_bounded():
    patience = RetryBudget(RetryPolicy(max_tries=9, first_delay_s=1, max_delay_s=8, max_wait_s=1000))
    delays = [patience.next_try(RetryAdvice("busy")).delay_s for _ in range(6)]
    for delay_s, most_s in zip(delays, [1, 2, 4, 8, 8, 8], strict=True):
        assert most_s / 2 <= delay_s <= most_s


def test_all_waits_together_are_bounded():
    patience = RetryBudget(RetryPolicy(max_tries=9, max_wait_s=10))
    patience.next_try(RetryAdvice("busy", 6))
    with pytest.raises(ModelFailure, match="wait for 6 s"):
        patience.next_try(RetryAdvice("busy", 6))


def test_a_policy_of_no_patience_asks_once():
    with pytest.raises(ModelFailure, match="1 tries"):
        RetryBudget(RetryPolicy(max_tries=1)).next_try(RetryAdvice("busy"))
    assert AT_ONCE.max_tries == 3
