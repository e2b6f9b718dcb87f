import asyncio
import os
import stat
import sys
from contextlib import closing
from sqlite3 import connect

import numpy as np
import pytest

from dragoman.assistant.search import Passage, SearchIndex, SearchItem, SelectedItem, select, text_item, tool_item
from dragoman.assistant.search.embedder import load_embedder
from dragoman.installation import how_to_add
from tests.assistant.embedding import no_embedder

TOOLS = [
    tool_item("forecast", server="weather", name="get_forecast", description="Get the weather forecast for a city."),
    tool_item("commit", server="git", name="git_commit", description="Record the staged changes with a message."),
    tool_item("play", server="music", name="play_track", description="Start playback of a song."),
    tool_item("invoice", server="billing", name="create_invoice", description="Draft an invoice for a customer."),
]


class CountingEmbedder:
    """The real one; it remembers what it was given."""

    def __init__(self, name=None):
        self._real = load_embedder()
        self.name = name or self._real.name
        self.dimensions = self._real.dimensions
        self.seen = []

    def embed(self, texts):
        self.seen += texts
        return self._real.embed(texts)


async def fill(home, items=TOOLS, load=load_embedder):
    index = await SearchIndex.open(home, load)
    await index.update(items)
    return index


async def keys(index, query, limit=10):
    return [hit.key for hit in await index.search(query, limit)]


async def test_a_tool_is_found_by_what_it_means(tmp_path):
    index = await fill(tmp_path)
    assert (index.engine, index.notice) == ("semantic", None)
    assert (await keys(index, "will it rain tomorrow?"))[0] == "forecast"
    assert (await keys(index, "put on some jazz"))[0] == "play"


async def test_words_alone_find_what_has_them_or_stands_for_the_same_and_nothing_else(tmp_path):
    index = await fill(tmp_path, load=no_embedder)
    assert await keys(index, "the forecast for Oslo") == ["forecast"]
    assert await keys(index, "will it rain?") == ["forecast"]
    assert await keys(index, "xylophone") == []


async def test_who_lacks_the_better_engine_is_told_why_and_what_to_do(tmp_path):
    index = await SearchIndex.open(tmp_path, no_embedder)
    assert index.engine == "lexical"
    assert index.notice == (
        "Tools, rules and references are found by their words only, because wordllama is not installed. "
        f"wordllama finds them by what they mean; {how_to_add('search')}"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("load", [load_embedder, no_embedder])
async def test_scores_lie_between_nought_and_one_and_fall(tmp_path, load):
    index = await fill(tmp_path, load=load)
    for query in ("git commit", "Record the staged changes with a message.", "invoice customer song", "x" * 50):
        scores = [hit.score for hit in await index.search(query, 10)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


@pytest.mark.parametrize("load", [load_embedder, no_embedder])
async def test_an_empty_index_an_empty_query_and_no_limit_find_nothing(tmp_path, load):
    index = await SearchIndex.open(tmp_path, load)
    assert await keys(index, "git commit") == []
    await index.update(TOOLS)
    assert await keys(index, " \n") == []
    assert await keys(index, "git commit", limit=0) == []
    await index.update([])
    assert await keys(index, "git commit") == []


@pytest.mark.parametrize("load", [load_embedder, no_embedder])
async def test_the_limit_keeps_the_best(tmp_path, load):
    index = await fill(tmp_path, load=load)
    query = "record the git changes, start a song, draft an invoice"
    assert await keys(index, query, limit=2) == (await keys(index, query))[:2]


async def test_parameters_are_found_by_their_words(tmp_path):
    schema = {"properties": {"iban": {"type": "string", "description": "Account to debit"}}}
    index = await fill(tmp_path, [*TOOLS, tool_item("pay", server="b", name="go", parameters=schema)], no_embedder)
    assert await keys(index, "which IBAN?") == ["pay"]


@pytest.mark.parametrize("load", [load_embedder, no_embedder])
async def test_a_pasted_file_does_not_drown_the_question(tmp_path, load):
    index = await fill(tmp_path, load=load)
    question = "what is the weather forecast for Oslo?"
    pasted = "invoice 17 for the customer, a song and a message with staged changes, and so on and on\n" * 500
    for prompt in (f"{question}\n{pasted}", f"{pasted}\n{question}", f"{question}\n```\n{pasted}```"):
        assert (await keys(index, prompt))[0] == "forecast"


async def test_only_what_is_new_or_changed_is_embedded(tmp_path):
    embedder = CountingEmbedder()
    index = await fill(tmp_path, load=lambda: embedder)
    assert len(embedder.seen) == len(TOOLS)
    embedder.seen.clear()
    changed = tool_item("play", server="music", name="play_track", description="Plays a tune.")
    await index.update([*TOOLS[:2], changed, tool_item("new", server="a", name="b")])
    assert embedder.seen == ["music play track: Plays a tune.", "a b"]
    assert "invoice" not in await keys(index, "invoice for a customer")


async def test_another_process_embeds_nothing_that_the_cache_has_and_finds_the_same(tmp_path):
    first = await fill(tmp_path)
    embedder = CountingEmbedder()
    second = await fill(tmp_path, load=lambda: embedder)
    assert embedder.seen == []
    assert await second.search("staged", 10) == await first.search("staged", 10)


async def test_an_embedder_of_another_version_does_not_use_the_vectors_of_this_one(tmp_path):
    await fill(tmp_path)
    embedder = CountingEmbedder("wordllama 9")
    await fill(tmp_path, load=lambda: embedder)
    assert len(embedder.seen) == len(TOOLS)


async def test_the_cache_is_for_its_owner_only_and_holds_no_text(tmp_path):
    home = tmp_path / "home"
    old = os.umask(0)
    try:
        await fill(home)
    finally:
        os.umask(old)
    assert stat.S_IMODE((home / "search").stat().st_mode) == 0o700
    for path in (home / "search").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"invoice" not in path.read_bytes()


@pytest.mark.parametrize("damage", [b"", b"not a database at all, but long enough to be one" * 100])
async def test_a_damaged_cache_is_made_anew(tmp_path, damage):
    await fill(tmp_path)
    path = tmp_path / "search" / "vectors.db"
    path.write_bytes(damage)
    for expected in (len(TOOLS), 0):
        embedder = CountingEmbedder()
        index = await fill(tmp_path, load=lambda: embedder)  # noqa: B023 -- called at once
        assert len(embedder.seen) == expected
        assert (await keys(index, "git commit"))[0] == "commit"


async def test_a_vector_that_cannot_be_one_is_made_anew(tmp_path):
    await fill(tmp_path)
    bad = [b"", b"\x00" * 1024, np.full(256, np.nan, np.float32).tobytes(), b"short"]
    with closing(connect(tmp_path / "search" / "vectors.db")) as database, database:
        database.executemany("UPDATE vector SET vector = ? WHERE number = ?", zip(bad, range(1, 5), strict=True))
    for expected in (len(TOOLS), 0):
        embedder = CountingEmbedder()
        index = await fill(tmp_path, load=lambda: embedder)  # noqa: B023 -- called at once
        assert len(embedder.seen) == expected
        assert (await keys(index, "git commit"))[0] == "commit"


async def test_a_home_that_cannot_be_written_costs_the_cache_only(tmp_path):
    (tmp_path / "search").write_text("a file where the folder should be")
    assert (await keys(await fill(tmp_path), "git commit"))[0] == "commit"


async def test_processes_that_start_together_share_the_cache(tmp_path):
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from dragoman.assistant.search import SearchIndex, SearchItem, Passage\n"
        "async def main():\n"
        "    index = await SearchIndex.open(Path(sys.argv[1]))\n"
        "    for number in range(20):\n"
        "        numbers = range(number * 10)\n"
        "        await index.update([SearchItem(str(n), (Passage(f'text {n} of many'),)) for n in numbers])\n"
        "    print((await index.search('text 7', 1))[0].key)\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1) for _ in range(3)]
    for process in processes:
        output, errors = await process.communicate()
        assert (process.returncode, errors) == (0, b"")
        assert output == b"7\n"
    with closing(connect(tmp_path / "search" / "vectors.db")) as database:
        assert database.execute("SELECT count(*) FROM vector").fetchone() == (190,)


async def test_many_tasks_may_search_while_it_changes(tmp_path):
    index = await fill(tmp_path)
    searches = [keys(index, "git commit", 1) for _ in range(20)]
    updates = [index.update(TOOLS[: 2 + number % 3]) for number in range(20)]
    found = await asyncio.gather(*searches, *updates)
    assert found[:20] == [["commit"]] * 20


async def test_an_item_scores_as_its_best_paragraph_and_comes_once(tmp_path):
    rule = text_item(
        "rule:style", "house style", "Write commit messages well.\n\nCommit messages are short.\n\nUse tabs."
    )
    index = await fill(tmp_path, [rule, *TOOLS])
    hits = await index.search("commit messages", 10)
    assert [hit.key for hit in hits].count("rule:style") > 1
    selected = await select(index, "commit messages", top_k=10, top_n=2, min_score=0.1)
    assert selected[0] == SelectedItem("rule:style", hits[0].score)
    assert len({chosen.key for chosen in selected}) == len(selected) == 2


async def test_a_selection_keeps_to_its_bounds(tmp_path):
    index = await fill(tmp_path)
    query = "record the git changes, start a song, draft an invoice"
    hits = await index.search(query, 10)
    assert len(await select(index, query, top_k=10, top_n=3, min_score=0)) == 3
    assert len(await select(index, query, top_k=2, top_n=3, min_score=0)) == 2
    chosen = await select(index, query, top_k=10, top_n=10, min_score=hits[1].score)
    assert [one.key for one in chosen] == [hit.key for hit in hits[:2]]


async def test_texts_of_any_kind_can_be_indexed(tmp_path):
    odd = ["", " ", "\ud800", "\x00", "日本語の説明", "x" * 200_000, "é" * 10]
    index = await fill(
        tmp_path, [SearchItem(str(n), (Passage(text),)) for n, text in enumerate(odd)] + [SearchItem("none", ())]
    )
    assert (await keys(index, "日本語の説明"))[0] == "4"
