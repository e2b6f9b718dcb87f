"""Converts a TsAgent file to a profile, and explains the meaning of each key."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.assistant.profile.items import DEFAULT_PRIORITY, TextItem, name_of_file, sort_items
from dragoman.assistant.profile.profile import Profile, UnderstoodKey
from dragoman.assistant.profile.servers import AgentServer, Permission, ServerSettings, ToolSettings, gather_servers
from dragoman.assistant.profile.settings import ADDRESS, ModelOptions, ModelSettings, SearchSettings, Secret, TurnLimits
from dragoman.assistant.profile.sources import Sources, split_head
from dragoman.assistant.profile.tsagent.shape import (
    TsAgentFile,
    TsAgentServer,
    TsAgentSettings,
    TsAgentText,
    TsAgentTool,
    UnderstoodTable,
)
from dragoman.assistant.yaml import KeyConflictError, YamlError, read_node, read_yaml


class _Provider(msgspec.Struct, frozen=True):
    """A TsAgent provider: its name here, and TsAgent's names for the address and the key."""

    name: str
    address: str | None = None
    key: str | None = None
    path: str = ""
    """The path to append to TsAgent's address."""


_PROVIDERS = {
    "claude": _Provider("anthropic", key="ANTHROPIC_API_KEY"),
    "openai": _Provider("openai", key="OPENAI_API_KEY"),
    "gemini": _Provider("google", key="GOOGLE_API_KEY"),
    "ollama": _Provider("ollama", address="OLLAMA_HOST", path="/v1"),
    "docker": _Provider("openai-chat", address="BASE_URL"),
    "bedrock": _Provider("bedrock"),
}
_OP_PREFIX = "op://"


def convert_model(file: TsAgentFile, table: UnderstoodTable) -> ModelSettings | None:
    """Return the model of a file if it is supported here."""
    settings = file.settings
    key = "settings.model" if settings.model else "settings.mostRecentModel"
    kind, _, name = (settings.model or settings.most_recent_model or "").partition(":")
    provider = _PROVIDERS.get(kind.lower())
    _ignore_other_providers(file.providers, kind, table)
    if provider is None or not name:
        if kind:
            table.ignore(key, "this provider is not supported; use --model or a dragoman.yaml")
        _ignore_options(settings, table)
        return None
    table.use(key, f"the model {provider.name}:{name}")
    options = file.providers.get(kind, {})
    return ModelSettings(
        f"{provider.name}:{name}",
        _address(kind, provider, options, table),
        _key(kind, provider, options, table),
        _options(file, table),
    )


def _ignore_options(settings: TsAgentSettings, table: UnderstoodTable) -> None:
    values = {"settings.temperature": settings.temperature, "settings.maxOutputTokens": settings.max_output_tokens}
    for key, value in values.items():
        if value is not None:
            table.ignore(key, "it is an option of the model, and no model is set")


def _ignore_other_providers(providers: Mapping[str, Mapping[str, Secret]], used: str, table: UnderstoodTable) -> None:
    for name, settings in providers.items():
        if name != used and settings:
            table.ignore(f"providers.{name}", "only the provider of the chosen model is used")


def _address(kind: str, provider: _Provider, options: Mapping[str, Secret], table: UnderstoodTable) -> str | None:
    at = f"providers.{kind}.{provider.address}"
    secret = options.get(provider.address or "")
    if secret is None:
        return None
    if secret.variable is not None or not re.fullmatch(ADDRESS, secret.reveal({})):
        table.ignore(at, "expected an http or https address with no name or password in it")
        return None
    address = secret.reveal({}).rstrip("/")
    table.use(at, "the address of the model, base_url")
    return address if address.endswith(provider.path) else address + provider.path


def _key(kind: str, provider: _Provider, options: Mapping[str, Secret], table: UnderstoodTable) -> Secret | None:
    for name in options:
        at = f"providers.{kind}.{name}"
        if name not in (provider.address, provider.key):
            table.ignore(at, "the provider's library reads it from the environment")
    secret = options.get(provider.key or "")
    if secret is None:
        return None
    if secret.variable is None and secret.reveal({}).startswith(_OP_PREFIX):
        reason = "1Password secrets are not supported; set the variable instead"
        table.ignore(f"providers.{kind}.{provider.key}", reason)
        return None
    table.use(f"providers.{kind}.{provider.key}", "the key of the model, api_key")
    return secret


def _options(file: TsAgentFile, table: UnderstoodTable) -> ModelOptions:
    settings = file.settings
    temperature = table.number("settings.temperature", settings.temperature, float, 0.0, "model.options.temperature")
    tokens = table.number(
        "settings.maxOutputTokens", settings.max_output_tokens, int, 1, "model.options.max_output_tokens"
    )
    return ModelOptions(temperature, tokens)


_TYPES = {"stdio": "stdio", "sse": "sse", "streamable-http": "http", "http": "http"}
_PERMISSIONS: dict[bool | None, Permission | None] = {True: "ask", False: "allow", None: None}


def convert_servers(file: TsAgentFile, sources: Sources, table: UnderstoodTable) -> tuple[AgentServer, ...]:
    """Return the servers of a file, except those inside TsAgent itself. Raises ProfileError."""
    settings = dict(_convert_each(file, table))
    if file.settings.tool_permission != "tool":
        table.use("settings.toolPermission", "the permission of every server")
    return gather_servers(settings, sources)


def _convert_each(file: TsAgentFile, table: UnderstoodTable) -> Iterator[tuple[str, ServerSettings]]:
    for name, server in file.mcp_servers.items():
        at = f"mcpServers.{name}"
        if server.type == "internal":
            table.ignore(at, "it is part of TsAgent itself and lets the model change its own rules and tools")
            continue
        try:
            converted = _convert(server, file)
        except KeyConflictError as misfit:
            table.ignore(at, f"{misfit.key}: {misfit}")
            continue
        table.use(at, "a server of the agent")
        yield name, converted


def _convert(server: TsAgentServer, file: TsAgentFile) -> ServerSettings:
    defaults, tools = _tool_settings(server)
    kind = server.type or ("stdio" if server.command else "sse")
    if kind not in _TYPES:
        raise KeyConflictError("type", "this kind of server is not supported")
    always = file.settings.tool_permission
    return ServerSettings(
        server.command,
        server.args,
        server.env,
        server.cwd,
        server.url,
        server.headers,
        _TYPES[kind],  # pyright: ignore[reportArgumentType] -- one of the literals, by the table
        defaults.include or "always",
        {"always": "ask", "never": "allow"}.get(always) or _PERMISSIONS[defaults.permission_required],  # pyright: ignore[reportArgumentType] -- as above
        tools={
            name: ToolSettings(tool.include, _PERMISSIONS[tool.permission_required] if always == "tool" else None)
            for name, tool in tools.items()
        },
    )


def _tool_settings(server: TsAgentServer) -> tuple[TsAgentTool, dict[str, TsAgentTool]]:
    """Return the settings of all tools and of each tool. The older form is used if the newer one is missing."""
    if server.server_tool_defaults != TsAgentTool() or server.tools:
        return server.server_tool_defaults, {name: tool for name, tool in server.tools.items() if tool != TsAgentTool()}
    permissions, includes = server.tool_permission_required, server.tool_include
    names = {**permissions.tools, **includes.tools}
    tools = {name: TsAgentTool(permissions.tools.get(name), includes.tools.get(name)) for name in names}
    return TsAgentTool(permissions.server_default, includes.server_default), tools


PROMPT = "prompt.md"
SUFFIX = ".mdt"
MAX_PRIORITY = 999


def convert_prompt(file: TsAgentFile, sources: Sources, table: UnderstoodTable) -> str:
    """Return the prompt, from the file or from `prompt.md`. Raises ProfileError."""
    if file.system_prompt is not None:
        table.use("systemPrompt", "instructions")
        return file.system_prompt
    if not sources.path_of(PROMPT).is_file():
        return ""
    table.use(PROMPT, "instructions")
    return sources.read_text(PROMPT, PROMPT)


def convert_texts(
    key: str, texts: Sequence[TsAgentText] | None, folder: str, sources: Sources, table: UnderstoodTable
) -> tuple[TextItem, ...]:
    """Return the rules or references, from the file or from a folder next to it. Raises ProfileError."""
    if texts is not None:
        return _items(((f"{key}[{index}]", text) for index, text in enumerate(texts)), key, table)
    if not sources.path_of(folder).is_dir():
        return ()
    return _items(_read_folder(folder, sources, table), key, table)


def _read_folder(folder: str, sources: Sources, table: UnderstoodTable) -> Iterator[tuple[str, TsAgentText]]:
    for file in sources.list_folder(folder, folder, SUFFIX):
        markdown = split_head(sources.read_text(file, file))
        if markdown.head is None:
            table.ignore(file, "it has no front matter, so TsAgent ignores it as well")
            continue
        try:
            head = read_yaml(markdown.head, TsAgentText).value
        except YamlError as misread:
            table.ignore(file, str(misread))
            continue
        yield file, msgspec.structs.replace(head, name=head.name or name_of_file(file), text=markdown.text.strip())


def _items(texts: Iterable[tuple[str, TsAgentText]], key: str, table: UnderstoodTable) -> tuple[TextItem, ...]:
    found: dict[str, TextItem] = {}
    for at, text in texts:
        name = name_of_file(text.name)
        if not text.name or not text.text or name in found:
            table.ignore(at, "it has no name or no text, or its name is already used")
            continue
        found[name] = TextItem(name, text.text, text.description, _priority(text), text.include)
        table.use(at, f"one of {key}: {name}")
    return sort_items(found.values())


def _priority(text: TsAgentText) -> int:
    try:
        return max(0, min(MAX_PRIORITY, int(float(text.priority_level))))
    except (ValueError, OverflowError):
        return DEFAULT_PRIORITY


_REASONS = {
    "metadata": "it describes the agent to users and to other agents, and is not used here",
    "supervisors": "supervisors are not supported; see permissions",
    "settings.topP": "this option is not supported; see model.options.temperature",
    "settings.theme": "dragoman has no theme; the editor decides",
    "settings.systemPath": "servers are started with the PATH of dragoman; set PATH in a server's env",
    "settings.contextIncludeScore": "it adds items above this similarity to the top_n; min_score works differently",
}
_VECTORS = {"embeddings", "hash", "toolEmbeddings"}


def load_tsagent(root: Any, sources: Sources) -> tuple[Profile, tuple[UnderstoodKey, ...]]:
    """Return the profile of a TsAgent file and the meaning of each key. Raises YamlError or ProfileError."""
    reading = read_node(root, TsAgentFile)
    file, sources.lines = reading.value, reading.lines
    table = UnderstoodTable()
    profile = Profile(
        convert_model(file, table),
        convert_prompt(file, sources, table),
        limits=_limits(file.settings, table),
        servers=convert_servers(file, sources, table),
        rules=convert_texts("rules", file.rules, "rules", sources, table),
        references=convert_texts("references", file.references, "refs", sources, table),
        search=_search(file.settings, table),
    )
    _ignore_unknown(reading.unknown, table)
    return profile, tuple(table.rows)


def _limits(settings: TsAgentSettings, table: UnderstoodTable) -> TurnLimits:
    turns = table.number("settings.maxChatTurns", settings.max_chat_turns, int, 1, "limits.turn_requests")
    return TurnLimits() if turns is None else TurnLimits(turns)


def _search(settings: TsAgentSettings, table: UnderstoodTable) -> SearchSettings:
    default = SearchSettings()
    top_k = table.number("settings.contextTopK", settings.context_top_k, int, 1, "search.top_k")
    top_n = table.number("settings.contextTopN", settings.context_top_n, int, 1, "search.top_n")
    return SearchSettings(top_k or default.top_k, top_n or default.top_n)


def _ignore_unknown(unknown: Iterable[str], table: UnderstoodTable) -> None:
    vectors = False
    for key in unknown:
        if key.rpartition(".")[2] in _VECTORS:
            vectors = True
        else:
            table.ignore(key, _REASONS.get(key, "it is not a known key"))
    if vectors:
        table.ignore("embeddings", "the search computes its own vectors and stores them elsewhere")
