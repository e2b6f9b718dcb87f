"""The slash commands of our agent: functions from a turn and the words behind the name to an answer in Markdown."""

from collections.abc import Awaitable, Callable

from dragoman.agent.turn import Turn
from dragoman.assistant.compaction import compact
from dragoman.assistant.options import MODEL
from dragoman.assistant.session import AssistantSession


def own_session(turn: Turn) -> AssistantSession:
    """Return our part of a turn's session."""
    return turn.session.extra


async def _compact(turn: Turn, words: str) -> str:
    del words
    await compact(turn)
    return ""  # the compaction tells it


async def _mode(turn: Turn, words: str) -> str:
    if not words:
        current = turn.session.mode
        return "\n".join(
            f"- {'**' if mode.id == current else ''}{mode.id}{'**' if mode.id == current else ''}: {mode.description}"
            for mode in turn.session.settings.modes
        )
    await turn.session.set_mode(words)
    return f"The mode is now {words}."


async def _model(turn: Turn, words: str) -> str:
    own = own_session(turn)
    if not words:
        offered = ", ".join(own.offered_models)
        return f"This is {own.model.name}. Offered are {offered}; `/model NAME` takes any other, too."
    await own.take_model(words)
    await turn.session.set_option(MODEL, words)
    return f"The model is now {words}."


async def _usage(turn: Turn, words: str) -> str:
    del words
    own, spent = own_session(turn), turn.session.usage
    used, size = own.memory.context_used, own.model.context_size
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd is not None else ""
    context = f"{used:,} of {size:,} tokens ({100 * used // size} %)"
    return f"{spent.input:,} tokens in, {spent.output:,} out{cost}. The context holds {context}."


async def _context(turn: Turn, words: str) -> str:
    del words
    return own_session(turn).context.report()


async def _include(turn: Turn, words: str) -> str:
    own = own_session(turn)
    answer = own.context.include(words)
    own.keep_included()
    return answer


async def _exclude(turn: Turn, words: str) -> str:
    own = own_session(turn)
    answer = own.context.exclude(words)
    own.keep_included()
    return answer


COMMANDS: dict[str, Callable[[Turn, str], Awaitable[str]]] = {
    "compact": _compact,
    "mode": _mode,
    "model": _model,
    "usage": _usage,
    "context": _context,
    "include": _include,
    "exclude": _exclude,
}
