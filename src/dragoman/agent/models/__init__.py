"""The models that an agent can talk with, each by its name: `script:FILE`."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path

from dragoman.agent.models.model import Model
from dragoman.errors import DragomanError


class UnknownModel(DragomanError):
    """There is no model of that name."""


def find_model(name: str | None) -> Callable[[], Model]:
    """Return what makes the named model on first need; raises UnknownModel, and ScriptError for a bad script."""
    from dragoman.agent.models.script import load_script, parse_script

    if name is None:
        demo = resources.files("dragoman.agent.models") / "demo.yaml"
        return lambda: parse_script(demo.read_text(encoding="utf-8"), "demo.yaml")
    kind, _, rest = name.partition(":")
    if kind != "script" or not rest:
        raise UnknownModel(f"there is no model {name!r}; expected script:FILE")
    model = load_script(Path(rest))
    return lambda: model
