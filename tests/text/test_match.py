"""The closest match of a word that was mistyped."""

from dragoman.text.match import MAX_COMPARED, closest, near_matches


def test_the_nearest_word_is_found_whatever_its_case():
    assert closest("Sessoins", ["serve", "sessions", "check"]) == "sessions"
    assert closest("GUIDE", ["guide"]) == "guide"
    assert closest("claude", ["Claude"]) == "Claude"


def test_a_word_that_is_like_none_has_no_match():
    assert closest("zzzz", ["serve", "sessions"]) is None
    assert closest("", ["serve"]) is None
    assert closest("x", []) is None


def test_the_nearest_of_very_many_is_found_without_comparing_them_all():
    many = [f"server/tool_{number}" for number in range(20 * MAX_COMPARED)]
    assert closest("weather/get_forcast", [*many, "weather/get_forecast"]) == "weather/get_forecast"


def test_several_matches_come_nearest_first():
    assert near_matches("read", ["write", "reads", "read_file"], count=2) == ["reads", "read_file"]
