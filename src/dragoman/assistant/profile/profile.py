"""The agent file as the agent uses it: files read, paths absolute, secrets still closed."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.assistant.profile.items import Items, ListedItem, TextItem
from dragoman.assistant.profile.servers import AgentServer, ServerSettings
from dragoman.assistant.profile.settings import ModelSettings, Name, Permissions, SearchSettings, TextFile, TurnLimits
from dragoman.assistant.yaml import listed, printable


class UnderstoodKey(msgspec.Struct, frozen=True):
    """One key of a TsAgent file, its meaning here, and whether it counts."""

    key: str
    meaning: str
    taken: bool = True


def describe_unused_keys(understood: Iterable[UnderstoodKey]) -> str:
    """Say in one sentence which keys do not count; empty when all do."""
    left = [printable(row.key) for row in understood if not row.taken]
    return f"It was written for TsAgent, and these of its keys are not used here: {listed(left)}." if left else ""


class AgentFileShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent file of dragoman."""

    model: Annotated[
        Name | ModelSettings | None,
        Meta(description="The model that sessions talk with: its name, or a mapping. The default is built in: guide."),
    ] = None
    instructions: Annotated[
        str | TextFile, Meta(description="What the model is told at the start of every session: a text, or {file: …}.")
    ] = ""
    permissions: Annotated[Permissions, Meta(description="What runs unasked.")] = Permissions()
    limits: Annotated[TurnLimits, Meta(description="What a turn may use.")] = TurnLimits()
    servers: Annotated[
        dict[str, ServerSettings], Meta(description="The agent's own MCP servers, by name; its sessions share them.")
    ] = msgspec.field(default_factory=dict[str, ServerSettings], name="mcpServers")
    rules: Annotated[
        Items,
        Meta(
            description="How the model is to work: named texts, as a mapping or a list; {dir: …} takes the Markdown "
            "files of a directory."
        ),
    ] = msgspec.field(default_factory=list[ListedItem])
    references: Annotated[
        Items, Meta(description="What the model may need to know: named texts, written as rules are.")
    ] = msgspec.field(default_factory=list[ListedItem])
    search: Annotated[
        SearchSettings,
        Meta(description="What is found for a prompt among tools, rules and references of the mode agent."),
    ] = SearchSettings()


class Profile(msgspec.Struct, frozen=True):
    """How an agent behaves; without a file, all of it is the default."""

    model: ModelSettings | None = None
    instructions: str = ""
    permissions: Permissions = Permissions()
    limits: TurnLimits = TurnLimits()
    servers: tuple[AgentServer, ...] = ()
    rules: tuple[TextItem, ...] = ()
    references: tuple[TextItem, ...] = ()
    search: SearchSettings = SearchSettings()
