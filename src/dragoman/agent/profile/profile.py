"""The agent file as the agent uses it: files read, paths absolute, secrets still closed."""

import msgspec

from dragoman.agent.profile.items import TextItem
from dragoman.agent.profile.limits import TurnLimits
from dragoman.agent.profile.model import ModelSettings
from dragoman.agent.profile.permissions import Permissions
from dragoman.agent.profile.search import SearchSettings
from dragoman.agent.profile.servers import AgentServer


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
