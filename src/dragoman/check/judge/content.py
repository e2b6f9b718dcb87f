"""Rules about content blocks, slash commands, and elicitations with forms and URLs."""

import re
from collections.abc import Iterable
from typing import ClassVar, cast
from urllib.parse import urlsplit

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Json, Object, SeenMessage, is_base64, offered, part, parts, text, texts
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.errors import ErrorCode

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
CHUNKS = ("update agent_message_chunk", "update agent_thought_chunk", "update user_message_chunk")
MESSAGES = ("update agent_message", "update agent_thought", "update user_message")


class ContentObserver(Observer):
    """Judges content blocks in all messages."""

    area: ClassVar[str] = "CONTENT"

    @watch(*CHUNKS)
    def on_chunk(self, message: SeenMessage) -> None:
        content = part(message.update, "content")
        if content.get("type") != "text":
            self._judge(content, message)

    @watch(*MESSAGES)
    def on_message(self, message: SeenMessage) -> None:
        for each in parts(message.update, "content"):
            if each.get("type") != "text":
                self._judge(each, message)

    @watch("update tool_call_content_chunk")
    def on_tool_call_chunk(self, message: SeenMessage) -> None:
        content = part(part(message.update, "content"), "content")
        if content.get("type") != "text":
            self._judge(content, message)

    @watch("update tool_call", "update tool_call_update")
    def on_tool_call(self, message: SeenMessage) -> None:
        for each in parts(message.update, "content"):
            content = part(each, "content")
            if content.get("type") != "text":
                self._judge(content, message)

    @watch("request session/prompt")
    def on_prompt(self, message: SeenMessage) -> None:
        for each in parts(message.params, "prompt"):
            if each.get("type") != "text":
                self._judge(each, message)

    def _judge(self, block: Object, message: SeenMessage) -> None:
        kind = text(block, "type")
        resource = part(block, "resource")
        tens = "10" if message.sender == "client" else "00"
        data = text(resource, "blob") if kind == "resource" else text(block, "data")
        if data is not None and kind in ("image", "audio", "resource"):
            self.judge(
                f"ACP-CONTENT-{tens}2",
                is_base64(data),
                f"the data of a block of type {kind} is not base64",
                message.entry,
            )
        uri = text(resource, "uri") if kind == "resource" else text(block, "uri")
        if uri is not None and kind in ("resource", "resource_link"):
            self.judge(
                f"ACP-CONTENT-{tens}3",
                _URI.match(uri) is not None,
                f"the uri of a block of type {kind} is {uri!r}; expected one with a scheme",
                message.entry,
            )


class CommandObserver(Observer):
    """Judges slash commands."""

    area: ClassVar[str] = "CMD"

    @watch("update available_commands_update")
    def on_commands(self, message: SeenMessage) -> None:
        self._judge(parts(message.update, "availableCommands"), message)

    @watch("result session/new", "result session/resume")
    def on_opened(self, message: SeenMessage) -> None:
        self._judge(parts(message.params, "availableCommands"), message)

    def _judge(self, commands: list[Object], message: SeenMessage) -> None:
        names = list(_names(commands))
        if not names:
            return
        spaced = [each for each in names if any(map(str.isspace, each))]
        self.judge("ACP-CMD-004", not spaced, f"the names {spaced} have spaces in them", message.entry)
        twice = sorted({each for each in names if names.count(each) > 1})
        self.judge("ACP-CMD-002", not twice, f"commands are offered twice: {twice}", message.entry)
        slashed = [each for each in names if each.startswith("/")]
        self.judge("ACP-CMD-003", not slashed, f"the names {slashed} begin with a slash", message.entry)


def _names(commands: Iterable[Object]) -> Iterable[str]:
    for each in commands:
        name = text(each, "name")
        if name is not None:
            yield name


ACTIONS = frozenset({"accept", "decline", "cancel"})

_SECRETS = re.compile(
    r"(?<![a-z])(password|passphrase|passcode|api.?key|secret|access.?token|refresh.?token|auth.?token|bearer.?token"
    r"|private.?key|recovery.?code|credit.?card|card.?number|cvv|cvc)(?![a-z])",
    re.IGNORECASE,
)
_SECRET_NAMES = frozenset(
    {"password", "passphrase", "apikey", "secretkey", "accesstoken", "refreshtoken", "privatekey", "creditcardnumber"}
)
_SEPARATORS = re.compile(r"[\s_.-]+")
_LINK = re.compile(r"https?://", re.IGNORECASE)
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
}


class ElicitationObserver(Observer):
    """Judges elicitation/create and elicitation/complete."""

    area: ClassVar[str] = "ELICIT"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._open: dict[str, ConversationEntry] = {}
        self._asked: dict[str, ConversationEntry] = {}

    @watch("request elicitation/create")
    def on_create(self, message: SeenMessage) -> None:
        mode = text(message.params, "mode")
        if self.agreement.is_known and mode in ("form", "url"):
            self.judge(
                "ACP-ELICIT-001",
                self.agreement.client_offers(f"elicitation.{mode}"),
                f"an elicitation in {mode} mode, {self.agreement.explain_missing_capability(f'elicitation.{mode}')}",
                *([self.agreement.initialize.entry] if self.agreement.initialize else []),
                message.entry,
            )
        if mode == "form":
            self._judge_form(message)
        elif mode == "url":
            self._judge_url(message)
        elif mode is not None and not mode.startswith("_"):
            self.fail("ACP-ELICIT-008", f"the mode is {mode!r}; expected form, url or a custom one", message.entry)
        self._judge_scope(message)

    def _is_offered(self, mode: str) -> bool:
        return offered(self.agreement.capabilities["client"], f"elicitation.{mode}")

    def _judge_form(self, message: SeenMessage) -> None:
        properties = part(part(message.params, "requestedSchema"), "properties")
        fields = {name: part(properties, name) for name in properties}
        self._judge_secrets(fields, message)
        words = [text(message.params, "message") or ""]
        words += [text(each, name) or "" for each in fields.values() for name in ("title", "description")]
        self.judge(
            "ACP-ELICIT-007", not any(map(_LINK.search, words)), "the form has a link in its texts", message.entry
        )

    def _judge_secrets(self, fields: dict[str, Object], message: SeenMessage) -> None:
        named = [name for name, each in fields.items() if _is_named_secret(name, each)]
        self.judge("ACP-ELICIT-002", not named, f"the form asks for {named}; expected the URL mode", message.entry)
        likely = [name for name, each in fields.items() if name not in named and _is_secret(name, each)]
        if likely:
            self.warn("ACP-ELICIT-002", f"the form asks for {likely}, which looks like a secret", message.entry)

    def _judge_url(self, message: SeenMessage) -> None:
        elicitation_id, url = text(message.params, "elicitationId"), text(message.params, "url")
        if elicitation_id is not None:
            known = self._open.get(elicitation_id)
            self.judge(
                "ACP-ELICIT-003",
                known is None,
                f"the elicitationId {elicitation_id!r} belongs to an elicitation that is still open",
                *([known] if known else []),
                message.entry,
            )
            self._open[elicitation_id] = self._asked[elicitation_id] = message.entry
        if url is None:
            return
        try:
            parsed = urlsplit(url)
            host = parsed.hostname
        except ValueError:
            return
        self.judge(
            "ACP-ELICIT-005",
            parsed.scheme == "https" or (parsed.scheme == "http" and host in _LOCAL),
            f"the URL is {parsed.scheme}; expected https",
            message.entry,
        )
        has_secret = parsed.password is not None or _SECRETS.search(parsed.query) is not None
        self.judge("ACP-ELICIT-006", not has_secret, "the URL contains credentials", message.entry)

    def _judge_scope(self, message: SeenMessage) -> None:
        session, call_id = self.state.session(message), text(message.params, "toolCallId")
        if session is not None and call_id is not None:
            self.judge(
                "ACP-ELICIT-009",
                call_id in session.calls,
                f"the elicitation is for the tool call {call_id!r}, which was not announced",
                message.entry,
            )
        request_id = message.params.get("requestId")
        if isinstance(request_id, str | int):
            self.judge(
                "ACP-ELICIT-009",
                request_id in self.requests.pending["client"],
                f"the elicitation is for the request {request_id!r}, which is not open",
                message.entry,
            )

    @watch("notification elicitation/complete")
    def on_complete(self, message: SeenMessage) -> None:
        elicitation_id = text(message.params, "elicitationId")
        if elicitation_id is None or self.agreement.initialized is None:
            return
        self._open.pop(elicitation_id, None)
        self.judge(
            "ACP-ELICIT-004",
            elicitation_id in self._asked,
            f"elicitation/complete for {elicitation_id!r}, which is unknown",
            message.entry,
        )

    @watch("answer elicitation/create")
    def on_answer(self, message: SeenMessage) -> None:
        request = message.request
        mode = text(request.params, "mode") if request is not None else None
        if request is None or mode is None:
            return
        action = text(message.params, "action")
        if action is not None and action not in ACTIONS and not action.startswith("_"):
            self.fail("ACP-ELICIT-101", f"the action is {action!r}; expected one of {sorted(ACTIONS)}", message.entry)
        if action != "accept":
            self._open.pop(text(request.params, "elicitationId") or "", None)
        if message.kind == "error" and message.code is None:
            return  # ACP-WIRE-109 covers that
        if self.agreement.initialized is not None and not self._is_offered(mode):
            self.judge(
                "ACP-ELICIT-103",
                message.code == ErrorCode.INVALID_PARAMS,
                f"an elicitation in {mode} mode, which is not advertised, was not refused with -32602",
                request.entry,
                message.entry,
            )
        elif mode == "form" and action == "accept":
            wrong = _find_wrong(part(request.params, "requestedSchema"), message.params.get("content"))
            self.judge(
                "ACP-ELICIT-102",
                wrong is None,
                f"the content does not fit the form: {wrong}",
                request.entry,
                message.entry,
            )


def _is_named_secret(name: str, schema: Object) -> bool:
    """Return whether a free text field is named exactly like a secret, so that it cannot be anything else."""
    names = {_SEPARATORS.sub("", each).lower() for each in (name, text(schema, "title") or "")}
    choices = "enum" in schema or "oneOf" in schema
    return text(schema, "type") == "string" and not choices and not _SECRET_NAMES.isdisjoint(names)


def _is_secret(name: str, schema: Object) -> bool:
    words = f"{name} {text(schema, 'title') or ''}"
    return _SECRETS.search(words) is not None


def _find_wrong(schema: Object, content: Json) -> str | None:
    """Return the first mistake in the values of a form, or None."""
    values = cast("Object", content) if isinstance(content, dict) else {}
    for name in texts(schema, "required"):
        if name not in values:
            return f"{name} is missing"
    for name, value in values.items():
        field = part(part(schema, "properties"), name)
        if not field:
            return f"{name} was not asked for"
        if not _fits(field, value):
            return f"{name} is {value!r}"
    return None


def _fits(field: Object, value: Json) -> bool:
    allowed = _TYPES.get(text(field, "type") or "")
    if allowed is None:
        return True
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        return False
    choices = texts(field, "enum") or [each for option in parts(field, "oneOf") if (each := text(option, "const"))]
    return not choices or value in choices
