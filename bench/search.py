"""Tool search: how often the right tool is found, alone and among 10,000 others, and how long that takes.

The prompts are halved: weights and texts were chosen by the development half, the held-out half was only looked at
when all was chosen, and the targets are for it. Half of either are paraphrases, which have no content word in common
with their tool.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Literal

import msgspec

from bench.distractors import DATA, Tool, make_distractors
from bench.measure import Measure, Missing, Target
from dragoman.assistant.search import SearchIndex, tool_item
from dragoman.assistant.search.embedder import Embedder, EmbedderUnavailable, load_embedder

DEPTH = 10
WARM_UP_QUERIES = 20
CROWDS = {"alone": False, "among 10,000": True}

FIRST_USE = """
import sys
from pathlib import Path
from bench import search
search.use_once(Path(sys.argv[1]), is_crowded=sys.argv[2] == "True")
"""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt and the tool it asks for; `also` are others that would be as right."""

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


def without_embedder() -> Embedder:
    raise EmbedderUnavailable("this measures the words alone")


def load(engine: str) -> Callable[[], Embedder]:
    return load_embedder if engine == "semantic" else without_embedder


async def open_index(engine: str, home: Path, *, is_crowded: bool) -> SearchIndex:
    index = await SearchIndex.open(home, load(engine))
    if index.engine != engine:
        raise Missing(index.notice or "")
    await index.update(make_items(is_crowded=is_crowded))
    return index


def make_home() -> Path:
    return Path(tempfile.mkdtemp(dir=os.environ["DRAGOMAN_HOME"]))


@cache
def find_ranks(engine: str, *, is_crowded: bool) -> list[int]:
    """Give the place of the first right tool for each prompt, from zero; DEPTH where none was found."""

    async def search_all() -> list[int]:
        index = await open_index(engine, make_home(), is_crowded=is_crowded)
        found = [[hit.key for hit in await index.search(prompt.prompt, DEPTH)] for prompt in read_prompts()]
        return [
            next((place for place, key in enumerate(keys) if key in prompt.tools), DEPTH)
            for prompt, keys in zip(read_prompts(), found, strict=True)
        ]

    return asyncio.run(search_all())


def recall_percent(engine: str, among: str | None, depth: int, *, is_crowded: bool) -> float:
    ranks = find_ranks(engine, is_crowded=is_crowded)
    counted = [
        rank < depth
        for prompt, rank in zip(read_prompts(), ranks, strict=True)
        if among in (None, prompt.kind, prompt.half)
    ]
    return 100 * statistics.fmean(counted)


def time_index_ms(engine: str, *, is_cached: bool) -> float:
    """Index all; the embedder is loaded before, as is the list of tools."""
    home = make_home()
    make_items(is_crowded=True)

    async def index_once() -> float:
        index = await SearchIndex.open(home, load(engine))
        if index.engine != engine:
            raise Missing(index.notice or "")
        started = perf_counter()
        await index.update(make_items(is_crowded=True))
        return 1000 * (perf_counter() - started)

    if is_cached:
        asyncio.run(index_once())
    return asyncio.run(index_once())


def time_query_ms(engine: str, slowness: Literal["median", "slowest of a hundred"]) -> float:
    """Ask each prompt once, among all tools."""

    async def search_all() -> list[float]:
        index = await open_index(engine, make_home(), is_crowded=True)
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


def time_first_use_ms(*, is_crowded: bool, is_cached: bool) -> float:
    """Search in a new process, which has all imported that an agent has before."""
    home = make_home()

    def use() -> float:
        command = [sys.executable, "-c", FIRST_USE, str(home), str(is_crowded)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout)

    if is_cached:
        use()
    return use()


def use_once(home: Path, *, is_crowded: bool) -> None:
    """In the new process: print how long the first answer took, from before the embedder was loaded."""
    make_items(is_crowded=is_crowded)

    async def search_once() -> None:
        index = await open_index("semantic", home, is_crowded=is_crowded)
        await index.search("what time is it in Tokyo?", DEPTH)

    started = perf_counter()
    asyncio.run(search_once())
    print(1000 * (perf_counter() - started))


def recall_contenders(depth: int, *, is_crowded: bool) -> dict[str, Callable[[], float]]:
    groups = (None, "development", "held-out", "direct", "paraphrase")
    who = [(engine, among) for engine in ("semantic", "lexical") for among in groups]
    return {
        engine if among is None else f"{engine}, {among}": partial(
            recall_percent, engine, among, depth, is_crowded=is_crowded
        )
        for engine, among in who
    }


RECALL_TARGETS = {("alone", 5): 92.0, ("among 10,000", 5): 75.0}
RECALL = tuple(
    Measure(
        part="search",
        title=f"right tool in the first {depth}, {crowd}",
        unit="%",
        contenders=recall_contenders(depth, is_crowded=is_crowded),
        targets=tuple(
            # The thesaurus was written by someone who had seen the development half, so that half proves nothing.
            Target("semantic, held-out", None, "at least", percent)
            for place, percent in RECALL_TARGETS.items()
            if place == (crowd, depth)
        ),
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
        contenders={
            "semantic": partial(time_index_ms, "semantic", is_cached=False),
            "semantic, cached": partial(time_index_ms, "semantic", is_cached=True),
            "lexical": partial(time_index_ms, "lexical", is_cached=False),
        },
        targets=(Target("semantic", None, "at most", 2000),),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="search",
        title="a query among 10,000",
        unit="ms",
        contenders={
            "semantic": partial(time_query_ms, "semantic", "median"),
            "semantic, slowest of 100": partial(time_query_ms, "semantic", "slowest of a hundred"),
            "lexical": partial(time_query_ms, "lexical", "median"),
        },
        targets=(Target("semantic", None, "at most", 5),),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="search",
        title="first use in a new process",
        unit="ms",
        contenders={
            "124 tools": partial(time_first_use_ms, is_crowded=False, is_cached=False),
            "124 tools, cached": partial(time_first_use_ms, is_crowded=False, is_cached=True),
            "10,124 tools": partial(time_first_use_ms, is_crowded=True, is_cached=False),
            "10,124 tools, cached": partial(time_first_use_ms, is_crowded=True, is_cached=True),
        },
        targets=(Target("124 tools", None, "at most", 1000), Target("10,124 tools, cached", None, "at most", 1000)),
        rounds=5,
        quick_rounds=2,
    ),
)

MEASURES = (*RECALL, *TIMES)
