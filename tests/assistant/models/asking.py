"""Requests to a model on the loopback provider, and the replies."""

from contextlib import aclosing, asynccontextmanager

from dragoman.assistant.models.message import ProviderDetails, UserMessage
from dragoman.assistant.models.model import ReplyRequest, ReplyRetry, ReplyText, ReplyThought
from dragoman.assistant.models.provider import provider_model
from dragoman.assistant.models.providers import ProviderOptions, RetryPolicy
from dragoman.protocol import v1
from tests.assistant.models.loopback import loopback

AT_ONCE = RetryPolicy(max_tries=3, first_delay_s=0, max_delay_s=0, max_wait_s=10)
KEY = "sk-canary-5d1f0a77"


@asynccontextmanager
async def asked(wire, *answers, **options):
    """Yield the loopback provider with these answers, and a model that uses it."""
    async with loopback(*answers) as provider:
        settings = {"base_url": provider.url + wire.base_path, "api_key": KEY, "retry": AT_ONCE, **options}
        model = provider_model(wire.model, ProviderOptions(**settings))
        try:
            yield provider, model
        finally:
            await model.close()


def prompt(*blocks):
    return UserMessage([v1.TextContent(text=block) if isinstance(block, str) else block for block in blocks])


async def parts_of(model, *messages, **request):
    """Read a reply completely."""
    request = ReplyRequest(messages or (prompt("hello"),), **request)
    async with aclosing(model.start().reply(request)) as parts:
        return [part async for part in parts]


def text_of(parts):
    """Return the final text of a reply. The parts before a retry are void."""
    for place in range(len(parts) - 1, -1, -1):
        if isinstance(parts[place], ReplyRetry):
            parts = parts[place:]
            break
    return "".join(part.text for part in parts if isinstance(part, ReplyText))


def thought_of(parts):
    return "".join(part.text for part in parts if isinstance(part, ReplyThought))


def kept_of(parts):
    return next((part.data for part in parts if isinstance(part, ProviderDetails)), None)


def only(kind, parts):
    return [part for part in parts if isinstance(part, kind)]
