"""The closest match of a mistyped word."""

from dragoman.text.match import MAX_COMPARED, closest, near_matches


def test_closest_word_is_found_ignoring_case():
    assert closest("Sessoins", ["serve", "sessions", "check"]) == "sessions"
    assert closest("GUIDE", ["guide"]) == "guide"
    assert closest("claude", ["Claude"]) == "Claude"


def test_dissimilar_word_has_no_match():
    assert closest("zzzz", ["serve", "sessions"]) is None
    assert closest("", ["serve"]) is None
    assert closest("x", []) is None


def test_closest_of_very_many_words_is_found():
    many = [f"server/tool_{number}" for number in range(20 * MAX_COMPARED)]
    assert closest("weather/get_forcast", [*many, "weather/get_forecast"]) == "weather/get_forecast"


def test_matches_are_sorted_by_similarity():
    assert near_matches("read", ["write", "reads", "read_file"], count=2) == ["reads", "read_file"]
