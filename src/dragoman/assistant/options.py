"""The modes and options of our sessions."""

from collections.abc import Sequence

from dragoman.agent.sessions.settings import BooleanOption, Mode, OptionValue, SelectOption, SessionOption
from dragoman.assistant.models.model import Model
from dragoman.assistant.profile import Profile
from dragoman.sandbox import SandboxMode

GUIDE = "guide"

MODEL, THOUGHT_LEVEL, THOUGHTS, SANDBOX = "model", "thought_level", "thoughts", "sandbox"

MODES = (
    Mode("ask", "Ask", "Reading is allowed; everything else asks first", "ask"),
    Mode("code", "Code", "Edits in the project are allowed; commands outside the sandbox ask first", "edits"),
    Mode("plan", "Plan", "Only reads and plans; changes nothing", "reads"),
    Mode("yolo", "Yolo", "Everything is allowed without asking", "all"),
)


def modes_of(profile: Profile) -> Sequence[Mode]:
    """Return the modes that an agent file allows."""
    return [mode for mode in MODES if mode.id != "yolo" or profile.permissions.allow_yolo]


_SANDBOXES = (
    OptionValue("off", "Off", "Commands run without a sandbox"),
    OptionValue("workspace", "Workspace", "Commands change only the session's directories, without network"),
    OptionValue("workspace+network", "Workspace and network", "Commands change only the session's directories"),
)


def options_of(models: Sequence[str], model: Model, sandbox: SandboxMode) -> Sequence[SessionOption]:
    """Return the options of a session with this model and default sandbox. The first of `models` is configured."""
    options: list[SessionOption] = [SelectOption(MODEL, "Model", models, category=MODEL)]
    if model.thought_levels:
        options.append(SelectOption(THOUGHT_LEVEL, "Thinking", model.thought_levels, category=THOUGHT_LEVEL))
    shown = BooleanOption(
        THOUGHTS, "Show thoughts", default=True, description="Show what the model thinks before it answers"
    )
    kept_in = SelectOption(SANDBOX, "Sandbox", _SANDBOXES, sandbox, "Where commands run without asking in mode code")
    return [*options, kept_in, shown]
