"""What a person can set in a session: its mode and its options.

The mode is shown twice, as `modes` for older clients and among the `configOptions` for newer ones; both are made
from the same value, so they cannot differ.
"""

import msgspec

from dragoman.errors import InvalidParams
from dragoman.protocol import v1

MODE = "mode"
THOUGHTS = "thoughts"

MODES = [
    v1.SessionMode(id="ask", name="Ask", description="Reads run; everything else asks first"),
    v1.SessionMode(id="code", name="Code", description="Edits in the project run; commands ask first"),
    v1.SessionMode(id="plan", name="Plan", description="Looks and thinks, changes nothing"),
]


class Settings(msgspec.Struct):
    """The current values; as JSON they are a `config` record of the session's log."""

    mode: str = MODES[0].id
    thoughts: bool = True

    def modes(self) -> v1.SessionModeState:
        """Show the mode to clients that know modes."""
        return v1.SessionModeState(current_mode_id=self.mode, available_modes=MODES)

    def options(self, *, boolean: bool) -> list[v1.SessionConfigOption]:
        """Show all there is to set; boolean options only to clients that know them."""
        options: list[v1.SessionConfigOption] = [
            v1.SessionConfigSelect(
                id=MODE,
                name="Mode",
                category="mode",
                current_value=self.mode,
                options=[
                    v1.SessionConfigSelectOption(value=mode.id, name=mode.name, description=mode.description)
                    for mode in MODES
                ],
            )
        ]
        if boolean:
            options.append(
                v1.SessionConfigBoolean(
                    id=THOUGHTS,
                    name="Show thoughts",
                    description="Show what the model thinks before it answers",
                    current_value=self.thoughts,
                )
            )
        return options

    def set_mode(self, mode_id: str, path: str = "params.modeId") -> None:
        """Change the mode; raises InvalidParams."""
        known = [mode.id for mode in MODES]
        if mode_id not in known:
            listed = ", ".join(known)
            raise InvalidParams(path, f"there is no mode {mode_id!r}; expected one of {listed}", expected=listed)
        self.mode = mode_id

    def set_option(self, params: v1.SetSessionConfigOptionRequest, *, boolean: bool) -> None:
        """Change an option; raises InvalidParams."""
        if params.config_id == MODE and isinstance(params, v1.SetSessionConfigOptionValueId):
            self.set_mode(params.value, "params.value")
        elif params.config_id == THOUGHTS and boolean and isinstance(params, v1.SetSessionConfigOptionBoolean):
            self.thoughts = params.value
        else:
            raise _misfit(params, [MODE, THOUGHTS] if boolean else [MODE])


def _misfit(params: v1.SetSessionConfigOptionRequest, known: list[str]) -> InvalidParams:
    if params.config_id not in known:
        listed = ", ".join(known)
        problem = f"there is no option {params.config_id!r}; expected one of {listed}"
        return InvalidParams("params.configId", problem, expected=listed)
    expected = "one of its values, as a string" if params.config_id == MODE else 'true or false, with type "boolean"'
    return InvalidParams("params.value", f"{params.config_id} takes {expected}", expected=expected)
