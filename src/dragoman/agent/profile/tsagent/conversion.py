"""A TsAgent file as a profile, with the table of what was understood."""

from collections.abc import Iterable
from typing import Any

from dragoman.agent.profile.limits import TurnLimits
from dragoman.agent.profile.profile import Profile
from dragoman.agent.profile.search import SearchSettings
from dragoman.agent.profile.sources import Sources
from dragoman.agent.profile.tsagent.model import convert_model
from dragoman.agent.profile.tsagent.servers import convert_servers
from dragoman.agent.profile.tsagent.shape import TsAgentFile, TsAgentSettings
from dragoman.agent.profile.tsagent.table import UnderstoodTable
from dragoman.agent.profile.tsagent.texts import convert_prompt, convert_texts
from dragoman.agent.profile.understood import UnderstoodKey

_REASONS = {
    "metadata": "it describes the agent to people and to other agents, which are not served here",
    "supervisors": "there are no supervisors here; see permissions",
    "settings.topP": "there is no such option here; see model.options.temperature",
    "settings.theme": "there is nothing to paint here; that is the editor's",
    "settings.systemPath": "servers are started with the PATH of dragoman; give one PATH in its env",
    "settings.contextIncludeScore": "it adds what is this near to what top_n takes; min_score is something else",
}
_VECTORS = {"embeddings", "hash", "toolEmbeddings"}


def load_tsagent(root: Any, sources: Sources) -> tuple[Profile, tuple[UnderstoodKey, ...]]:
    """Return the profile of a TsAgent file and what was understood of it; raises Misread and ProfileError."""
    from dragoman.agent.yaml.values import read_node

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
    _leave_unknown(reading.unknown, table)
    return profile, tuple(table.rows)


def _limits(settings: TsAgentSettings, table: UnderstoodTable) -> TurnLimits:
    turns = table.number("settings.maxChatTurns", settings.max_chat_turns, int, 1, "limits.turn_requests")
    return TurnLimits() if turns is None else TurnLimits(turns)


def _search(settings: TsAgentSettings, table: UnderstoodTable) -> SearchSettings:
    default = SearchSettings()
    top_k = table.number("settings.contextTopK", settings.context_top_k, int, 1, "search.top_k")
    top_n = table.number("settings.contextTopN", settings.context_top_n, int, 1, "search.top_n")
    return SearchSettings(top_k or default.top_k, top_n or default.top_n)


def _leave_unknown(unknown: Iterable[str], table: UnderstoodTable) -> None:
    vectors = False
    for key in unknown:
        if key.rpartition(".")[2] in _VECTORS:
            vectors = True
        else:
            table.leave(key, _REASONS.get(key, "it is not known here"))
    if vectors:
        table.leave("embeddings", "the search makes its own vectors, and keeps them elsewhere")
