from dragoman.assistant.search.index import MAX_WORDS, pieces

LOG = "\n".join(f"2026-01-01 12:00:{number % 60:02} worker[{number}] heartbeat accepted" for number in range(2000))


def test_prompt_of_ordinary_length_is_searched_whole():
    assert pieces("  what time\n is it?  ") == ["what time is it?"]


def test_blank_prompt_has_no_pieces():
    assert pieces(" \n\t") == []


def test_question_before_a_pasted_log_is_its_own_piece():
    assert "why is this so slow?" in pieces(f"why is this so slow?\n{LOG}")


def test_question_after_a_pasted_log_is_its_own_piece():
    assert "why is this so slow?" in pieces(f"{LOG}\nwhy is this so slow?")


def test_fenced_code_is_left_out():
    assert pieces("explain this:\n```sql\nselect 1\n```\nplease") == ["explain this: please"]


def test_unclosed_fence_hides_the_rest():
    assert pieces(f"explain this:\n```\n{LOG}") == ["explain this:"]


def test_prompt_of_only_code_is_still_searched():
    assert pieces("```\nselect 1\n```") == ["``` select 1 ```"]


def test_pieces_are_few_and_short_for_any_prompt():
    for prompt in ("word " * 1_000_000, "w" * 5_000_000, LOG * 20, "line\n" * 500_000):
        found = pieces(prompt)
        assert 1 <= len(found) <= 4
        assert all(len(piece.split()) <= MAX_WORDS for piece in found)
        assert all(len(piece) <= 10_000 for piece in found)
