"""The words for types."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta
from msgspec.inspect import type_info

from dragoman.protocol import v1
from dragoman.protocol.mismatch import expectation


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (str, "a string"),
        (bool, "a boolean"),
        (int, "an integer"),
        (float, "a number"),
        (None, "null"),
        (Any, "any value"),
        (list[str], "an array"),
        (dict[str, int], "an object"),
        (v1.TextContent, "an object"),
        (v1.McpServer, "an object"),
        (v1.ContentBlock, "an object"),
        (str | None, "a string or null"),
        (v1.RequestId, "an integer from -9223372036854775808 to 9223372036854775807, a string or null"),
        (Annotated[int, Meta(ge=0)], "an integer of 0 or more"),
        (Annotated[str, Meta(min_length=1)], "a string that is not empty"),
        (Literal["b", "a"], 'one of "a", "b"'),
    ],
)
def test_a_type_is_told_in_words(type_, words):
    assert expectation(type_info(type_)) == words
