"""The tool that loads a skill. Sessions without skills do not have it."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.turns.prepared_call import PreparedCall, ShowProgress, ToolError, ToolOutcome, code
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.profile.skills import MAX_BYTES, Skill
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.assistant.tools.tool import Tool
from dragoman.files import Boundary, PathError
from dragoman.protocol import v1
from dragoman.text import one_line, visible
from dragoman.text.match import closest

MAX_SHOWN_CHARS = 100
"""The characters of a wrong name or path in an error."""


def skill_tools(skills: Sequence[Skill]) -> list[Tool]:
    """Return the tool for skills, or none if there are no skills."""
    return [ReadSkill(skills)] if skills else []


def skill_text(skill: Skill) -> str:
    """Return a skill's text for the model, with the place of its files."""
    return (
        f"{skill.text}\n\n[This is the skill {skill.name}. Its files are in {visible(skill.folder)}. Paths in it are "
        "relative to that folder, and `read_skill` with `file` reads them.]"
    )


class ReadSkillArguments(Arguments, frozen=True):
    """The arguments of `read_skill`."""

    name: Annotated[str, Meta(min_length=1, description="The name of the skill.")]
    file: Annotated[
        str, Meta(description="A file of the skill, relative to its folder. Default: the skill's instructions.")
    ] = ""


class ReadSkill:
    """Loads a skill's text, or a file in its folder. Needs no approval, because the user approved the skill."""

    title = "Read a skill"
    kind: v1.ToolKind = "read"

    def __init__(self, skills: Sequence[Skill]) -> None:
        self._skills = {skill.name: skill for skill in skills}
        self.definition = ToolDefinition(
            "read_skill",
            "Read the instructions of a skill, or a text file in the skill's folder.",
            make_schema(ReadSkillArguments),
        )

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the read. Raises ToolError."""
        asked = decode(ReadSkillArguments, arguments, self.definition.name)
        skill = self._find(asked.name)

        async def run(_: ShowProgress) -> ToolOutcome:
            text = await asyncio.to_thread(_read, skill, asked.file) if asked.file else skill_text(skill)
            return ToolOutcome(text, [code(text)])

        of_it = f": {one_line(asked.file, MAX_SHOWN_CHARS)}" if asked.file else ""
        return PreparedCall(f"Read the skill {skill.name}{of_it}", self.kind, run=run, reads_only=True)

    def _find(self, name: str) -> Skill:
        skill = self._skills.get(name)
        if skill is None:
            close = closest(name, self._skills)
            hint = f"did you mean {close}?" if close else f"there are {', '.join(self._skills)}"
            raise ToolError(f"there is no skill {one_line(name, MAX_SHOWN_CHARS)!r}; {hint}")
        return skill


def _read(skill: Skill, file: str) -> str:
    try:
        return Boundary([skill.folder]).read_text(file, MAX_BYTES)
    except PathError as problem:
        raise ToolError(str(problem)) from None
