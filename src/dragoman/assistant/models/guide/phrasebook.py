"""All the phrases, in the order in which they are tried."""

from collections.abc import Callable

from dragoman.assistant.models.guide.changing import read_edit, read_write
from dragoman.assistant.models.guide.literal import Masked
from dragoman.assistant.models.guide.looking import read_listing, read_reading
from dragoman.assistant.models.guide.phrase import STRONG, WEAK, Phrase
from dragoman.assistant.models.guide.prompt import LONG, without_courtesy, without_ending
from dragoman.assistant.models.guide.running import read_plan, read_run
from dragoman.assistant.models.guide.seeking import read_search

PhraseReader = Callable[[Masked, str], Phrase | None]


def read_phrase(masked: Masked) -> Phrase | None:
    """Return what a step means, or None when it is none of these."""
    text = without_courtesy(masked.text)
    readers = _READERS if len(text) <= LONG else _LONG_READERS
    return next((phrase for reader in readers if (phrase := reader(masked, text)) is not None), None)


def _search(masked: Masked, text: str) -> Phrase | None:
    found = read_search(masked, without_ending(text))
    return None if found is None else Phrase("search", found.roles, STRONG if found.sure else WEAK)


_READERS: tuple[PhraseReader, ...] = (read_plan, read_run, read_edit, read_write, read_listing, read_reading, _search)
_LONG_READERS: tuple[PhraseReader, ...] = (read_write,)
