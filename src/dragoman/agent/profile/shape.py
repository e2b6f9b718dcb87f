"""The keys of the agent file, as a person writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.agent.profile.instructions import TextFile
from dragoman.agent.profile.items import Items, ListedItem
from dragoman.agent.profile.limits import TurnLimits
from dragoman.agent.profile.model import ModelSettings, Name
from dragoman.agent.profile.permissions import Permissions
from dragoman.agent.profile.search import SearchSettings
from dragoman.agent.profile.servers import ServerSettings


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
