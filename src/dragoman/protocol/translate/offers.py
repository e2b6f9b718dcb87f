"""The choices that a session offers to the user: config options, modes and slash commands.

Version 2 has no modes. A mode is a config option of the category `mode`. For version 2, the modes of an agent become
such an option, unless the agent already has one. For version 1, such an option becomes both an option and modes,
because many clients only support modes. A boolean option becomes a choice of `true` and `false` for a version 1 client
without support for booleans.
"""

from typing import cast

from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Json,
    Object,
    as_object,
    carry,
    move,
    objects_in,
    rename,
    restore,
    split_carried,
    without,
)

MODE = "mode"
"""The category of the mode option, and the id of the option made from a version 1 agent's modes."""


def option_to_v2(option: Object) -> Object:
    """Return a version 1 config option as a version 2 option."""
    bare, carried = split_carried(option, OF_V2)
    if "option" in carried:
        return as_object(carried["option"])
    translated = rename({**bare, **carried}, "id", "configId")
    if translated.get("type") == "select":
        translated["options"] = [rename(each, "group", "groupId") for each in objects_in(translated.get("options"))]
    return translated


def option_to_v1(option: Object, *, supports_booleans: bool) -> Object | None:
    """Return a version 2 config option as a version 1 option, or None for a type unknown to version 1."""
    translated = rename(restore(option, OF_V1), "configId", "id")
    if translated.get("type") == "select":
        return {
            **translated,
            "options": [rename(each, "groupId", "group") for each in objects_in(translated.get("options"))],
        }
    if translated.get("type") != "boolean":
        return None
    if supports_booleans:
        return translated
    choices = [{"value": "true", "name": "On"}, {"value": "false", "name": "Off"}]
    value = "true" if translated.get("currentValue") is True else "false"
    return carry({**translated, "type": "select", "currentValue": value, "options": choices}, OF_V2, {"option": option})


def command_to_v2(command: Object) -> Object:
    """Return a version 1 slash command as a version 2 command."""
    translated = {"type": "command", **restore(command, OF_V2)}
    input_spec = translated.get("input")
    return (
        {**translated, "input": {"type": "text", **as_object(input_spec)}}
        if isinstance(input_spec, dict)
        else translated
    )


def commands_to_v2(update: Object) -> list[Object]:
    """Return the commands of a version 1 update, including the carried ones."""
    carried = as_object(as_object(update.get("_meta")).get(OF_V2)).get("availableCommands")
    return [command_to_v2(each) for each in objects_in(update.get("availableCommands"))] + objects_in(carried)


def commands_to_v1(commands: Json) -> Object:
    """Return the version 1 update for version 2 commands. Commands of other types are carried."""
    entries = objects_in(commands)
    known = [_command_to_v1(each) for each in entries if each.get("type") == "command"]
    other = [each for each in entries if each.get("type") != "command"]
    translated = {"sessionUpdate": "available_commands_update", "availableCommands": known}
    return carry(translated, OF_V2, {"availableCommands": other} if other else {})


def _command_to_v1(command: Object) -> Object:
    translated = without(command, "type")
    input_spec = translated.get("input")
    if not isinstance(input_spec, dict):
        return translated
    if as_object(input_spec).get("type") == "text":
        return {**translated, "input": without(as_object(input_spec), "type")}
    return move(translated, OF_V2, ("input",))


class OffersForV2:
    """The modes and options of a version 1 agent's session, as version 2 config options."""

    def __init__(self) -> None:
        self._options: list[Object] | None = None
        self._modes: Object | None = None
        self._other: list[Object] = []

    def translate_response(self, response: Object) -> Object:
        """Return the response to new, load, resume or fork with config options instead of modes."""
        response, carried = split_carried(response, OF_V2)
        self._other = objects_in(carried.get("configOptions"))
        if isinstance(response.get("modes"), dict):
            self._modes = as_object(response["modes"])
        if isinstance(response.get("configOptions"), list):
            self._options = objects_in(response["configOptions"])
        translated = without(response, "modes", "configOptions")
        options = self.options()
        return translated if options is None else {**translated, "configOptions": options}

    def translate_options(self, config_options: Object) -> Object:
        """Update the config options from a version 1 message. Return the message with all version 2 options."""
        config_options, carried = split_carried(config_options, OF_V2)
        self._options, self._other = (
            objects_in(config_options.get("configOptions")),
            objects_in(carried.get("configOptions")),
        )
        return {**config_options, "configOptions": self.options() or []}

    def set_mode(self, mode_id: Json) -> list[Object] | None:
        """Set the current mode. Return the version 2 options if they changed."""
        before = self.options()
        if self._modes is not None:
            self._modes = {**self._modes, "currentModeId": mode_id}
        if (own := self._own_mode()) is not None and mode_id in _values_of(own):
            self._options = [{**each, "currentValue": mode_id} if each is own else each for each in self._options or []]
        after = self.options()
        return after if after != before else None

    def is_mode(self, config_id: Json) -> bool:
        """Return whether an option is the one made from the modes."""
        return self._modes is not None and self._own_mode() is None and config_id == MODE

    def options(self) -> list[Object] | None:
        """Return the version 2 options, or None if the agent has neither options nor modes."""
        if self._options is None and self._modes is None:
            return None
        options = [*(option_to_v2(each) for each in self._options or []), *self._other]
        return options if self._modes is None or self._own_mode() else [_option_of(self._modes), *options]

    def _own_mode(self) -> Object | None:
        return next(
            (each for each in self._options or [] if each.get("category") == MODE or each.get("id") == MODE), None
        )


def _option_of(modes: Object) -> Object:
    options = [rename(each, "id", "value") for each in objects_in(modes.get("availableModes"))]
    option = {
        "type": "select",
        "configId": MODE,
        "name": "Mode",
        "category": MODE,
        "currentValue": modes.get("currentModeId"),
        "options": options,
    }
    return carry(option, OF_V1, {"isModes": True})


class OffersForV1:
    """The config options of a version 2 agent's session, as version 1 modes and options."""

    def __init__(self, *, supports_booleans: bool) -> None:
        self._supports_booleans = supports_booleans
        self._options: list[Object] = []

    def translate_response(self, response: Object) -> Object:
        """Return the response to new, resume or fork with the modes that version 1 has for an option."""
        translated = without(response, "configOptions", "availableCommands")
        if not isinstance(response.get("configOptions"), list):
            return translated
        self._options = objects_in(response["configOptions"])
        translated |= self.option_members()
        modes = self.modes()
        return translated if modes is None else {**translated, "modes": modes}

    def set_options(self, options: Json) -> tuple[Object, str | None]:
        """Set new options. Return the members that contain them, and the current mode if it changed."""
        before = as_object(self.modes()).get("currentModeId")
        self._options = objects_in(options)
        after = as_object(self.modes()).get("currentModeId")
        return self.option_members(), cast("str", after) if after != before else None

    def option_members(self) -> Object:
        """Return the members with the version 1 options. Others are carried."""
        options = [each for each in self._options if not _is_modes(each)]
        translated = [option_to_v1(each, supports_booleans=self._supports_booleans) for each in options]
        members: Object = {"configOptions": [each for each in translated if each is not None]}
        other = [option for option, each in zip(options, translated, strict=True) if each is None]
        if not members["configOptions"] and not other and len(options) < len(self._options):
            return {}
        return carry(members, OF_V2, {"configOptions": other} if other else {})

    def modes(self) -> Object | None:
        """Return the modes, or None if no option selects a mode."""
        option = self._mode_option()
        if option is None:
            return None
        choices = [choice for each in objects_in(option.get("options")) for choice in _choices(each)]
        modes = [rename(each, "value", "id") for each in choices]
        return {"currentModeId": option.get("currentValue"), "availableModes": modes}

    def config_id_of_modes(self) -> str | None:
        """Return the id of the option that the modes are made from."""
        option = self._mode_option()
        return None if option is None else cast("str", option.get("configId"))

    def value_to_v2(self, config_id: Json, request: Object) -> Object:
        """Return the type and value for a request that sets an option."""
        is_boolean = any(each.get("configId") == config_id and each.get("type") == "boolean" for each in self._options)
        value = request.get("value")
        if is_boolean and value in ("true", "false"):
            return {"type": "boolean", "value": value == "true"}
        return {"type": "boolean" if isinstance(value, bool) else "id", "value": value}

    def _mode_option(self) -> Object | None:
        modes = (each for each in self._options if each.get("category") == MODE and each.get("type") == "select")
        return next(modes, None)


def _is_modes(option: Object) -> bool:
    return as_object(as_object(option.get("_meta")).get(OF_V1)).get("isModes") is True


def _choices(each: Object) -> list[Object]:
    return objects_in(each["options"]) if "options" in each else [each]


def _values_of(option: Object) -> list[Json]:
    return [choice.get("value") for each in objects_in(option.get("options")) for choice in _choices(each)]
