"""Trust in a project's agent file: a description of its changes, and the user's decisions.

Decisions are stored in `<home>/trusted.json`:

    {"/home/me/code/dragoman.yaml": {"<sha256 of what was read>": true}}

A decision applies to one path with one content. A changed byte, or the same bytes at another path, need a new decision.
A refusal is stored as well. If the file cannot be read, or others can write to it, nothing is trusted.
"""

import logging
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.profile import Profile
from dragoman.assistant.profile.servers import AgentServer, Permission
from dragoman.assistant.profile.settings import (
    ModelSettings,
    Permissions,
    SandboxSettings,
    SearchSettings,
    TurnLimits,
    find_secrets,
)
from dragoman.assistant.profile.skills import Skill
from dragoman.assistant.yaml import listed, printable
from dragoman.errors import DragomanError
from dragoman.files.private_file import PrivateFile
from dragoman.text import visible

SHOWN_LETTERS = 500
"""Shown characters of the instructions: enough to judge them, and few enough to read."""

SHOWN_ITEM_LETTERS = 200
"""Shown characters of one rule or reference. There may be many."""

_MODES = {
    "ask": "Sessions would begin in the mode ask: reading is allowed, everything else asks.",
    "code": "Sessions would begin in the mode code: edits inside the project run without asking.",
    "plan": "Sessions would begin in the mode plan: only reading is allowed.",
    "yolo": "Sessions would begin in the mode yolo: everything runs without asking.",
}
_SANDBOXES = {
    "off": "Commands would run without a sandbox.",
    "workspace": "Commands would run in a sandbox without network. In the mode code they would not ask.",
    "workspace+network": "Commands would run in a sandbox with network. In the mode code they would not ask.",
}
_PERMISSIONS: dict[Permission, str] = {
    "allow": "would run without asking",
    "ask": "would ask",
    "deny": "would be refused",
}
_INCLUDES: dict[Include, str] = {
    "always": "in every turn",
    "manual": "when added manually",
    "agent": "when found by the search",
}


def describe_changes(profile: Profile, instead_of: Profile | None = None) -> list[str]:
    """Describe every difference from the profile that would be used otherwise. Empty if there is none."""
    other = instead_of or Profile()
    if profile == other:
        return []
    return [
        *_model(profile.model, other.model),
        *(f"It reads the environment variable {variable}." for variable in _variables(profile)),
        *_instructions(profile.instructions, other.instructions),
        *_permissions(profile.permissions, other.permissions),
        *_sandbox(profile.sandbox, other.sandbox),
        *_servers(profile.servers, other.servers),
        *_items("rule", profile.rules, other.rules),
        *_items("reference", profile.references, other.references),
        *_skills(profile.skills, other.skills),
        *_numbers("limit", profile.limits, other.limits),
        *_numbers("search setting", profile.search, other.search),
    ]


def _variables(profile: Profile) -> list[str]:
    return sorted({secret.variable for secret in find_secrets(profile) if secret.variable})


def _model(model: ModelSettings | None, other: ModelSettings | None) -> Iterator[str]:
    if model == other:
        return
    if model is None:
        yield "It would use the built-in model instead of yours."
        return
    place = f" at {printable(model.base_url)}, which would receive the conversation" if model.base_url else ""
    yield f"It would use the model {printable(model.name)}{place}."
    if model.api_key and not model.api_key.variable:
        yield "It contains its own API key."
    options = model.options
    for header in options.headers:
        yield f"It would send the header {printable(header)} with every request to the model."
    for name in ("temperature", "max_output_tokens", "thought_level"):
        value = getattr(options, name)
        if value is not None:
            yield f"It would set the model's {name} to {printable(str(value))}."


def _instructions(text: str, other: str) -> Iterator[str]:
    if text == other:
        return
    if not text.strip():
        yield "It would remove your instructions."
        return
    yield f"It would send the model these instructions: {_beginning(text, SHOWN_LETTERS)}"


def _beginning(text: str, letters: int) -> str:
    more = len(text) - letters
    rest = f" … and {more:,} more characters; read them in the file before you agree" if more > 0 else ""
    shown = visible(text[:letters]).replace("»", r"\xbb")  # otherwise the text could close the quotation
    return f"«{shown}»{rest}"


def _permissions(permissions: Permissions, other: Permissions) -> Iterator[str]:
    if permissions.mode != other.mode:
        yield _MODES[permissions.mode]
    if permissions.allow_yolo != other.allow_yolo:
        verb = "would allow" if permissions.allow_yolo else "would no longer allow"
        yield f"It {verb} the mode yolo, in which everything runs without asking."
    if permissions.ask_outside_reads != other.ask_outside_reads:
        what = "would ask" if permissions.ask_outside_reads else "would be refused"
        yield f"Reading files outside the project {what}."
    if permissions.remember != other.remember:
        scope = "in all sessions of the project" if permissions.remember == "project" else "in one session only"
        yield f"What you always allow would be allowed {scope}."
    if permissions.timeout_s != other.timeout_s:
        wait = "without a limit" if permissions.timeout_s is None else f"{permissions.timeout_s:g} s"
        yield f"A permission request would wait {wait} for an answer."


def _sandbox(sandbox: SandboxSettings, other: SandboxSettings) -> Iterator[str]:
    if sandbox.chosen != other.chosen:
        yield _SANDBOXES[sandbox.chosen]
    if added := [path for path in sandbox.writable if path not in other.writable]:
        yield f"Commands in the sandbox could change {_names(added)}."
    if gone := [path for path in other.writable if path not in sandbox.writable]:
        yield f"Commands in the sandbox could no longer change {_names(gone)}."


def _servers(servers: Sequence[AgentServer], others: Sequence[AgentServer]) -> Iterator[str]:
    before = {server.name: server for server in others}
    for server in servers:
        if server != before.get(server.name):
            yield _start(server)
            yield from _tools(server)
    gone = sorted(before.keys() - {server.name for server in servers})
    if gone:
        yield f"It would remove your servers {_names(gone)}."


def _start(server: AgentServer) -> str:
    if server.url is not None:
        from dragoman.text.secret import bare_address

        address = bare_address(server.url)
        query = " and a query that is not shown" if address != server.url else ""
        headers = f", with the headers {_names(server.headers)}" if server.headers else ""
        return f"It would use the MCP server {_name(server)} at {visible(address)}{query}{headers}."
    command = visible(shlex.join([server.command or "", *(argument.shown for argument in server.args)]))
    place = f", in {visible(shlex.quote(server.cwd))}" if server.cwd else ""
    env = f", with the variables {_names(server.env)}" if server.env else ""
    return f"It would start a program, the MCP server {_name(server)}: {command}{place}{env}."


def _tools(server: AgentServer) -> Iterator[str]:
    if server.trust:
        yield f"The tools that {_name(server)} marks as read-only would run without asking."
    if server.permission:
        yield f"The tools of {_name(server)} {_PERMISSIONS[server.permission]}."
    if server.include != "always":
        yield f"The tools of {_name(server)} would be sent to the model {_INCLUDES[server.include]}."
    for name, tool in server.tools.items():
        if tool.permission:
            yield f"The tool {printable(name)} of {_name(server)} {_PERMISSIONS[tool.permission]}."
        if tool.include:
            where = _INCLUDES[tool.include]
            yield f"The tool {printable(name)} of {_name(server)} would be sent to the model {where}."


def _items(kind: str, items: Sequence[TextItem], others: Sequence[TextItem]) -> Iterator[str]:
    before = {item.name: item for item in others}
    for item in items:
        if item != before.get(item.name):
            where, text = _INCLUDES[item.include], _beginning(item.text, SHOWN_ITEM_LETTERS)
            yield f"It would send the model the {kind} {printable(item.name)}, {where}: {text}"
    gone = sorted(before.keys() - {item.name for item in items})
    if gone:
        yield f"It would remove your {kind}s {_names(gone)}."


def _skills(skills: Sequence[Skill], others: Sequence[Skill]) -> Iterator[str]:
    before = {skill.name: skill for skill in others}
    for skill in skills:
        if skill != before.get(skill.name):
            text = _beginning(f"{skill.description}\n{skill.text}", SHOWN_ITEM_LETTERS)
            yield f"It would offer the model the skill {printable(skill.name)}, {_INCLUDES[skill.include]}: {text}"


def _name(server: AgentServer) -> str:
    return printable(server.name)


def _names(names: Iterable[str]) -> str:
    return listed(printable(name) for name in names)


def _numbers(kind: str, settings: TurnLimits | SearchSettings, other: TurnLimits | SearchSettings) -> Iterator[str]:
    for name in settings.__struct_fields__:
        value, before = getattr(settings, name), getattr(other, name)
        if value != before:
            yield f"The {kind} {name} would be {_number(value)} instead of {_number(before)}."


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:,.15g}"


MAX_DECISIONS = 50
"""The newest decisions kept per file, enough for switching between branches without new questions."""

_log = logging.getLogger(__name__)
_decode = msgspec.json.Decoder(dict[str, dict[str, bool]]).decode


class TrustStoreError(DragomanError):
    """A decision about a project's agent file cannot be stored."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot store the decision in {path}: {reason}; it applies to this session only")


class TrustStore:
    """The decisions of one home."""

    def __init__(self, home: Path) -> None:
        self._path = home / "trusted.json"
        self._file = PrivateFile(self._path)

    def verdict(self, path: Path, digest: str) -> bool | None:
        """Return the decision about this file with this content, or None."""
        return self._read().get(_key(path), {}).get(digest)

    def remember(self, path: Path, digest: str, *, allowed: bool) -> None:
        """Store a decision. Raises TrustStoreError."""
        try:
            with self._file.writing():
                decisions = self._read()
                kept = decisions.pop(_key(path), {})
                kept.pop(digest, None)
                newest = [*kept.items(), (digest, allowed)][-MAX_DECISIONS:]
                changed = {**decisions, _key(path): dict(newest)}
                self._file.replace(msgspec.json.format(msgspec.json.encode(changed), indent=2) + b"\n")
        except OSError as error:
            raise TrustStoreError(str(self._path), error.strerror or str(error)) from error

    def _read(self) -> dict[str, dict[str, bool]]:
        try:
            return _decode(self._file.read())
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            return self._distrust(getattr(error, "strerror", None) or str(error))

    def _distrust(self, reason: str) -> dict[str, dict[str, bool]]:
        _log.warning("%s is ignored, so no project's agent file is trusted: %s", self._path, reason)
        return {}


def _key(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 -- Path.absolute keeps `..`, and resolve would follow links
