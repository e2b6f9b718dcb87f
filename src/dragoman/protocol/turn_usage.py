"""The token usage of a turn, from the `session/prompt` response: its `usage`, or gemini's `_meta` instead."""

from typing import Any

import msgspec

from dragoman.protocol import v1


class _TokenCount(msgspec.Struct):
    input_tokens: int
    output_tokens: int


class _Quota(msgspec.Struct):
    token_count: _TokenCount


class _Meta(msgspec.Struct):
    quota: _Quota


def usage_from_meta(meta: Any) -> v1.Usage | None:
    """Return the tokens in `quota.token_count` of a `_meta`, plain or encoded as JSON, or None."""
    try:
        found = msgspec.json.decode(meta, type=_Meta) if isinstance(meta, msgspec.Raw) else msgspec.convert(meta, _Meta)
    except msgspec.MsgspecError:
        return None
    count = found.quota.token_count
    if min(count.input_tokens, count.output_tokens) < 0:
        return None
    total = count.input_tokens + count.output_tokens
    return v1.Usage(total_tokens=total, input_tokens=count.input_tokens, output_tokens=count.output_tokens)
