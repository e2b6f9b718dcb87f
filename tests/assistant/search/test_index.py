import asyncio

from dragoman.assistant.search import Passage, SearchIndex, SearchItem, SelectedItem, select, text_item, tool_item

TOOLS = [
    tool_item("forecast", server="weather", name="get_forecast", description="Get the weather forecast for a city."),
    tool_item("commit", server="git", name="git_commit", description="Record the staged changes with a message."),
    tool_item("play", server="music", name="play_track", description="Start playback of a song."),
    tool_item("invoice", server="billing", name="create_invoice", description="Draft an invoice for a customer."),
]


async def fill(items=TOOLS):
    index = SearchIndex()
    await index.update(items)
    return index


async def keys(index, query, limit=10):
    return [hit.key for hit in await index.search(query, limit)]


async def test_words_and_synonyms_find_only_the_matching_tool():
    index = await fill()
    assert await keys(index, "the forecast for Oslo") == ["forecast"]
    assert await keys(index, "will it rain?") == ["forecast"]
    assert await keys(index, "xylophone") == []


async def test_scores_are_between_zero_and_one_and_decrease():
    index = await fill()
    for query in ("git commit", "Record the staged changes with a message.", "invoice customer song", "x" * 50):
        scores = [hit.score for hit in await index.search(query, 10)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


async def test_empty_index_query_or_limit_finds_nothing():
    index = SearchIndex()
    assert await keys(index, "git commit") == []
    await index.update(TOOLS)
    assert await keys(index, " \n") == []
    assert await keys(index, "git commit", limit=0) == []
    await index.update([])
    assert await keys(index, "git commit") == []


async def test_limit_keeps_the_best_results():
    index = await fill()
    query = "record the git changes, start a song, draft an invoice"
    assert await keys(index, query, limit=2) == (await keys(index, query))[:2]


async def test_parameters_are_found_by_their_words():
    schema = {"properties": {"iban": {"type": "string", "description": "Account to debit"}}}
    index = await fill([*TOOLS, tool_item("pay", server="b", name="go", parameters=schema)])
    assert await keys(index, "which IBAN?") == ["pay"]


async def test_pasted_file_does_not_hide_the_question():
    index = await fill()
    question = "what is the weather forecast for Oslo?"
    pasted = "invoice 17 for the customer, a song and a message with staged changes, and so on and on\n" * 500
    for prompt in (f"{question}\n{pasted}", f"{pasted}\n{question}", f"{question}\n```\n{pasted}```"):
        assert (await keys(index, prompt))[0] == "forecast"


async def test_concurrent_searches_work_during_an_update():
    index = await fill()
    searches = [keys(index, "git commit", 1) for _ in range(20)]
    updates = [index.update(TOOLS[: 2 + number % 3]) for number in range(20)]
    found = await asyncio.gather(*searches, *updates)
    assert found[:20] == [["commit"]] * 20


async def test_item_scores_as_its_best_paragraph_and_appears_once():
    rule = text_item(
        "rule:style", "house style", "Write commit messages well.\n\nCommit messages are short.\n\nUse tabs."
    )
    index = await fill([rule, *TOOLS])
    hits = await index.search("commit messages", 10)
    assert [hit.key for hit in hits].count("rule:style") > 1
    selected = await select(index, "commit messages", top_k=10, top_n=2, min_score=0.1)
    assert selected[0] == SelectedItem("rule:style", hits[0].score)
    assert len({chosen.key for chosen in selected}) == len(selected) == 2


async def test_selection_respects_its_limits():
    index = await fill()
    query = "record the git changes, start a song, draft an invoice"
    hits = await index.search(query, 10)
    assert len(await select(index, query, top_k=10, top_n=3, min_score=0)) == 3
    assert len(await select(index, query, top_k=2, top_n=3, min_score=0)) == 2
    chosen = await select(index, query, top_k=10, top_n=10, min_score=hits[1].score)
    assert [one.key for one in chosen] == [hit.key for hit in hits[:2]]


async def test_texts_of_any_kind_can_be_indexed():
    odd = ["", " ", "\ud800", "\x00", "日本語の説明", "x" * 200_000, "é" * 10]
    index = await fill([SearchItem(str(n), (Passage(text),)) for n, text in enumerate(odd)] + [SearchItem("none", ())])
    assert (await keys(index, "日本語の説明"))[0] == "4"
