"""A Python function as an MCP tool. Its name, description and schema come from the function."""

import inspect
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.errors import DragomanError
from dragoman.mcp.serving.function_call import (
    FunctionThreads,
    McpResult,
    Progress,
    UnsendableResultError,
    as_failure,
    as_result,
    failure,
)

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_IN_SCHEMA = "#/$defs/{name}"
_USABLE = "use str, int, float, bool, list, dict, Literal, Enum, a dataclass, a TypedDict or a msgspec Struct"


class UnusableFunctionError(DragomanError):
    """A function cannot be a tool."""

    def __init__(self, function: str, problem: str) -> None:
        self.function = function
        self.problem = problem
        super().__init__(f"{function} cannot be a tool: {problem}")


class FunctionTool:
    """A function that an agent can call, described by its type hints and docstring.

    `read_only` declares that the function changes nothing. Raises UnusableFunctionError.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool = False,
    ) -> None:
        self.name = _name(function) if name is None else name
        if not _NAME.fullmatch(self.name):
            problem = "its name must be 1 to 128 letters, digits, dots, dashes or underscores"
            raise UnusableFunctionError(
                self.name or repr(function), f"{problem}; set one with FunctionTool(function, name=…)"
            )
        self._function = function
        self._is_async = _is_async(function)
        self._signature = _signature(self.name, function)
        parameters = self._signature.parameters.values()
        self._progress = [each.name for each in parameters if each.annotation is Progress]
        visible = [each for each in parameters if each.annotation is not Progress]
        self._arguments = msgspec.defstruct(
            "arguments", [_field(each) for each in visible], kw_only=True, forbid_unknown_fields=True
        )
        summary, described = read_docstring(_innermost(function))
        self.definition: dict[str, Any] = {
            "name": self.name,
            "description": summary if description is None else description,
            "inputSchema": self._schema(visible, described),
        }
        """The tool's entry in `tools/list`."""
        if read_only:
            self.definition["annotations"] = {"readOnlyHint": True}

    def __repr__(self) -> str:
        return f"FunctionTool({self.name!r})"

    async def call(self, arguments: Mapping[str, Any], progress: Progress, threads: FunctionThreads) -> McpResult:
        """Run the function. A failure is a result with `isError`."""
        try:
            bound = self._bind(arguments, progress)
        except (msgspec.ValidationError, RecursionError) as error:
            return failure(f"the arguments of {self.name} do not fit: {error}")
        try:
            return await self._run(bound, threads)
        except UnsendableResultError as problem:
            return failure(str(problem))
        except Exception as error:  # noqa: BLE001 -- boundary: user callback
            return as_failure(error)

    async def _run(self, bound: inspect.BoundArguments, threads: FunctionThreads) -> McpResult:
        if self._is_async:
            return as_result(await self._function(*bound.args, **bound.kwargs))
        outcome = await threads.run(partial(self._function, *bound.args, **bound.kwargs))
        if outcome.error is not None:
            return as_failure(outcome.error)
        return as_result(await outcome.value if inspect.isawaitable(outcome.value) else outcome.value)

    def _bind(self, arguments: Mapping[str, Any], progress: Progress) -> inspect.BoundArguments:
        converted = msgspec.convert(_whole_numbers(arguments), self._arguments, str_keys=True)
        values = {name: value for name, value in msgspec.structs.asdict(converted).items() if value is not UNSET}
        values |= dict.fromkeys(self._progress, progress)
        bound = inspect.BoundArguments(self._signature, OrderedDict(values))
        bound.apply_defaults()
        return bound

    def _schema(self, parameters: Sequence[inspect.Parameter], descriptions: Mapping[str, str]) -> dict[str, Any]:
        try:
            msgspec.json.Decoder(self._arguments)  # refuses a union that cannot be decoded, such as two dataclasses
            (reference,), components = msgspec.json.schema_components([self._arguments], ref_template=_IN_SCHEMA)
        except (TypeError, NotImplementedError) as error:
            raise UnusableFunctionError(self.name, f"{_first_line(error)}; {_USABLE}") from None
        schema = components.pop(reference["$ref"].removeprefix(_IN_SCHEMA.format(name="")))
        del schema["title"]
        for parameter in parameters:
            described = schema["properties"][parameter.name]
            if parameter.name in descriptions:
                described.setdefault("description", descriptions[parameter.name])
            if parameter.default is not parameter.empty:
                described.update(_default(parameter.default))
        if components:
            schema["$defs"] = components
        return schema


def read_docstring(documented: Any) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and the description of each parameter that has one.

    `docstring_parser` detects the style: Google, NumPy, reStructuredText or Epydoc.
    """
    from docstring_parser import parse

    text = inspect.getdoc(documented) or ""
    try:
        parsed = parse(text)
    except Exception:  # noqa: BLE001 -- boundary: a library that raises IndexError for some malformed texts
        return _first_paragraph(text), {}
    parameters = {each.arg_name.lstrip("*"): " ".join((each.description or "").split()) for each in parsed.params}
    return _first_paragraph(parsed.description or ""), parameters


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def as_tool(function: FunctionTool | Callable[..., Any]) -> FunctionTool:
    """Return the tool for a function, or the tool itself."""
    return function if isinstance(function, FunctionTool) else FunctionTool(function)


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, partial):
        function = cast("Callable[..., Any]", function.func)
    return function


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(_innermost(function), "__name__", ""))


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _signature(name: str, function: Callable[..., Any]) -> inspect.Signature:
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise UnusableFunctionError(name, f"a type hint cannot be resolved: {error}") from None
    except (TypeError, ValueError) as error:
        raise UnusableFunctionError(name, str(error)) from None
    for parameter in signature.parameters.values():
        if parameter.kind in _ANY_NUMBER:
            raise UnusableFunctionError(name, f"{parameter} accepts any number of arguments; declare each argument")
    return signature


def _field(parameter: inspect.Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return a field of the arguments struct.

    A field with a default is optional, and the function supplies the default.
    """
    hint: Any = Any if parameter.annotation is parameter.empty else parameter.annotation
    if parameter.default is parameter.empty:
        return parameter.name, hint
    if parameter.default is None:
        hint = hint | None if hint is not Any else hint
    return parameter.name, hint if hint is Any else hint | UnsetType, UNSET


def _default(value: Any) -> dict[str, Any]:
    try:
        return {"default": msgspec.to_builtins(value, str_keys=True)}
    except (TypeError, ValueError, NotImplementedError, RecursionError):
        return {}


def _whole_numbers(value: Any) -> Any:
    """Return a JSON value with 3 instead of 3.0. JSON does not distinguish them, but an int only accepts 3."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _whole_numbers(each) for key, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_whole_numbers(each) for each in cast("list[Any]", value)]
        case _:
            return value


def _first_line(error: Exception) -> str:
    """Return the last line, which names the type. The lines before it are about msgspec."""
    lines = [line for line in str(error).splitlines() if line]
    return lines[-1] if lines else type(error).__name__
