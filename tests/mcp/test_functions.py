"""A Python function becomes a tool: its description, its schema, its arguments and its result."""

import asyncio
import base64
import enum
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dragoman.mcp.serving.function_call import FunctionThreads, Image, Progress
from dragoman.mcp.serving.function_tool import FunctionTool, UnusableFunctionError
from tests.table import each_row


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Book(msgspec.Struct):
    title: str
    pages: int | None = None


class Filter(TypedDict):
    author: str
    year: NotRequired[int]


def books(author: str, limit: int = 10):
    """Find books
    by their author.

    It looks everywhere.

    Args:
        author: The family name,
            as it is on the cover.
        limit (int): How many at most.

    Returns:
        nothing: at all
    """


async def call(function, /, **arguments):
    tool = function if isinstance(function, FunctionTool) else FunctionTool(function)
    return await tool.call(arguments, Progress(None), FunctionThreads())


async def text_of(function, /, **arguments):
    result = await call(function, **arguments)
    [block] = result["content"]
    return block["text"], result.get("isError", False)


def accepting(hint, *default):
    """Return a function with one parameter of this type."""

    def accept(value):
        return repr(value)

    accept.__annotations__ = {"value": hint}
    accept.__defaults__ = default or None
    return accept


def test_description_comes_from_the_docstring():
    definition = FunctionTool(books).definition
    assert (definition["name"], definition["description"]) == ("books", "Find books by their author.")
    assert definition["inputSchema"] == {
        "type": "object",
        "properties": {
            "author": {"type": "string", "description": "The family name, as it is on the cover."},
            "limit": {"type": "integer", "default": 10, "description": "How many at most."},
        },
        "required": ["author"],
        "additionalProperties": False,
    }


def test_name_description_and_hint_can_be_set():
    definition = FunctionTool(lambda: None, name="quiet", description="Does nothing", read_only=True).definition
    assert (definition["name"], definition["description"]) == ("quiet", "Does nothing")
    assert definition["annotations"] == {"readOnlyHint": True}


@pytest.mark.parametrize(
    "section",
    [
        "Parameters\n----------\nauthor : str\n    The family name,\n    as on the cover.\nlimit\n    How many.",
        ":param author: The family name,\n    as on the cover.\n:param int limit: How many.",
        "@param author: The family name,\n    as on the cover.\n@param limit: How many.",
        "Parameters:\n    author: The family name,\n        as on the cover.\n    limit (int): How many.",
    ],
)
def test_parameters_are_described_in_any_common_style(section):
    def find(author: str, limit: int) -> None: ...

    find.__doc__ = f"Find books\nby author.\n\nMore words.\n\n{section}"
    definition = FunctionTool(find).definition
    assert definition["description"] == "Find books by author."
    described = {name: each["description"] for name, each in definition["inputSchema"]["properties"].items()}
    assert described == {"author": "The family name, as on the cover.", "limit": "How many."}


@example(":\n:param ].. deprecated:: 1.0 Returns:\ny : int(int)")
@example(": :param ].. deprecated:: 1.0Returns:-----------\ny : int(int)y : int:x@param ")
@given(st.text(st.sampled_from(" \n:-@*()[]=.\t") | st.characters(codec="utf-8") | st.sampled_from("Argsparm")))
def test_any_docstring_can_be_read(text):
    def find() -> None: ...

    for begin in ("", "Find.\n\nArgs:\n"):
        find.__doc__ = begin + text
        FunctionTool(find)


def test_description_in_the_type_hint_wins_over_the_docstring():
    def find(word: Annotated[str, msgspec.Meta(description="the hint", max_length=3)]):
        """Find.

        Args:
            word: the docstring
        """

    described = FunctionTool(find).definition["inputSchema"]["properties"]["word"]
    assert described == {"type": "string", "description": "the hint", "maxLength": 3}


HINTS = [
    (str, "a", "'a'", 1),
    (int, 3, "3", "3"),
    (int, 3.0, "3", 3.5),
    (float, 3, "3.0", "3"),
    (bool, True, "True", "yes"),
    (Literal["a", "b"], "b", "'b'", "c"),
    (Colour, "red", "<Colour.RED: 'red'>", "green"),
    (list[int], [1, 2], "[1, 2]", [1, "2"]),
    (dict[str, int], {"a": 1}, "{'a': 1}", {"a": "1"}),
    (dict[int, str], {"1": "a"}, "{1: 'a'}", {"x": "a"}),
    (Optional[int], None, "None", "a"),  # noqa: UP045 -- as users write it
    (int | str, "a", "'a'", []),
    (Point, {"x": 1}, "Point(x=1, y=0)", {"y": 1}),
    (Book, {"title": "Emma"}, "Book(title='Emma', pages=None)", {"pages": 1}),
    (Filter, {"author": "Austen"}, "{'author': 'Austen'}", {"year": 1}),
    (list[Book], [{"title": "Emma"}], "[Book(title='Emma', pages=None)]", [{}]),
]


@each_row(("hint", "good", "seen", "bad"), HINTS)
async def test_schema_accepts_exactly_what_the_function_accepts(hint, good, seen, bad):
    tool = FunctionTool(accepting(hint))
    schema = tool.definition["inputSchema"]
    Draft202012Validator.check_schema(schema)
    judge = Draft202012Validator(schema)
    assert judge.is_valid({"value": good})
    assert not judge.is_valid({}), "without a default it is required"
    assert await text_of(tool, value=good) == (seen, False)
    words, is_error = await text_of(tool, value=bad)
    assert is_error
    assert words.startswith("the arguments of accept do not fit: ")
    if hint != dict[int, str]:  # JSON Schema does not describe the names in an object
        assert not judge.is_valid({"value": bad})


@pytest.mark.parametrize(
    ("hint", "default", "shown"),
    [
        (int, 3, 3),
        (int, None, None),
        (Colour, Colour.BLUE, "blue"),
        (list[int], [1], [1]),
        (Point, Point(1), {"x": 1, "y": 0}),
    ],
    ids=str,
)
async def test_parameters_with_a_default_are_optional(hint, default, shown):
    tool = FunctionTool(accepting(hint, default))
    schema = tool.definition["inputSchema"]
    assert schema["properties"]["value"]["default"] == shown
    assert schema["required"] == []
    assert Draft202012Validator(schema).is_valid({})
    assert Draft202012Validator(schema).is_valid({"value": shown})
    assert await text_of(tool) == (repr(default), False)


async def test_default_that_is_not_json_is_applied_by_the_function():
    missing = object()

    def find(value: str = missing):
        return str(value is missing)

    assert "default" not in FunctionTool(find).definition["inputSchema"]["properties"]["value"]
    assert await text_of(find) == ("True", False)


async def test_parameter_without_a_hint_accepts_anything():
    assert await text_of(lambda_named(lambda value: repr(value)), value=[1, {"a": None}]) == ("[1, {'a': None}]", False)


async def test_missing_and_unknown_arguments_are_reported():
    assert await text_of(books, limit=1) == (
        "the arguments of books do not fit: Object missing required field `author`",
        True,
    )
    assert await text_of(books, author="a", wrong=1) == (
        "the arguments of books do not fit: Object contains unknown field `wrong`",
        True,
    )


async def test_positional_and_keyword_only_parameters_are_filled():
    def mix(a: int, b: int = 2, /, c: int = 3, *, d: int):
        return [a, b, c, d]

    assert (await text_of(mix, a=1, d=4))[0] == "[1,2,3,4]"


@each_row(
    ("value", "text", "structured"),
    [
        ("words", "words", None),
        ({"a": [1]}, '{"a":[1]}', {"a": [1]}),
        ([1, 2], "[1,2]", {"result": [1, 2]}),
        ((1, 2), "[1,2]", {"result": [1, 2]}),
        (3, "3", None),
        (True, "true", None),
        (1.5, "1.5", None),
        (Point(1, 2), '{"x":1,"y":2}', {"x": 1, "y": 2}),
        (Book("Emma"), '{"title":"Emma","pages":null}', {"title": "Emma", "pages": None}),
        (Colour.RED, "red", None),
        ({1: "a"}, '{"1":"a"}', {"1": "a"}),
        (OrderedDict(a=1), '{"a":1}', {"a": 1}),
    ],
)
async def test_return_value_is_sent_as_text_and_structure(value, text, structured):
    result = await call(lambda_named(lambda: value))
    assert result["content"] == [{"type": "text", "text": text}]
    assert result.get("structuredContent") == structured
    assert "isError" not in result


async def test_none_returns_no_content():
    assert await call(lambda_named(lambda: None)) == {"content": []}


async def test_images_stay_images_alone_and_among_texts():
    block = {"type": "image", "data": base64.b64encode(b"PNG").decode(), "mimeType": "image/png"}
    assert await call(lambda_named(lambda: Image(b"PNG"))) == {"content": [block]}
    both = await call(lambda_named(lambda: ["a plot", Image(b"PNG")]))
    assert both == {"content": [{"type": "text", "text": "a plot"}, block]}


@pytest.mark.parametrize(
    ("value", "words"), [(b"x", "return Image"), (object(), "cannot be converted to JSON")], ids=["bytes", "object"]
)
async def test_unsendable_value_is_reported(value, words):
    text, is_error = await text_of(lambda_named(lambda: value))
    assert is_error
    assert words in text


class Odd(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no such book"), "ValueError: no such book"),
        (Odd(), "Odd"),
        (StopIteration("end"), "StopIteration: end"),
        (SystemExit(3), "SystemExit: 3"),
    ],
    ids=repr,
)
async def test_error_of_a_function_is_reported_without_traceback(error, words):
    def fail():
        raise error

    assert await text_of(fail) == (words, True)


async def test_error_of_a_coroutine_is_reported_without_traceback():
    async def fail():
        raise ValueError("no such book")

    assert await text_of(fail) == ("ValueError: no such book", True)


async def test_plain_functions_run_in_threads_and_coroutines_in_the_loop():
    async def here():
        return threading.get_ident()

    def there():
        return threading.get_ident()

    assert (await text_of(here))[0] == str(threading.get_ident())
    assert (await text_of(there))[0] != str(threading.get_ident())


async def test_wrapped_coroutines_are_awaited():
    async def add(a: int, b: int):
        return a + b

    @wraps(add)
    def logged(*args, **kwargs):
        return add(*args, **kwargs)

    class Adder:
        async def __call__(self, a: int, b: int):
            return a + b

        async def method(self, a: int, b: int):
            return a + b

    for function in (add, logged, partial(add, b=1), Adder().method, FunctionTool(Adder(), name="adder")):
        assert await text_of(function, a=2, b=1) == ("3", False)


async def test_functions_run_concurrently():
    together = threading.Barrier(2)
    threads = FunctionThreads()
    tool = FunctionTool(lambda_named(lambda: together.wait(30) * 0))
    results = await asyncio.gather(*(tool.call({}, Progress(None), threads) for _ in range(2)))
    assert [result["content"][0]["text"] for result in results] == ["0", "0"]


async def test_thread_count_is_limited_and_includes_cancelled_functions():
    threads = FunctionThreads(1)
    held, begun, second = threading.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold():
        loop.call_soon_threadsafe(begun.set)
        held.wait(30)

    first = asyncio.create_task(threads.run(hold))
    await begun.wait()
    first.cancel()
    waiting = asyncio.create_task(threads.run(lambda: loop.call_soon_threadsafe(second.set)))
    await asyncio.wait([first])
    assert not second.is_set()
    held.set()
    await waiting
    await second.wait()


def test_function_that_never_returns_does_not_block_exit(tmp_path):
    import subprocess
    import sys

    program = """
import asyncio, threading
from dragoman.mcp.serving.function_call import FunctionThreads
async def main():
    begun = threading.Event()
    call = asyncio.create_task(FunctionThreads().run(lambda: (begun.set(), threading.Event().wait())))
    await asyncio.to_thread(begun.wait)
    call.cancel()
asyncio.run(main())
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("ended\n", "")


def unusable(make):
    with pytest.raises(UnusableFunctionError) as caught:
        make()
    return str(caught.value)


class Unknown:
    pass


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: None, "set one with FunctionTool(function, name=…)"),
        (accepting(Unknown), "Unknown'> is not supported; use str, int"),
        (accepting(Point | Book), "more than one"),
        (accepting("Nowhere"), "name 'Nowhere' is not defined"),
        (print, "*args accepts any number of arguments; declare each argument"),
        (3, "is not a callable object"),
    ],
    ids=["lambda", "class", "two objects", "unknown name", "any number", "no function"],
)
def test_unusable_functions_are_refused_with_a_reason(function, words):
    name = "three" if function == 3 else None
    assert words in unusable(lambda: FunctionTool(function, name=name))


def test_a_bad_name_is_refused():
    assert "1 to 128 letters" in unusable(lambda: FunctionTool(books, name="two words"))


def test_function_named_like_a_type_has_the_right_schema():
    def arguments(arguments: Book):
        return arguments.title

    schema = FunctionTool(arguments).definition["inputSchema"]
    assert list(schema["properties"]) == ["arguments"]
    assert list(schema["$defs"]) == ["Book"]
    assert json.loads(json.dumps(schema)) == schema


def lambda_named(function: Any):
    function.__name__ = "made"
    return function
