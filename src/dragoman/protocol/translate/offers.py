"""The offers of a session to the person: config options, modes and slash commands.

Version 2 has no modes: a mode is a config option of the category `mode`. To version 2 the modes of an agent become such
an option, unless the agent has one already. To version 1 such an option becomes modes as well, because many clients
know nothing else. A boolean option becomes a choice of `true` and `false` for a version 1 client that takes no
booleans.
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
    take_carried,
    without,
)

MODE = "mode"
"""The category of the option that stands for modes, and the id of the one that is made of a version 1 agent's modes."""


def option_to_v2(option: Object) -> Object:
    """Return a config option of version 1 as one of version 2."""
    bare, carried = take_carried(option, OF_V2)
    if "option" in carried:
        return as_object(carried["option"])
    made = rename({**bare, **carried}, "id", "configId")
    if made.get("type") == "select":
        made["options"] = [rename(each, "group", "groupId") for each in objects_in(made.get("options"))]
    return made


def option_to_v1(option: Object, *, takes_booleans: bool) -> Object | None:
    """Return a config option of version 2 as one of version 1; None for a type that is not known there."""
    made = rename(restore(option, OF_V1), "configId", "id")
    if made.get("type") == "select":
        return {**made, "options": [rename(each, "groupId", "group") for each in objects_in(made.get("options"))]}
    if made.get("type") != "boolean":
        return None
    if takes_booleans:
        return made
    choices = [{"value": "true", "name": "On"}, {"value": "false", "name": "Off"}]
    value = "true" if made.get("currentValue") is True else "false"
    return carry({**made, "type": "select", "currentValue": value, "options": choices}, OF_V2, {"option": option})


def command_to_v2(command: Object) -> Object:
    """Return a slash command of version 1 as one of version 2."""
    made = {"type": "command", **restore(command, OF_V2)}
    given = made.get("input")
    return {**made, "input": {"type": "text", **as_object(given)}} if isinstance(given, dict) else made


def commands_to_v2(update: Object) -> list[Object]:
    """Return the commands of a version 1 update, with those that it carries."""
    carried = as_object(as_object(update.get("_meta")).get(OF_V2)).get("availableCommands")
    return [command_to_v2(each) for each in objects_in(update.get("availableCommands"))] + objects_in(carried)


def commands_to_v1(commands: Json) -> Object:
    """Return the update of version 1 with the commands of version 2; commands of other types are carried."""
    given = objects_in(commands)
    known = [_command_to_v1(each) for each in given if each.get("type") == "command"]
    other = [each for each in given if each.get("type") != "command"]
    made = {"sessionUpdate": "available_commands_update", "availableCommands": known}
    return carry(made, OF_V2, {"availableCommands": other} if other else {})


def _command_to_v1(command: Object) -> Object:
    made = without(command, "type")
    given = made.get("input")
    if not isinstance(given, dict):
        return made
    if as_object(given).get("type") == "text":
        return {**made, "input": without(as_object(given), "type")}
    return move(made, OF_V2, ("input",))


class OffersForV2:
    """The modes and options of a version 1 agent's session, as the config options of version 2."""

    def __init__(self) -> None:
        self._options: list[Object] | None = None
        self._modes: Object | None = None
        self._other: list[Object] = []

    def take(self, response: Object) -> Object:
        """Return the response to new, load, resume or fork with the options that version 2 has for its modes too."""
        response, carried = take_carried(response, OF_V2)
        self._other = objects_in(carried.get("configOptions"))
        if isinstance(response.get("modes"), dict):
            self._modes = as_object(response["modes"])
        if isinstance(response.get("configOptions"), list):
            self._options = objects_in(response["configOptions"])
        made = without(response, "modes", "configOptions")
        options = self.options()
        return made if options is None else {**made, "configOptions": options}

    def take_options(self, told: Object) -> Object:
        """Take the members that tell the config options of version 1, and return them with all of version 2."""
        told, carried = take_carried(told, OF_V2)
        self._options, self._other = objects_in(told.get("configOptions")), objects_in(carried.get("configOptions"))
        return {**told, "configOptions": self.options() or []}

    def take_mode(self, mode_id: Json) -> list[Object] | None:
        """Take the current mode; return the options of version 2 if it changes them."""
        before = self.options()
        if self._modes is not None:
            self._modes = {**self._modes, "currentModeId": mode_id}
        if (own := self._own_mode()) is not None and mode_id in _values_of(own):
            self._options = [{**each, "currentValue": mode_id} if each is own else each for each in self._options or []]
        after = self.options()
        return after if after != before else None

    def is_mode(self, config_id: Json) -> bool:
        """Whether an option is the one made of the modes."""
        return self._modes is not None and self._own_mode() is None and config_id == MODE

    def options(self) -> list[Object] | None:
        """Return the options of version 2; None where the agent has named neither options nor modes."""
        if self._options is None and self._modes is None:
            return None
        made = [*(option_to_v2(each) for each in self._options or []), *self._other]
        return made if self._modes is None or self._own_mode() else [_option_of(self._modes), *made]

    def _own_mode(self) -> Object | None:
        return next(
            (each for each in self._options or [] if each.get("category") == MODE or each.get("id") == MODE), None
        )


def _option_of(modes: Object) -> Object:
    options = [rename(each, "id", "value") for each in objects_in(modes.get("availableModes"))]
    made = {
        "type": "select",
        "configId": MODE,
        "name": "Mode",
        "category": MODE,
        "currentValue": modes.get("currentModeId"),
        "options": options,
    }
    return carry(made, OF_V1, {"isModes": True})


class OffersForV1:
    """The config options of a version 2 agent's session, as the modes and options of version 1."""

    def __init__(self, *, takes_booleans: bool) -> None:
        self._takes_booleans = takes_booleans
        self._options: list[Object] = []

    def take(self, response: Object) -> Object:
        """Return the response to new, resume or fork with the modes that version 1 has for an option."""
        made = without(response, "configOptions", "availableCommands")
        if not isinstance(response.get("configOptions"), list):
            return made
        self._options = objects_in(response["configOptions"])
        made |= self.told()
        modes = self.modes()
        return made if modes is None else {**made, "modes": modes}

    def take_options(self, options: Json) -> tuple[Object, str | None]:
        """Take new options; return the members that tell them, and the current mode if it has changed."""
        before = as_object(self.modes()).get("currentModeId")
        self._options = objects_in(options)
        after = as_object(self.modes()).get("currentModeId")
        return self.told(), cast("str", after) if after != before else None

    def told(self) -> Object:
        """Return the options that version 1 has; others are carried."""
        given = [each for each in self._options if not _is_modes(each)]
        made = [option_to_v1(each, takes_booleans=self._takes_booleans) for each in given]
        told: Object = {"configOptions": [each for each in made if each is not None]}
        other = [option for option, each in zip(given, made, strict=True) if each is None]
        if not told["configOptions"] and not other and len(given) < len(self._options):
            return {}
        return carry(told, OF_V2, {"configOptions": other} if other else {})

    def modes(self) -> Object | None:
        """Return the modes; None where no option is a choice of modes."""
        option = self._mode_option()
        if option is None:
            return None
        choices = [choice for each in objects_in(option.get("options")) for choice in _choices(each)]
        modes = [rename(each, "value", "id") for each in choices]
        return {"currentModeId": option.get("currentValue"), "availableModes": modes}

    def config_id_of_modes(self) -> str | None:
        """Return the id of the option that the modes are made of."""
        option = self._mode_option()
        return None if option is None else cast("str", option.get("configId"))

    def value_to_v2(self, config_id: Json, request: Object) -> Object:
        """Return the type and value of a request to set an option."""
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
