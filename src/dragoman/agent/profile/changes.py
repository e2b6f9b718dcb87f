"""What a project's agent file would change, in sentences for the person who has to agree to it."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from dragoman.agent.profile.include import Include
from dragoman.agent.profile.items import TextItem
from dragoman.agent.profile.limits import TurnLimits
from dragoman.agent.profile.model import ModelSettings
from dragoman.agent.profile.permissions import Permissions
from dragoman.agent.profile.profile import Profile
from dragoman.agent.profile.search import SearchSettings
from dragoman.agent.profile.secret import find_secrets
from dragoman.agent.profile.servers import AgentServer, Permission
from dragoman.agent.yaml.words import listed, printable
from dragoman.text import visible

SHOWN_LETTERS = 500
"""Of the instructions: enough to judge them by, little enough to be read."""

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


def what_it_changes(profile: Profile, instead_of: Profile | None = None) -> list[str]:
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
    """Keep the lines, and write out what cannot be seen: a person agrees to what is there."""
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
        from dragoman.mcp.definition import bare_address

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
