"""Rules about modes and config options of sessions."""

from collections.abc import Iterator
from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Json, Object, SeenMessage, offered, part, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import SeenSession
from dragoman.check.rule import V1, Version
from dragoman.errors import ErrorCode

OPENED = ("result session/new", "result session/load", "result session/resume")
CATEGORIES = frozenset({"mode", "model", "model_config", "thought_level"})
VALUE_TYPES = frozenset({"id", "boolean"})
"""The value types that a version 2 client can set."""


class ModeObserver(Observer):
    """Judges session modes."""

    area: ClassVar[str] = "MODE"
    versions: ClassVar[tuple[Version, ...]] = V1

    @watch(*OPENED)
    def on_opened(self, message: SeenMessage) -> None:
        modes = part(message.params, "modes")
        if not modes or not message.fits:  # ACP-MODE-006 covers those
            return
        ids = [text(each, "id") for each in parts(modes, "availableModes")]
        current = text(modes, "currentModeId")
        if current is not None:
            self.judge(
                "ACP-MODE-001", current in ids, f"currentModeId is {current!r}; expected one of {ids}", message.entry
            )
        self.judge("ACP-MODE-002", len(set(ids)) == len(ids), f"modes share an id: {ids}", message.entry)

    @watch("request session/set_mode")
    def on_set(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        if session is None or (session.modes is None and "modes" in session.opened.params):
            return
        mode = text(message.params, "modeId")
        if mode is None:
            return
        self.judge(
            "ACP-MODE-101",
            mode in (session.modes or ()),
            f"session/set_mode with {mode!r}; expected one of {sorted(session.modes or ())}",
            session.opened.entry,
            message.entry,
        )

    @watch("answer session/set_mode")
    def on_was_set(self, message: SeenMessage) -> None:
        session, request = self.state.requested_session(message), message.request
        if session is None or request is None or session.modes is None:
            return
        mode = text(request.params, "modeId")
        if mode is not None and mode not in session.modes:
            self.judge(
                "ACP-MODE-003",
                message.kind == "error",
                f"session/set_mode with {mode!r}, which is not available, succeeded; expected an error",
                session.opened.entry,
                request.entry,
                message.entry,
            )

    @watch("update current_mode_update")
    def on_change(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        mode = text(message.update, "currentModeId")
        if session is None or mode is None:
            return
        if session.modes is not None:
            self.judge(
                "ACP-MODE-005",
                mode in session.modes,
                f"the mode changed to {mode!r}; expected one of {sorted(session.modes)}",
                session.opened.entry,
                message.entry,
            )


class ConfigObserver(Observer):
    """Judges config options."""

    area: ClassVar[str] = "CONFIG"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._listed: dict[str, ConversationEntry] = {}
        """The last message with the options of a session, by session."""
        self._refused: dict[tuple[str, str], SeenMessage] = {}
        """Refusals to set an option since the options were last sent, by session and option."""

    @property
    def _id(self) -> str:
        return self.agreement.dialect.option_id

    @watch(*OPENED)
    def on_opened(self, message: SeenMessage) -> None:
        self._judge_options(message.params, message)
        request = message.request
        opened = text(message.params, "sessionId") or (text(request.params, "sessionId") if request else None)
        self._listed[opened or ""] = message.entry
        options = [each for each in parts(message.params, "configOptions") if text(each, "category") == "mode"]
        if not options:
            return
        modes = part(message.params, "modes")
        self.judge(
            "ACP-CONFIG-007",
            bool(modes),
            "there is an option of the category mode, but no modes for clients that do not know options",
            message.entry,
        )
        if modes:
            value, mode = options[0].get("currentValue"), modes.get("currentModeId")
            self.judge(
                "ACP-CONFIG-006",
                value == mode,
                f"currentModeId is {mode!r} and the option for it {value!r}; expected the same",
                message.entry,
            )

    @watch("update config_option_update")
    def on_change(self, message: SeenMessage) -> None:
        self._judge_options(message.update, message)
        self._listed[text(message.params, "sessionId") or ""] = message.entry
        self._refused.clear()

    @watch("request session/set_config_option")
    def on_set(self, message: SeenMessage) -> None:
        session = self.state.session(message)
        name, value = text(message.params, "configId"), message.params.get("value")
        if session is None or name is None:
            return
        option = session.options.get(name)
        self.judge(
            "ACP-CONFIG-102",
            option is not None,
            f"configId is {name!r}; expected one of {sorted(session.options)}",
            session.opened.entry,
            message.entry,
        )
        if option is not None:
            self.judge(
                "ACP-CONFIG-101",
                offers_value(option, value),
                f"the option {name!r} was set to {value!r}, which it does not offer",
                session.opened.entry,
                message.entry,
            )

    @watch("answer session/set_config_option")
    def on_was_set(self, message: SeenMessage) -> None:
        """Judge the answer to a request that sets an option.

        A value that the option never offered must be refused. After any other value, the answer must list all
        options, with the new value for this one.
        """
        session, request = self.state.requested_session(message), message.request
        name = text(request.params, "configId") if request is not None else None
        if session is None or request is None or name is None or not session.options:
            return
        value = request.params.get("value")
        if self.state.is_v2 and text(request.params, "type") not in VALUE_TYPES:
            self._judge_unknown_type(request, message)
            return
        if not any(offers_value(each, value) for each in session.past_options.get(name, ())):
            if message.kind == "error":
                self._refused[session.id, name] = message
                self.judge(
                    "ACP-CONFIG-011",
                    message.code == ErrorCode.INVALID_PARAMS,
                    f"setting {name!r} to {value!r}, which is not offered, was refused with {message.code}; "
                    "expected -32602",
                    request.entry,
                    message.entry,
                )
            self.judge(
                "ACP-CONFIG-009",
                message.kind == "error",
                f"setting {name!r} to {value!r}, which is not offered, succeeded; expected an error",
                session.opened.entry,
                request.entry,
                message.entry,
            )
            return
        if message.kind == "error":
            return
        self._judge_options(message.params, message)
        self._judge_whole(session, name, request, message)
        now = [each for each in parts(message.params, "configOptions") if text(each, self._id) == name]
        self.judge(
            "ACP-CONFIG-002",
            bool(now),
            f"the answer does not have the option {name!r} that was set; expected all options",
            request.entry,
            message.entry,
        )
        if now and offers_value(now[0], value):
            self.judge(
                "ACP-CONFIG-003",
                now[0].get("currentValue") == value,
                f"{name!r} was set to {value!r} and is {now[0].get('currentValue')!r}",
                request.entry,
                message.entry,
            )

    def _judge_unknown_type(self, request: SeenMessage, answer: SeenMessage) -> None:
        kind = text(request.params, "type")
        if kind is not None and answer.code != ErrorCode.METHOD_NOT_FOUND:
            self.judge(
                "ACP-CONFIG-013",
                answer.code == ErrorCode.INVALID_PARAMS,
                f"a value of the type {kind!r} was answered with {answer.code or 'a result'}; expected -32602",
                request.entry,
                answer.entry,
            )

    def _judge_whole(self, session: SeenSession, name: str, request: SeenMessage, answer: SeenMessage) -> None:
        """Judge whether the answer omits options. An option that can still be set must be listed."""
        listed = self._listed.get(session.id)
        proof = (*([listed] if listed else []), request.entry, answer.entry)
        self._listed[session.id] = answer.entry
        if name not in session.options:
            self.fail(
                "ACP-CONFIG-002",
                f"the option {name!r} could be set, but the last list of options did not have it; expected all options",
                *proof,
            )
            return
        is_change = session.options[name].get("currentValue") != request.params.get("value")
        if is_change:
            return
        now = {text(each, self._id): each for each in parts(answer.params, "configOptions")}
        for other, option in session.options.items():
            refused = self._refused.get((session.id, other))
            if refused is not None and other != name and other in now:
                before, after = option.get("currentValue"), now[other].get("currentValue")
                detail = f"setting {other!r} was refused, and it is {after!r} now; expected {before!r}"
                self.judge("ACP-CONFIG-011", before == after, detail, refused.entry, request.entry, answer.entry)
        gone = sorted(session.options.keys() - now.keys() - {name})
        if gone:
            self.fail(
                "ACP-CONFIG-002",
                f"{name!r} was set to its current value, and the answer lacks {gone}; expected all options",
                *proof,
            )

    def _judge_options(self, value: Object, message: SeenMessage) -> None:
        options = parts(value, "configOptions")
        if not options:
            return
        ids = [text(each, self._id) for each in options]
        self.judge("ACP-CONFIG-005", len(set(ids)) == len(ids), f"options share an id: {ids}", message.entry)
        if self.agreement.initialized is not None:
            able = offered(self.agreement.capabilities["client"], "session.configOptions.boolean")
            booleans = [text(each, self._id) for each in options if text(each, "type") == "boolean"]
            self.judge(
                "ACP-CONFIG-001",
                able or not booleans,
                f"the boolean options {booleans} are sent to a client that did not advertise them",
                *([self.agreement.initialize.entry] if self.agreement.initialize else []),
                message.entry,
            )
        for option in options:
            self._judge_option(option, message)

    def _judge_option(self, option: Object, message: SeenMessage) -> None:
        name, current = text(option, self._id), option.get("currentValue")
        if text(option, "type") == "select" and isinstance(current, str):
            self.judge(
                "ACP-CONFIG-004",
                offers_value(option, current),
                f"the option {name!r} is {current!r}, which it does not offer",
                message.entry,
            )
            values = list(_values(option))
            self.judge(
                "ACP-CONFIG-012",
                bool(values) and len({str(each) for each in values}) == len(values),
                f"the option {name!r} has the values {values}; expected at least one, and each once",
                message.entry,
            )
        category = text(option, "category")
        if category is not None:
            self.judge(
                "ACP-CONFIG-008",
                category in CATEGORIES or category.startswith("_"),
                f"the option {name!r} has the category {category!r}; "
                f"expected one of {sorted(CATEGORIES)}, or a name that begins with an underscore",
                message.entry,
            )


def offers_value(option: Object, value: Json) -> bool:
    """Return whether an option offers a value. An option of an unknown type offers any value."""
    match text(option, "type"):
        case "boolean":
            return isinstance(value, bool)
        case "select":
            return value in list(_values(option))
        case _:
            return True


def _values(option: Object) -> Iterator[Json]:
    for each in parts(option, "options"):
        if "options" in each:
            yield from _values(each)
        else:
            yield each.get("value")
