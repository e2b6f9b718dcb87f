"""Rules about the shape of every message in both directions, compared with the schema, and about names of extensions.

A message that does not fit breaks the rule for its kind of mistake: a wrong discriminator, wrong casing, or a place
with a rule of its own. Otherwise it breaks a rule of the area of that place, or the general rule.
"""

import re
from collections import Counter
from typing import Any, ClassVar, cast

from dragoman.check.conversation import Side
from dragoman.check.judge.fit import Fitter, Flaw, is_readable
from dragoman.check.judge.foreign_names import V2_UPDATES, explain_field, explain_method
from dragoman.check.judge.message import Json, Object, SeenMessage, part, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.rpc import extension_rule, wire_rule
from dragoman.check.rule import Version
from dragoman.check.rules import RULES
from dragoman.errors import ErrorCode
from dragoman.protocol.mismatch import MissingFieldError

_ALWAYS = {
    "agent": ("ACP-WIRE-020", "ACP-WIRE-022", "ACP-EXT-001"),
    "client": ("ACP-WIRE-120", "ACP-WIRE-122", "ACP-EXT-101"),
}
_TAGS = frozenset({"sessionUpdate", "type", "outcome", "mode", "action"})

PLACES: tuple[tuple[str, str, str], ...] = (
    ("result initialize", r"result\.protocolVersion", "ACP-INIT-002"),
    ("request initialize", r"params\.protocolVersion", "ACP-INIT-102"),
    ("result initialize", r"result\.info", "ACP-INIT-011"),
    ("request initialize", r"params\.info", "ACP-INIT-108"),
    ("result initialize", r"result", "ACP-INIT-001"),
    ("result session/prompt", r"result\.messageId", "ACP-PROMPT-011"),
    ("update (user|agent)_(message|thought).*", r"params\.update\.messageId", "ACP-MSG-001"),
    ("update (user|agent)_(message|thought)", r"params\.update\.content", "ACP-CONTENT-001"),
    ("update terminal_.*", r"params\.update\.", "ACP-TERM-007"),
    ("update tool_call_content_chunk", r"params\.update\.content\.content", "ACP-CONTENT-001"),
    ("update tool_call_content_chunk", r"params\.update\.", "ACP-TOOL-010"),
    ("result session/prompt", r"result\.stopReason", "ACP-PROMPT-001"),
    ("result session/request_permission", r"result", "ACP-PERM-101"),
    ("request session/(new|load|resume)", r"params\.mcpServers", "ACP-MCP-101"),
    ("result session/new", r"result\.sessionId", "ACP-NEW-001"),
    ("result session/.*", r"result\.modes", "ACP-MODE-006"),
    ("result session/.*", r"result\.configOptions", "ACP-CONFIG-010"),
    ("request session/prompt", r"params\.prompt", "ACP-CONTENT-101"),
    ("update current_mode_update", r"params\.update\.", "ACP-MODE-004"),
    ("update config_option_update", r"params\.update\.", "ACP-CONFIG-010"),
    ("update plan.*", r"params\.update\.", "ACP-PLAN-001"),
    ("update available_commands_update", r"params\.update\.", "ACP-CMD-001"),
    ("result session/(new|resume)", r"result\.availableCommands", "ACP-CMD-001"),
    ("update .*_chunk", r"params\.update\.content", "ACP-CONTENT-001"),
    ("update tool_call(_update)?", r"params\.update\.content\[\d+\]\.content", "ACP-CONTENT-001"),
    ("update tool_call(_update)?", r"params\.update\.", "ACP-TOOL-010"),
    ("request session/request_permission", r"params", "ACP-PERM-006"),
    ("request fs/.*", r"params", "ACP-FS-005"),
    ("result fs/.*", r"result", "ACP-FS-103"),
    ("request terminal/.*", r"params", "ACP-TERM-006"),
    ("result terminal/.*", r"result", "ACP-TERM-107"),
    ("request elicitation/.*", r"params", "ACP-ELICIT-008"),
    ("notification elicitation/.*", r"params", "ACP-ELICIT-008"),
    ("result elicitation/.*", r"result", "ACP-ELICIT-101"),
)
"""Kinds of messages, paths in them, and the rule for a mistake there. The first match counts."""

OWN = ("ACP-INIT", "ACP-PROMPT", "ACP-PERM-1", "ACP-MCP", "ACP-MODE-004", "ACP-ELICIT-1", "ACP-MSG")
"""Rules about one mistake in any form. Casing and discriminators do not matter there."""


class ShapeObserver(Observer):
    """Judges whether messages fit the schema."""

    area: ClassVar[str] = "WIRE"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._sink = sink
        self._fitter = Fitter()
        self._fitting: Counter[tuple[Side, str, str]] = Counter()
        self._mismatches: dict[tuple[Side, Json], Flaw] = {}
        """The first flaw of each open request, by sender and id."""
        self._is_ours = True
        """False once the agent has answered with a version whose types we do not have."""

    def count(self) -> None:
        for (side, kind, name), times in self._fitting.items():
            for each in {*_ALWAYS[side], *_exercised(side, kind, name)}:
                self._sink.count_occasions(each, times)
        self._fitting.clear()

    @watch("message")
    def on_message(self, message: SeenMessage) -> None:
        """Judge whether a message fits the schema.

        A peer that agreed on another version is not judged by this one. Messages that fit are only counted.
        """
        kind, name = _key(message)
        if (kind, name) == ("result", "initialize"):
            version = message.params.get("protocolVersion")
            self._is_ours = not isinstance(version, int) or version == self.agreement.dialect.version
        if not self._is_ours:
            return
        flaws = () if message.fits else self._fitter.find_flaws(message, self.agreement.dialect)
        message.fits = not any(flaw.mismatch is not None for flaw in flaws)
        if not flaws:
            self._fitting[message.sender, kind, name] += 1
            return
        for flaw in flaws:
            self._report(message, flaw, f"{kind} {name}")
        if message.kind == "request" and not message.fits and not is_readable(message, self.agreement.dialect):
            self._mismatches[message.sender, message.id] = flaws[0]

    @watch("answer")
    def on_answer(self, message: SeenMessage) -> None:
        """Judge the response to a request that could not be understood, which must be refused."""
        request = message.request
        if request is None or not self._mismatches:
            return
        flaw = self._mismatches.pop((request.sender, request.id), None)
        if flaw is None or message.code == ErrorCode.AUTH_REQUIRED:  # a login may be required before params are read
            return
        wrong = f"{request.method} with {flaw.path}: {flaw.problem}, was answered with"
        self.judge(
            "ACP-MCP-005" if _is_without_servers(request, flaw) else wire_rule(message.sender, 15),
            message.kind == "error",
            f"{wrong} a result; expected an error",
            request.entry,
            message.entry,
        )
        if message.sender == "agent" and message.code is not None:  # without a code, ACP-WIRE-009 covers it
            self.judge(
                "ACP-WIRE-016",
                message.code == ErrorCode.INVALID_PARAMS,
                f"{wrong} the error {message.code}; expected -32602",
                request.entry,
                message.entry,
            )

    def _report(self, message: SeenMessage, flaw: Flaw, key: str) -> None:
        if message.kind == "error":
            return
        side = message.sender
        if flaw.mismatch is None:
            self._report_extra(message, flaw, key)
            return
        if _is_extension(message, flaw):
            return
        version = self.agreement.dialect.version
        if (
            version == 1
            and flaw.path == "params.update.sessionUpdate"
            and text(message.update, "sessionUpdate") in V2_UPDATES
        ):
            detail = f"{flaw.path}: {message.update['sessionUpdate']!r} is of version 2, and version 1 was agreed"
            self.warn(wire_rule(side, 21), detail, message.entry)
            return
        self.fail(_find_rule(message, flaw, key, version), f"{flaw.path}: {_explain(flaw)}", message.entry)

    def _report_extra(self, message: SeenMessage, flaw: Flaw, key: str) -> None:
        rule = extension_rule(message.sender, 1)
        owner = _reach({"params": message.body, "result": message.body}, flaw.path.rpartition(".")[0])
        advice = explain_field(key, flaw.path, text(owner, "type"))
        if advice is not None:
            self.warn(rule, f"{flaw.path}: {advice}", message.entry)
        else:
            self.fail(rule, f"{flaw.path}: {flaw.problem}; expected custom data in _meta", message.entry)


def _is_without_servers(request: SeenMessage, flaw: Flaw) -> bool:
    """Return whether the list of MCP servers is missing, a mistake of many clients that an agent must not hide."""
    return (
        request.sender == "client"
        and request.method in ("session/new", "session/load")
        and flaw.path == "params.mcpServers"
        and isinstance(flaw.mismatch, MissingFieldError)
    )


def _explain(flaw: Flaw) -> str:
    expected = flaw.mismatch.expected if flaw.mismatch is not None else None
    if expected is None or "expected" in flaw.problem:
        return flaw.problem
    return f"{flaw.problem}; expected {expected}"


def _key(message: SeenMessage) -> tuple[str, str]:
    if message.kind == "notification" and message.method == "session/update":
        kind = message.update.get("sessionUpdate")
        return "update", kind if isinstance(kind, str) else ""
    return message.kind, message.method


def _find_rule(message: SeenMessage, flaw: Flaw, key: str, version: Version) -> str:
    # A rule for this particular mistake comes first, then casing, then discriminators, then the rule for the place, and
    # the general rule last.
    special = _find_place(message.sender, flaw.path, key, version)
    if special is not None and special.startswith(OWN):
        return special
    root: Json = {"params": message.body, "result": message.body}
    if _is_miscast(root, flaw):
        return wire_rule(message.sender, 22)
    if _is_tag(flaw):
        return wire_rule(message.sender, 21)
    return special or wire_rule(message.sender, 20)


def _find_place(side: Side, path: str, key: str, version: Version) -> str | None:
    for kind, place, found in PLACES:
        is_held = _side_of(found) == side and version in RULES[found].versions
        if is_held and re.fullmatch(kind, key) and re.match(place, path):
            return found
    return None


def _side_of(rule_id: str) -> Side:
    return "client" if rule_id[-3] == "1" else "agent"


def _exercised(side: Side, kind: str, name: str) -> list[str]:
    """Return the shape rules that apply to a message of this kind."""
    key = f"{kind} {name}"
    found = [each for pattern, _, each in PLACES if _side_of(each) == side and re.fullmatch(pattern, key)]
    if kind == "update" or name in ("session/request_permission", "session/prompt", "elicitation/create"):
        found.append(wire_rule(side, 21))
    return found


def _is_tag(flaw: Flaw) -> bool:
    """Return whether the wrong or missing field is a discriminator."""
    name = flaw.path.rpartition(".")[2]
    if name not in _TAGS:
        return False
    return isinstance(flaw.mismatch, MissingFieldError) or "one of" in (
        flaw.mismatch.expected or "" if flaw.mismatch else ""
    )


def _is_extension(message: SeenMessage, flaw: Flaw) -> bool:
    """Return whether the unknown kind starts with an underscore, as custom kinds may."""
    above, _, name = flaw.path.rpartition(".")
    tag = _reach({"params": message.body, "result": message.body}, above).get(name)
    return name in _TAGS and isinstance(tag, str) and tag.startswith("_")


def _is_miscast(root: Json, flaw: Flaw) -> bool:
    """Return whether the right name is present in another casing: the missing key, or the wrong value."""
    above, _, name = flaw.path.rpartition(".")
    owner = _reach(root, above)
    if isinstance(flaw.mismatch, MissingFieldError):
        return any(_plain(key) == _plain(name) for key in owner if key != name)
    value = owner.get(name)
    expected = (flaw.mismatch.expected or "") if flaw.mismatch is not None else ""
    allowed = re.findall(r'"([^"]*)"', expected)
    return isinstance(value, str) and any(_plain(each) == _plain(value) for each in allowed)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _reach(root: Json, path: str) -> Object:
    value: Any = root
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        try:
            value = value[int(index)] if index else value[name]
        except (KeyError, IndexError, TypeError):
            return {}
    return cast("Object", value) if isinstance(value, dict) else {}


_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*")


class ExtensionObserver(Observer):
    """Judges methods and fields that the protocol does not define."""

    area: ClassVar[str] = "EXT"

    @watch("request", "notification")
    def on_call(self, message: SeenMessage) -> None:
        dialect = self.agreement.dialect
        advice = explain_method(message.method, dialect)
        if advice is not None and dialect.version == 1:
            self.warn(extension_rule(message.sender, 2), f"{message.method}: {advice}", message.entry)
        elif advice is not None:
            self.fail(extension_rule(message.sender, 2), f"{message.method}: {advice}", message.entry)
        elif message.method not in dialect.methods:
            self.judge(
                extension_rule(message.sender, 2),
                message.method.startswith("_"),
                f"the protocol has no method {message.method!r}; expected custom methods to begin with an underscore",
                message.entry,
            )

    @watch("message")
    def on_message(self, message: SeenMessage) -> None:
        if b'"traceparent"' not in message.entry.line:
            return
        trace = text(part(message.params, "_meta"), "traceparent")
        if trace is not None:
            self.judge(
                "ACP-EXT-105" if message.sender == "client" else "ACP-EXT-005",
                _TRACE.fullmatch(trace) is not None,
                f"traceparent is {trace!r}; expected the form of W3C",
                message.entry,
            )
