"""The facts for an empty conversation: the model that answers, and prompts to try in the directory."""

from pathlib import Path

import msgspec

from dragoman.assistant.models.model import Model
from dragoman.assistant.options import GUIDE
from dragoman.assistant.start.example_prompts import example_prompts


class Introduction(msgspec.Struct, frozen=True, rename="camel"):
    """The model, and prompts that work in the directory."""

    model: str
    is_language_model: bool
    words: str
    """One sentence on the model."""
    prompts: list[str]
    takes: list[str]
    """The kinds of content beyond text that the model can be given."""


def introduce(model: Model, directory: Path) -> Introduction:
    """Describe a conversation that has not begun; reads the directory, so not for the event loop."""
    kind = model.name.partition(":")[0]
    return Introduction(
        model.name,
        kind not in (GUIDE, "script"),
        _words(model.name, kind),
        example_prompts(directory, for_guide=kind in (GUIDE, "script")),
        sorted(model.takes),
    )


def _words(name: str, kind: str) -> str:
    if kind == GUIDE:
        return (
            "guide answers. It is no language model: it follows fixed rules, needs no key, and does simple work with "
            "files, commands and git."
        )
    if kind == "script":
        return f"{name} answers. It is no language model: it plays a script."
    return f"{name} answers."
