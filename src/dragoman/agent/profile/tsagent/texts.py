"""The prompt, the rules and the references of a TsAgent file: in it, or beside it in the older form."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dragoman.agent.profile.items import DEFAULT_PRIORITY, TextItem, in_order, name_of_file
from dragoman.agent.profile.markdown import split_head
from dragoman.agent.profile.sources import Sources
from dragoman.agent.profile.tsagent.shape import TsAgentFile, TsAgentText
from dragoman.agent.profile.tsagent.table import UnderstoodTable
from dragoman.agent.yaml.nodes import YamlError

PROMPT = "prompt.md"
SUFFIX = ".mdt"
MAX_PRIORITY = 999


def convert_prompt(file: TsAgentFile, sources: Sources, table: UnderstoodTable) -> str:
    """Return the prompt, from the file or from beside it; raises ProfileError."""
    if file.system_prompt is not None:
        table.take("systemPrompt", "instructions")
        return file.system_prompt
    if not sources.beside(PROMPT).is_file():
        return ""
    table.take(PROMPT, "instructions")
    return sources.read_text(PROMPT, PROMPT)


def convert_texts(
    key: str, given: Sequence[TsAgentText] | None, folder: str, sources: Sources, table: UnderstoodTable
) -> tuple[TextItem, ...]:
    """Return the rules or the references, from the file or from a folder beside it; raises ProfileError."""
    if given is not None:
        return _items(((f"{key}[{index}]", text) for index, text in enumerate(given)), key, table)
    if not sources.beside(folder).is_dir():
        return ()
    return _items(_read_folder(folder, sources, table), key, table)


def _read_folder(folder: str, sources: Sources, table: UnderstoodTable) -> Iterator[tuple[str, TsAgentText]]:
    from dragoman.agent.yaml.values import read_yaml

    for file in sources.list_folder(folder, folder, SUFFIX):
        markdown = split_head(sources.read_text(file, file))
        if markdown.head is None:
            table.leave(file, "it has no head, without which TsAgent ignores it too")
            continue
        try:
            head = read_yaml(markdown.head, TsAgentText).value
        except YamlError as misread:
            table.leave(file, str(misread))
            continue
        yield file, msgspec.structs.replace(head, name=head.name or name_of_file(file), text=markdown.text.strip())


def _items(texts: Iterable[tuple[str, TsAgentText]], key: str, table: UnderstoodTable) -> tuple[TextItem, ...]:
    found: dict[str, TextItem] = {}
    for at, text in texts:
        name = name_of_file(text.name)
        if not text.name or not text.text or name in found:
            table.leave(at, "it has no name, no text, or the name of another")
            continue
        found[name] = TextItem(name, text.text, text.description, _priority(text), text.include)
        table.take(at, f"one of {key}: {name}")
    return in_order(found.values())


def _priority(text: TsAgentText) -> int:
    try:
        return max(0, min(MAX_PRIORITY, int(float(text.priority_level))))
    except (ValueError, OverflowError):
        return DEFAULT_PRIORITY
