from dragoman.assistant.search.index import MAX_WORDS, pieces

LOG = "\n".join(f"2026-01-01 12:00:{number % 60:02} worker[{number}] heartbeat accepted" for number in range(2000))


def test_a_prompt_of_ordinary_length_is_looked_for_as_it_is():
    assert pieces("  what time\n is it?  ") == ["what time is it?"]


def test_a_blank_prompt_has_nothing_to_look_for():
    assert pieces(" \n\t") == []


def test_what_is_asked_before_a_pasted_log_is_a_piece_by_itself():
    assert "why is this so slow?" in pieces(f"why is this so slow?\n{LOG}")


def test_what_is_asked_after_a_pasted_log_is_a_piece_by_itself():
    assert "why is this so slow?" in pieces(f"{LOG}\nwhy is this so slow?")


def test_code_between_fences_is_left_out():
    assert pieces("explain this:\n```sql\nselect 1\n```\nplease") == ["explain this: please"]


def test_a_fence_that_never_closes_takes_the_rest():
    assert pieces(f"explain this:\n```\n{LOG}") == ["explain this:"]


def test_a_prompt_that_is_all_code_is_looked_for_all_the_same():
    assert pieces("```\nselect 1\n```") == ["``` select 1 ```"]


def test_pieces_are_few_and_short_however_long_the_prompt():
    for prompt in ("word " * 1_000_000, "w" * 5_000_000, LOG * 20, "line\n" * 500_000):
        found = pieces(prompt)
        assert 1 <= len(found) <= 4
        assert all(len(piece.split()) <= MAX_WORDS for piece in found)
        assert all(len(piece) <= 10_000 for piece in found)
