"""The models that an agent can talk with, each by its name: `script:FILE`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.errors import UnknownModel

if TYPE_CHECKING:
    from dragoman.agent.models.model import Model


def find_model(name: str | None) -> "Callable[[], Model]":
    """Return what makes the named model on first need; raises UnknownModel, and ScriptError for a bad script."""
    if name is None:
        return _load_demo
    kind, _, rest = name.partition(":")
    if kind != "script" or not rest:
        raise UnknownModel(name)
    from pathlib import Path

    from dragoman.agent.models.script import load_script

    model = load_script(Path(rest))
    return lambda: model


def _load_demo() -> "Model":
    from importlib import resources

    from dragoman.agent.models.script import parse_script

    demo = resources.files("dragoman.agent.models") / "demo.yaml"
    return parse_script(demo.read_text(encoding="utf-8"), "demo.yaml")
