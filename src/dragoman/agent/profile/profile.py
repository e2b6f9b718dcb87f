"""The agent file as the agent uses it: files read, paths absolute, secrets still closed."""

import msgspec

from dragoman.agent.profile.limits import Limits
from dragoman.agent.profile.model import ModelSettings
from dragoman.agent.profile.permissions import Permissions


class Profile(msgspec.Struct, frozen=True):
    """How an agent behaves; without a file, all of it is the default."""

    model: ModelSettings | None = None
    instructions: str = ""
    permissions: Permissions = Permissions()
    limits: Limits = Limits()
