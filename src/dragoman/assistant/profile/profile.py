"""The agent file as a person writes it and as the agent uses it: files read, paths absolute, secrets still closed.

Reading takes its bytes once, and those of the files that it names.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.assistant.profile.items import Items, ListedItem, TextItem, gather_items
from dragoman.assistant.profile.servers import AgentServer, ServerSettings, gather_servers
from dragoman.assistant.profile.settings import ModelSettings, Name, Permissions, SearchSettings, TextFile, TurnLimits
from dragoman.assistant.profile.sources import MAX_BYTES, ProfileError, Sources, read_bytes
from dragoman.assistant.yaml import YamlError, YamlProblem, listed, parse_yaml, printable, read_node


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


MAX_OWN_BYTES = 8 * MAX_BYTES
"""Of a file that the person wrote or chose: TsAgent keeps the vectors of its search in there."""

PATH_MODELS = ("script", "local")
"""The kinds of model whose name is a path."""


class LoadedProfile(msgspec.Struct, frozen=True):
    """A profile, the hash of all its bytes, and, for a TsAgent file, the meaning of each key."""

    profile: Profile
    digest: str
    understood: tuple[UnderstoodKey, ...] = ()


def load_profile(path: Path, *, confined: bool = False) -> LoadedProfile:
    """Read an agent file, ours or TsAgent's; a confined one may only name files below its own directory.

    Raises ProfileError, and FileNotFoundError when there is none.
    """
    try:
        data = read_bytes(path, MAX_BYTES if confined else MAX_OWN_BYTES)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refuse(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _refuse(path, "is not UTF-8 text") from None
    return _load(text, Sources(path, data, confined=confined))


def parse_profile(text: str, path: Path) -> Profile:
    """Make a profile of the text of an agent file; raises ProfileError."""
    return _load(text, Sources(path, text.encode(), confined=False)).profile


def _load(text: str, sources: Sources) -> LoadedProfile:
    # Most sessions have no agent file, and need none of this.
    from dragoman.assistant.profile.tsagent import is_tsagent, load_tsagent

    try:
        root = parse_yaml(text)
        if is_tsagent(sources.path, root):
            profile, understood = load_tsagent(root, sources)
            return LoadedProfile(profile, sources.digest, understood)
        profile = _read(root, sources)
        return LoadedProfile(profile, sources.digest)
    except YamlError as misread:
        raise ProfileError(str(sources.path), misread.problems) from None


def _read(root: Any, sources: Sources) -> Profile:
    reading = read_node(root, AgentFileShape)
    shape, sources.lines = reading.value, reading.lines
    return Profile(
        _place_model(shape.model, sources),
        _instructions(shape.instructions, sources),
        shape.permissions,
        shape.limits,
        gather_servers(shape.servers, sources),
        gather_items("rules", shape.rules, sources),
        gather_items("references", shape.references, sources),
        shape.search,
    )


def _instructions(given: str | TextFile, sources: Sources) -> str:
    return sources.read_text("instructions.file", given.file) if isinstance(given, TextFile) else given


def _place_model(model: str | ModelSettings | None, sources: Sources) -> ModelSettings | None:
    if model is None:
        return None
    settings = ModelSettings(model) if isinstance(model, str) else model
    kind, _, rest = settings.name.partition(":")
    if kind not in PATH_MODELS or not rest:
        return settings
    return msgspec.structs.replace(settings, name=f"{kind}:{sources.place('model', rest)}")


def _refuse(path: Path, problem: str) -> ProfileError:
    return ProfileError(str(path), [YamlProblem(0, problem)])
