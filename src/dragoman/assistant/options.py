"""The modes and options of our sessions."""

from collections.abc import Sequence

from dragoman.agent.settings import BooleanOption, Mode, SelectOption, SessionOption
from dragoman.assistant.models.model import Model
from dragoman.assistant.profile import Profile

GUIDE = "guide"

MODEL, THOUGHT_LEVEL, THOUGHTS = "model", "thought_level", "thoughts"

MODES = (
    Mode("ask", "Ask", "Reads run; everything else asks first", "ask"),
    Mode("code", "Code", "Edits in the project run; commands ask first", "edits"),
    Mode("plan", "Plan", "Looks and thinks, changes nothing", "reads"),
    Mode("yolo", "Yolo", "Everything runs, nothing asks", "all"),
)


def modes_of(profile: Profile) -> Sequence[Mode]:
    """Return the modes that an agent file allows."""
    return [mode for mode in MODES if mode.id != "yolo" or profile.permissions.allow_yolo]


def options_of(models: Sequence[str], model: Model) -> Sequence[SessionOption]:
    """Return the options of a session with this model, and these models to choose from, the configured one first."""
    options: list[SessionOption] = [SelectOption(MODEL, "Model", models, category=MODEL)]
    if model.thought_levels:
        options.append(SelectOption(THOUGHT_LEVEL, "Thinking", model.thought_levels, category=THOUGHT_LEVEL))
    shown = BooleanOption(
        THOUGHTS, "Show thoughts", default=True, description="Show what the model thinks before it answers"
    )
    return [*options, shown]
