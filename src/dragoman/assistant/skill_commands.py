"""The slash commands of skills. `/NAME` adds the skill's text to the prompt, which the model then answers.

A skill with the name of another command is `/skill:NAME`.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

from dragoman.agent.commands.command import SlashCommand
from dragoman.agent.turns.prompt_words import unwrap
from dragoman.agent.turns.turn import Turn
from dragoman.assistant.profile import Skill
from dragoman.assistant.profile.skills import FILE_NAME
from dragoman.assistant.tools.read_skill import skill_text
from dragoman.protocol import v1


def skill_commands(skills: Iterable[Skill], taken: Collection[str]) -> list[SlashCommand]:
    """Return a command for each skill. `taken` has the names of the agent's other commands."""
    return [
        SlashCommand(
            f"skill:{skill.name}" if skill.name in taken else skill.name,
            skill.description,
            _Fill(skill),
            "TASK",
            fills_prompt=True,
        )
        for skill in skills
    ]


class _Fill:
    """The function of a skill's command."""

    def __init__(self, skill: Skill) -> None:
        self._skill = skill

    async def __call__(self, turn: Turn) -> None:
        skill = self._skill
        # The text is a resource, because mentions and the search read only the user's own words.
        uri = (Path(skill.folder) / FILE_NAME).as_uri()
        text = v1.TextResourceContents(uri=uri, text=skill_text(skill), mime_type="text/markdown")
        request = f"Use the skill {skill.name}. {turn.arguments}".rstrip()
        others = _without_first_text(turn.prompt)
        turn.prompt = [v1.TextContent(text=request), v1.EmbeddedResource(resource=text), *others]
        turn.command = None  # from here on, this is an ordinary prompt


def _without_first_text(prompt: Iterable[v1.ContentBlock]) -> list[v1.ContentBlock]:
    blocks = unwrap(list(prompt))
    first = next((place for place, block in enumerate(blocks) if isinstance(block, v1.TextContent)), len(blocks))
    return blocks[:first] + blocks[first + 1 :]
