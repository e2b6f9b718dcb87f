"""Trust in the agent file of a project: the sentences that say what it would change, and the person's decisions.

Decisions are in `<home>/trusted.json`:

    {"/home/me/code/dragoman.yaml": {"<sha256 of what was read>": true}}

A decision holds for one file with one content: a changed byte, or the same bytes elsewhere, is asked about again. A
refusal is kept as well. A file that cannot be read, or that others could have written, trusts nothing.
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
from dragoman.assistant.profile.settings import ModelSettings, Permissions, SearchSettings, TurnLimits, find_secrets
from dragoman.assistant.yaml import listed, printable
from dragoman.errors import DragomanError
from dragoman.files.private_file import PrivateFile
from dragoman.text import visible

SHOWN_LETTERS = 500
"""Characters of the instructions that are shown: enough to judge them, few enough to be read."""

SHOWN_ITEM_LETTERS = 200
"""Of one rule or reference, of which there may be many."""

_MODES = {
    "ask": "It would begin in the mode ask: reads run, everything else asks.",
    "code": "It would let edits inside the project run without asking (mode code).",
    "plan": "It would begin in the mode plan, which only reads.",
    "yolo": "It would let everything run without asking (mode yolo).",
}
_PERMISSIONS: dict[Permission, str] = {
    "allow": "would run without asking",
    "ask": "would ask",
    "deny": "would be refused",
}
_INCLUDES: dict[Include, str] = {
    "always": "in every turn",
    "manual": "when added by hand",
    "agent": "when found by the search",
}


def describe_changes(profile: Profile, instead_of: Profile | None = None) -> list[str]:
    """Say all that would be different from the profile that counts otherwise; empty when nothing would be."""
    other = instead_of or Profile()
    if profile == other:
        return []
    return [
        *_model(profile.model, other.model),
        *(f"It reads the environment variable {variable}." for variable in _variables(profile)),
        *_instructions(profile.instructions, other.instructions),
        *_permissions(profile.permissions, other.permissions),
        *_servers(profile.servers, other.servers),
        *_items("rule", profile.rules, other.rules),
        *_items("reference", profile.references, other.references),
        *_numbers("limit", profile.limits, other.limits),
        *_numbers("search setting", profile.search, other.search),
    ]


def _variables(profile: Profile) -> list[str]:
    return sorted({secret.variable for secret in find_secrets(profile) if secret.variable})


def _model(model: ModelSettings | None, other: ModelSettings | None) -> Iterator[str]:
    if model == other:
        return
    if model is None:
        yield "It would use the built-in model in place of yours."
        return
    place = f" at {printable(model.base_url)}, which would receive the conversation" if model.base_url else ""
    yield f"It would use the model {printable(model.name)}{place}."
    if model.api_key and not model.api_key.variable:
        yield "It brings an API key of its own."
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
        yield "It would leave out your instructions."
        return
    yield f"It would give the model these instructions: {_beginning(text, SHOWN_LETTERS)}"


def _beginning(text: str, letters: int) -> str:
    more = len(text) - letters
    rest = f" … and {more:,} characters more; read them in the file before you agree" if more > 0 else ""
    return f"«{_lines(text[:letters])}»{rest}"


def _lines(text: str) -> str:
    """Keep the lines, and write out invisible characters: a person agrees to the exact text."""
    return visible(text, lines=True)


def _permissions(permissions: Permissions, other: Permissions) -> Iterator[str]:
    if permissions.mode != other.mode:
        yield _MODES[permissions.mode]
    if permissions.allow_yolo != other.allow_yolo:
        let = "would let" if permissions.allow_yolo else "would no longer let"
        yield f"It {let} the mode yolo be chosen, in which everything runs without asking."
    if permissions.ask_outside_reads != other.ask_outside_reads:
        what = "asked for" if permissions.ask_outside_reads else "refused"
        yield f"Reading files outside the project would be {what}."
    if permissions.remember != other.remember:
        scope = "in all sessions of the project" if permissions.remember == "project" else "in one session only"
        yield f"What you always allow would hold {scope}."
    if permissions.timeout_s != other.timeout_s:
        wait = "for ever" if permissions.timeout_s is None else f"{permissions.timeout_s:g} s"
        yield f"A question for permission would wait {wait} for an answer."


def _servers(servers: Sequence[AgentServer], others: Sequence[AgentServer]) -> Iterator[str]:
    before = {server.name: server for server in others}
    for server in servers:
        if server != before.get(server.name):
            yield _start(server)
            yield from _tools(server)
    gone = sorted(before.keys() - {server.name for server in servers})
    if gone:
        yield f"It would leave out your servers {_names(gone)}."


def _start(server: AgentServer) -> str:
    if server.url is not None:
        from dragoman.text.secret import bare_address

        address = bare_address(server.url)
        query = " and more behind it" if address != server.url else ""
        headers = f", with the headers {_names(server.headers)}" if server.headers else ""
        return f"It would use the MCP server {_name(server)} at {_lines(address)}{query}{headers}."
    command = _lines(shlex.join([server.command or "", *(argument.shown for argument in server.args)]))
    place = f", in {_lines(server.cwd)}" if server.cwd else ""
    env = f", with the variables {_names(server.env)}" if server.env else ""
    return f"It would start a program, the MCP server {_name(server)}: {command}{place}{env}."


def _tools(server: AgentServer) -> Iterator[str]:
    if server.trust:
        yield f"What {_name(server)} says about which of its tools only read would be believed; those would not ask."
    if server.permission:
        yield f"The tools of {_name(server)} {_PERMISSIONS[server.permission]}."
    if server.include != "always":
        yield f"The tools of {_name(server)} would be put before the model {_INCLUDES[server.include]}."
    for name, tool in server.tools.items():
        if tool.permission:
            yield f"The tool {printable(name)} of {_name(server)} {_PERMISSIONS[tool.permission]}."
        if tool.include:
            where = _INCLUDES[tool.include]
            yield f"The tool {printable(name)} of {_name(server)} would be put before the model {where}."


def _items(kind: str, items: Sequence[TextItem], others: Sequence[TextItem]) -> Iterator[str]:
    before = {item.name: item for item in others}
    for item in items:
        if item != before.get(item.name):
            where, text = _INCLUDES[item.include], _beginning(item.text, SHOWN_ITEM_LETTERS)
            yield f"It would give the model the {kind} {printable(item.name)}, {where}: {text}"
    gone = sorted(before.keys() - {item.name for item in items})
    if gone:
        yield f"It would leave out your {kind}s {_names(gone)}."


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
"""Kept of one file, the newest: enough to go from branch to branch without being asked again."""

_log = logging.getLogger(__name__)
_decode = msgspec.json.Decoder(dict[str, dict[str, bool]]).decode


class TrustFailed(DragomanError):
    """A decision of the person about a project's agent file cannot be kept."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot keep the decision in {path}: {reason}; it holds for this session only")


class TrustStore:
    """The decisions of one home."""

    def __init__(self, home: Path) -> None:
        self._path = home / "trusted.json"
        self._file = PrivateFile(self._path)

    def verdict(self, path: Path, digest: str) -> bool | None:
        """Return the decision about this file with this content; None without one."""
        return self._read().get(_key(path), {}).get(digest)

    def remember(self, path: Path, digest: str, *, allowed: bool) -> None:
        """Keep a decision; raises TrustFailed."""
        try:
            with self._file.writing():
                decisions = self._read()
                kept = decisions.pop(_key(path), {})
                kept.pop(digest, None)
                newest = [*kept.items(), (digest, allowed)][-MAX_DECISIONS:]
                changed = {**decisions, _key(path): dict(newest)}
                self._file.replace(msgspec.json.format(msgspec.json.encode(changed), indent=2) + b"\n")
        except OSError as error:
            raise TrustFailed(str(self._path), error.strerror or str(error)) from error

    def _read(self) -> dict[str, dict[str, bool]]:
        try:
            return _decode(self._file.read())
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            return self._distrust(getattr(error, "strerror", None) or str(error))

    def _distrust(self, reason: str) -> dict[str, dict[str, bool]]:
        _log.warning("%s is not used, and no project's agent file is trusted by it: %s", self._path, reason)
        return {}


def _key(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 -- Path.absolute keeps `..`, and resolve would follow links
