"""Descriptions of types in error messages."""

from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.inspect import type_info

from dragoman.protocol import v1
from dragoman.protocol.mismatch import expectation
from tests.table import each_row


@each_row(
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
        (Annotated[str, Meta(min_length=1)], "a non-empty string"),
        (Literal["b", "a"], 'one of "a", "b"'),
    ],
)
def test_type_is_described_as_text(type_, words):
    assert expectation(type_info(type_)) == words
