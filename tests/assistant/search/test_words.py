import pytest

from dragoman.assistant.search.thesaurus import stem
from tests.table import each_row


@each_row(
    "forms",
    [
        "merge merges merging merged",
        "stop stops stopping stopped",
        "call calls calling called",
        "cancel cancels cancelling canceled",
        "file files filing filed",
        "add adds adding added",
        "reply replies replied replying",
        "branch branches",
        "address addresses",
        "company companies",
    ],
)
def test_forms_of_a_word_have_one_stem(forms):
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize("words", ["note not", "news new", "string sting", "status state", "need knee", "use us"])
def test_different_words_have_different_stems(words):
    one, other = words.split()
    assert stem(one) != stem(other)
