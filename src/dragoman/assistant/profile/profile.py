"""The agent file as the user writes it, and as the agent uses it: files read, paths absolute, secrets unexpanded.

The file and the files it names are read once.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.assistant.profile.items import Items, ListedItem, TextItem, gather_items
from dragoman.assistant.profile.servers import AgentServer, ServerSettings, gather_servers
from dragoman.assistant.profile.settings import (
    ModelSettings,
    Name,
    Permissions,
    SandboxSettings,
    SearchSettings,
    TextFile,
    TurnLimits,
    check_sandbox,
)
from dragoman.assistant.profile.skills import Skill
from dragoman.assistant.profile.sources import MAX_BYTES, ProfileError, Sources, read_bytes
from dragoman.assistant.yaml import YamlError, YamlProblem, listed, parse_yaml, printable, read_node
from dragoman.sandbox import SandboxMode


class UnderstoodKey(msgspec.Struct, frozen=True):
    """One key of a TsAgent file, its meaning here, and whether it is used."""

    key: str
    meaning: str
    used: bool = True


def describe_unused_keys(understood: Iterable[UnderstoodKey]) -> str:
    """Return a sentence that lists the unused keys, or an empty string."""
    unused = [printable(row.key) for row in understood if not row.used]
    return f"It was written for TsAgent. These of its keys are not used here: {listed(unused)}." if unused else ""


class AgentFileShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent file of dragoman."""

    model: Annotated[
        Name | ModelSettings | None,
        Meta(description="The model of sessions: its name, or a mapping. The default is the built-in guide."),
    ] = None
    instructions: Annotated[
        str | TextFile,
        Meta(description="Instructions for the model at the start of every session: a text, or {file: …}."),
    ] = ""
    permissions: Annotated[Permissions, Meta(description="What runs without asking.")] = Permissions()
    sandbox: Annotated[
        bool | SandboxMode | SandboxSettings,
        Meta(description="The sandbox of commands: off, workspace or workspace+network, or a mapping."),
    ] = "off"
    limits: Annotated[TurnLimits, Meta(description="Limits of a turn.")] = TurnLimits()
    servers: Annotated[
        dict[str, ServerSettings], Meta(description="The agent's own MCP servers, by name; its sessions share them.")
    ] = msgspec.field(default_factory=dict[str, ServerSettings], name="mcpServers")
    rules: Annotated[
        Items,
        Meta(
            description="Rules for the model: named texts, as a mapping or a list; {dir: …} reads the Markdown "
            "files of a directory."
        ),
    ] = msgspec.field(default_factory=list[ListedItem])
    references: Annotated[
        Items, Meta(description="Background information for the model: named texts, in the same form as rules.")
    ] = msgspec.field(default_factory=list[ListedItem])
    search: Annotated[
        SearchSettings,
        Meta(description="The search that adds tools, rules and references with `include: agent` to a prompt."),
    ] = SearchSettings()

    def __post_init__(self) -> None:
        check_sandbox("sandbox", self.sandbox)


class Profile(msgspec.Struct, frozen=True):
    """How an agent behaves. The defaults apply without a file."""

    model: ModelSettings | None = None
    instructions: str = ""
    permissions: Permissions = Permissions()
    sandbox: SandboxSettings = SandboxSettings()
    limits: TurnLimits = TurnLimits()
    servers: tuple[AgentServer, ...] = ()
    rules: tuple[TextItem, ...] = ()
    references: tuple[TextItem, ...] = ()
    search: SearchSettings = SearchSettings()
    skills: tuple[Skill, ...] = ()
    """The skills in their folders. The agent file does not name them."""


MAX_OWN_BYTES = 8 * MAX_BYTES
"""The limit for the user's own files. TsAgent stores search vectors in them."""


class LoadedProfile(msgspec.Struct, frozen=True):
    """A profile with the hash of all its bytes, and the meaning of each key of a TsAgent file."""

    profile: Profile
    digest: str
    understood: tuple[UnderstoodKey, ...] = ()


def load_profile(path: Path, *, confined: bool = False) -> LoadedProfile:
    """Read a dragoman or TsAgent file. A confined file may name only files below its own directory.

    Raises ProfileError, or FileNotFoundError if the file does not exist.
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
    """Parse the text of an agent file. Raises ProfileError."""
    return _load(text, Sources(path, text.encode(), confined=False)).profile


def _load(text: str, sources: Sources) -> LoadedProfile:
    # imported here, because most sessions have no agent file
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
        shape.sandbox if isinstance(shape.sandbox, SandboxSettings) else SandboxSettings(shape.sandbox),
        shape.limits,
        gather_servers(shape.servers, sources),
        gather_items("rules", shape.rules, sources),
        gather_items("references", shape.references, sources),
        shape.search,
    )


def _instructions(text: str | TextFile, sources: Sources) -> str:
    return sources.read_text("instructions.file", text.file) if isinstance(text, TextFile) else text


def _place_model(model: str | ModelSettings | None, sources: Sources) -> ModelSettings | None:
    if model is None:
        return None
    settings = ModelSettings(model) if isinstance(model, str) else model
    kind, _, rest = settings.name.partition(":")
    if kind != "script" or not rest:
        return settings
    return msgspec.structs.replace(settings, name=f"{kind}:{sources.place('model', rest)}")


def _refuse(path: Path, problem: str) -> ProfileError:
    return ProfileError(str(path), [YamlProblem(0, problem)])
