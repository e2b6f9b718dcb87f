"""Skills: folders with a `SKILL.md`, whose text the model loads when it needs it.

    ---
    name: pdf
    description: Fills in PDF forms. Use it for every PDF with fields.
    include: agent
    ---
    Run `scripts/fields.py FILE` first …

The front matter is that of other agents. Only `include` is ours, and other keys are ignored. The name and the
description are sent to the model, as `include` says. The text is sent when the model calls `read_skill` or the user
writes `/NAME`. The user's skills are in `skills` in the home. A project's skills are in `.agents/skills` and
`.claude/skills`, and follow the trust rule of a project's agent file.

The text is read once. The same bytes are hashed, approved and used. A skill with a problem is left out, and the user
reads why. The other skills work.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile.sources import MAX_FILES, split_head
from dragoman.assistant.yaml import YamlError, listed, printable, read_yaml
from dragoman.errors import DragomanError
from dragoman.files import Boundary, PathError
from dragoman.text import one_line, visible

PROJECT_FOLDERS = (".agents/skills", ".claude/skills")
HOME_FOLDER = "skills"
FILE_NAME = "SKILL.md"

MAX_BYTES = 64 * 1024
"""The longest `SKILL.md`. The model reads it whole, as one result of a tool."""

MAX_NAME, MAX_DESCRIPTION = 64, 1024
"""Characters of a name and a description, as in the specification of skills."""

MAX_ALWAYS = 16_000
"""Characters of all descriptions that are part of every request. The search adds the others."""

_NAME = r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*"
_NAME_EXPECTED = f"a name of at most {MAX_NAME} letters a to z, digits, _ and -, with dots between"
"""Letters of other alphabets could look like the name of another command."""

_NO_HEAD = "expected `name` and `description` between two lines of `---` at its beginning"


class Skill(msgspec.Struct, frozen=True):
    """A skill as the agent uses it."""

    name: str
    description: str
    text: str
    folder: str
    """Its folder, without links."""
    include: Include = "always"


class SkillHead(msgspec.Struct, frozen=True):
    """The front matter of a `SKILL.md`. Other agents have more keys."""

    description: Annotated[str, Meta(min_length=1, extra={"expected": "a text"})]
    name: Annotated[str, Meta(pattern=f"^{_NAME}$", extra={"expected": _NAME_EXPECTED})] | None = None
    include: Include = "always"


class FoundSkills(msgspec.Struct, frozen=True):
    """The skills of some folders, the hash of all their texts, and why others are left out."""

    skills: tuple[Skill, ...] = ()
    digest: str = ""
    problems: tuple[str, ...] = ()
    place: Path | None = None
    """The first folder that has skills."""


def find_project_skills(cwd: Path) -> FoundSkills:
    """Return the skills of a project. Links that leave the project are not followed."""
    return _find([cwd / folder for folder in PROJECT_FOLDERS], inside=cwd)


def find_home_skills(home: Path) -> FoundSkills:
    """Return the user's own skills."""
    return _find([home / HOME_FOLDER])


def merge_skills(first: Iterable[Skill], second: Iterable[Skill]) -> tuple[tuple[Skill, ...], list[str]]:
    """Return all skills, and a problem for each whose name or place in the context is taken. The first one counts."""
    merged: dict[str, Skill] = {}
    problems: list[str] = []
    searched: list[str] = []
    room = MAX_ALWAYS
    for skill in (*first, *second):
        other = merged.get(skill.name)
        if other is not None:
            problems.append(_ignored(skill.folder, f"{visible(other.folder)} has the same name"))
            continue
        if skill.include == "always":
            room -= len(skill.description)
            if room < 0:
                searched.append(skill.name)
                skill = msgspec.structs.replace(skill, include="agent")  # noqa: PLW2901 -- the same skill
        merged[skill.name] = skill
    if searched:
        problems.append(
            f"The descriptions of the skills have more than {MAX_ALWAYS:,} characters, so these are only included when "
            f"the search finds them: {listed(searched)}"
        )
    return tuple(merged.values()), problems


def _find(folders: Iterable[Path], inside: Path | None = None) -> FoundSkills:
    skills: list[Skill] = []
    problems: list[str] = []
    place: Path | None = None
    digest = hashlib.sha256()
    seen: set[str] = set()
    for folder in folders:
        for name in _list(folder, problems):
            real = os.path.realpath(folder / name)
            if real in seen or not os.path.lexists(folder / name / FILE_NAME):
                continue
            seen.add(real)
            place = place or folder
            if inside is not None and not Path(real).is_relative_to(os.path.realpath(inside)):
                problems.append(_ignored(str(folder / name), "it is outside the project"))
                continue
            try:
                skill, data = _read(real, name)
            except (PathError, _InvalidSkillError) as problem:
                problems.append(_ignored(str(folder / name), str(problem)))
                continue
            skills.append(skill)
            digest.update(hashlib.sha256(f"{real}\0{data}".encode("utf-8", "surrogateescape")).digest())
    return FoundSkills(tuple(skills), digest.hexdigest() if skills else "", tuple(problems), place)


class _InvalidSkillError(DragomanError):
    """The text of a skill cannot be used."""


def _list(folder: Path, problems: list[str]) -> list[str]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 -- names, not paths
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(f"The skills in {visible(str(folder))} are ignored: {error.strerror}")
        return []
    if len(names) > MAX_FILES:
        problems.append(f"The skills in {visible(str(folder))} are ignored: there are more than {MAX_FILES} files")
        return []
    return names


def _read(folder: str, default_name: str) -> tuple[Skill, str]:
    """Return a skill and its whole file. Raises PathError and _InvalidSkillError."""
    data = Boundary([folder]).read_text(FILE_NAME, MAX_BYTES)
    markdown = split_head(data.removeprefix("\ufeff"))
    if markdown.head is None:
        raise _InvalidSkillError(_NO_HEAD)
    try:
        head = read_yaml(markdown.head, SkillHead).value
    except YamlError as misread:
        problems = "; ".join(f"line {problem.line}: {problem.text}" for problem in misread.problems)
        raise _InvalidSkillError(problems) from None
    name = head.name or default_name
    if len(name) > MAX_NAME or not re.fullmatch(_NAME, name):
        raise _InvalidSkillError(f"{printable(name)} is not {_NAME_EXPECTED}")
    if len(head.description) > MAX_DESCRIPTION:
        raise _InvalidSkillError(f"its description has more than {MAX_DESCRIPTION:,} characters")
    description = one_line(head.description)
    if not markdown.text.strip():
        raise _InvalidSkillError("it has no text")
    return Skill(name, description, markdown.text.strip(), folder, head.include), data


def _ignored(folder: str, reason: str) -> str:
    return f"The skill in {visible(folder)} is ignored: {reason}"
