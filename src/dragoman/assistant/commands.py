"""The slash commands of our agent. Each takes a turn and arguments and returns its answer in Markdown."""

from collections.abc import Awaitable, Callable

from dragoman.agent.turns.turn import Turn
from dragoman.assistant.compaction import compact
from dragoman.assistant.context.candidates import quote
from dragoman.assistant.options import MODEL
from dragoman.assistant.profile.skills import FILE_NAME, HOME_FOLDER
from dragoman.assistant.session import AssistantSession


def own_session(turn: Turn) -> AssistantSession:
    """Return our agent's part of the turn's session."""
    return turn.session.extra


async def _compact(turn: Turn, _words: str) -> str:
    await compact(turn)
    return ""  # the compaction updates show the result


async def _mode(turn: Turn, argument: str) -> str:
    if not argument:
        current = turn.session.mode
        return "\n".join(
            f"- {'**' if mode.id == current else ''}{mode.id}{'**' if mode.id == current else ''}: {mode.description}"
            for mode in turn.session.settings.modes
        )
    await turn.session.set_mode(argument)
    return f"The mode is now {argument}."


async def _model(turn: Turn, argument: str) -> str:
    own = own_session(turn)
    if not argument:
        offered = ", ".join(own.offered_models)
        return f"The model is {own.model.name}. Available: {offered}; `/model NAME` accepts any other name."
    await own.use_model(argument)
    await turn.session.set_option(MODEL, argument)
    return f"The model is now {argument}."


async def _usage(turn: Turn, _words: str) -> str:
    own, spent = own_session(turn), turn.session.usage
    used, size = own.memory.context_used, own.model.context_size
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd is not None else ""
    context = f"{used:,} of {size:,} tokens ({100 * used // size} %)"
    return f"{spent.input:,} tokens in, {spent.output:,} out{cost}. The context holds {context}."


async def _context(turn: Turn, _words: str) -> str:
    return own_session(turn).context.report()


async def _include(turn: Turn, argument: str) -> str:
    own = own_session(turn)
    answer = own.context.include(argument)
    own.save_included()
    return answer


async def _exclude(turn: Turn, argument: str) -> str:
    own = own_session(turn)
    answer = own.context.exclude(argument)
    own.save_included()
    return answer


async def _skills(turn: Turn, _words: str) -> str:
    own = own_session(turn)
    if not own.profile.skills:
        return f"There are no skills. A skill is a folder with a `{FILE_NAME}` in `{own.setup.home / HOME_FOLDER}`."
    rows = [
        f"| {_cell(f'/{command.name}')} | {skill.include} | {_cell(skill.description)} | {_cell(skill.folder)} |"
        for skill, command in zip(own.profile.skills, own.skill_commands, strict=True)
    ]
    return "\n".join(["| skill | include | description | folder |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    return quote(text).replace("|", r"\|")  # in backticks, because a description may contain Markdown


FUNCTIONS: dict[str, Callable[[Turn, str], Awaitable[str]]] = {
    "compact": _compact,
    "mode": _mode,
    "model": _model,
    "usage": _usage,
    "context": _context,
    "include": _include,
    "exclude": _exclude,
    "skills": _skills,
}
