"""A context with tools and an agent file to choose from."""

from dragoman.agent.turns.prepared_call import PreparedCall, ToolOutcome
from dragoman.assistant.context import ModelContext, ToolOffer
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.profile import Profile
from dragoman.protocol import v1


class Said:
    """A tool that returns its name when it is called."""

    kind = "other"

    def __init__(self, name, description, parameters=None):
        self.definition = ToolDefinition(name, description, parameters or {"type": "object"})

    async def prepare(self, arguments):
        return PreparedCall(title=self.definition.name, kind=self.kind, run=self._run)

    async def _run(self, progress):
        return ToolOutcome(self.definition.name)


def offer(key, about="", include="always", origin="agent", **more):
    server, _, name = key.partition("/")
    return ToolOffer(key, Said(f"{server}__{name}", about), origin, include, server, **more)


FORECAST = offer("weather/get_forecast", "Get the weather forecast for a city.", "agent")
COMMIT = offer("git/commit", "Record the staged changes with a message.", "agent")
PLAY = offer("music/play_track", "Start playback of a song.", "agent")
INVOICE = offer("billing/create_invoice", "Draft an invoice for a customer.", "agent")
SEARCHED = [FORECAST, COMMIT, PLAY, INVOICE]

RAIN = "Will I need an umbrella in Paris tomorrow?"
SONG = "please play a song by the Beatles"


class Choosing(ModelContext):
    """A context whose offers and agent file the test can change."""

    def __init__(self, offers=(), profile=None):
        self.there = list(offers)
        self.file = profile or Profile()
        super().__init__(lambda: self.there, lambda: self.file)

    async def turn(self, *texts):
        await self.begin_turn([v1.TextContent(text=text) for text in texts])
        return list(await self.tools())
