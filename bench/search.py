"""Tool search: how often the right tool is found, among few tools and among 10,000 others, and how fast.

The prompts are in two halves. The weights were chosen with the development half. Half of the prompts are paraphrases,
which share no content word with their tool.
"""

import asyncio
import statistics
import subprocess
import sys
from functools import cache, partial
from time import perf_counter
from typing import Literal

import msgspec

from bench.distractors import DATA, Tool, make_distractors
from bench.measure import Measure, Target
from dragoman.assistant.search import SearchIndex, tool_item

DEPTH = 10
WARM_UP_QUERIES = 20
CROWDS = {"alone": False, "among 10,000": True}

FIRST_USE = """
import sys
from bench import search
search.use_once(is_crowded=sys.argv[1] == "True")
"""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt and the tool it asks for. `also` are other tools that would be as right."""

    prompt: str
    tool: str
    kind: Literal["direct", "paraphrase"]
    half: Literal["development", "held-out"]
    also: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        return (self.tool, *self.also)


def read_tools() -> list[Tool]:
    return msgspec.json.decode((DATA / "tools.json").read_bytes(), type=list[Tool])


def read_prompts() -> list[Prompt]:
    return msgspec.json.decode((DATA / "prompts.json").read_bytes(), type=list[Prompt])


@cache
def make_items(*, is_crowded: bool) -> list:
    tools = read_tools() + (make_distractors() if is_crowded else [])
    return [
        tool_item(tool.key, server=tool.server, name=tool.name, description=tool.description, parameters=tool.schema)
        for tool in tools
    ]


async def fill_index(*, is_crowded: bool) -> SearchIndex:
    index = SearchIndex()
    await index.update(make_items(is_crowded=is_crowded))
    return index


@cache
def find_ranks(*, is_crowded: bool) -> list[int]:
    """Return the rank of the first right tool for each prompt, from zero, or DEPTH if none was found."""

    async def search_all() -> list[int]:
        index = await fill_index(is_crowded=is_crowded)
        found = [[hit.key for hit in await index.search(prompt.prompt, DEPTH)] for prompt in read_prompts()]
        return [
            next((place for place, key in enumerate(keys) if key in prompt.tools), DEPTH)
            for prompt, keys in zip(read_prompts(), found, strict=True)
        ]

    return asyncio.run(search_all())


def recall_percent(among: str | None, depth: int, *, is_crowded: bool) -> float:
    ranks = find_ranks(is_crowded=is_crowded)
    counted = [
        rank < depth
        for prompt, rank in zip(read_prompts(), ranks, strict=True)
        if among in (None, prompt.kind, prompt.half)
    ]
    return 100 * statistics.fmean(counted)


def time_index_ms() -> float:
    make_items(is_crowded=True)

    async def index_once() -> float:
        started = perf_counter()
        await fill_index(is_crowded=True)
        return 1000 * (perf_counter() - started)

    return asyncio.run(index_once())


def time_query_ms(slowness: Literal["median", "slowest of a hundred"]) -> float:
    """Search for each prompt once, among all tools."""

    async def search_all() -> list[float]:
        index = await fill_index(is_crowded=True)
        prompts = [prompt.prompt for prompt in read_prompts()]
        for prompt in prompts[:WARM_UP_QUERIES]:
            await index.search(prompt, DEPTH)
        times: list[float] = []
        for prompt in prompts:
            started = perf_counter()
            await index.search(prompt, DEPTH)
            times.append(1000 * (perf_counter() - started))
        return times

    times = asyncio.run(search_all())
    return statistics.median(times) if slowness == "median" else statistics.quantiles(times, n=100)[-1]


def time_first_use_ms(*, is_crowded: bool) -> float:
    """Search in a new process that has imported everything that an agent has imported by then."""
    command = [sys.executable, "-c", FIRST_USE, str(is_crowded)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def use_once(*, is_crowded: bool) -> None:
    """Print, in the new process, how long the first answer took."""
    make_items(is_crowded=is_crowded)

    async def search_once() -> None:
        index = await fill_index(is_crowded=is_crowded)
        await index.search("what time is it in Tokyo?", DEPTH)

    started = perf_counter()
    asyncio.run(search_once())
    print(1000 * (perf_counter() - started))


GROUPS = ("development", "held-out", "direct", "paraphrase")
RECALL = tuple(
    Measure(
        part="search",
        title=f"right tool in the first {depth}, {crowd}",
        unit="%",
        contenders={
            among or "all": partial(recall_percent, among, depth, is_crowded=is_crowded) for among in (None, *GROUPS)
        },
        targets=(),
        rounds=1,
        quick_rounds=1,
    )
    for crowd, is_crowded in CROWDS.items()
    for depth in (1, 5, 10)
)

TIMES = (
    Measure(
        part="search",
        title="10,000 tools indexed",
        unit="ms",
        contenders={"words and concepts": time_index_ms},
        targets=(Target("words and concepts", None, "at most", 2000),),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="search",
        title="a query among 10,000",
        unit="ms",
        contenders={
            "median": partial(time_query_ms, "median"),
            "slowest of 100": partial(time_query_ms, "slowest of a hundred"),
        },
        targets=(Target("median", None, "at most", 5),),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="search",
        title="first use in a new process",
        unit="ms",
        contenders={
            "124 tools": partial(time_first_use_ms, is_crowded=False),
            "10,124 tools": partial(time_first_use_ms, is_crowded=True),
        },
        targets=(Target("124 tools", None, "at most", 1000), Target("10,124 tools", None, "at most", 1000)),
        rounds=5,
        quick_rounds=2,
    ),
)

MEASURES = (*RECALL, *TIMES)
