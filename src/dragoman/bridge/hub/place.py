"""Where a viewer says that it is: the id of an event, or the cursor that a message was marked with."""

import msgspec

_MAX_DIGITS = 18
"""What fits into 64 bits."""


class Place(msgspec.Struct, frozen=True):
    """A place in a journal, and among the messages for one viewer alone."""

    epoch: str
    seq: int
    number: int | None = None
    """The last of those messages; a cursor does not say."""


def read_place(text: str | None) -> Place | None:
    """Read `<epoch>.<seq>.<number>` or `<epoch>.<seq>`; None for what is neither."""
    epoch, *numbers = (text or "").split(".")
    if len(numbers) not in {1, 2} or not all(map(_is_number, numbers)):
        return None
    return Place(epoch, *map(int, numbers))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
