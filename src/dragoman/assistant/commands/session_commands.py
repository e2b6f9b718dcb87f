"""The commands for the session itself, and for the things that go to its model: `/context`, `/include`, `/exclude`."""

from dragoman.assistant.commands.command import SlashCommand
from dragoman.assistant.compaction import compact
from dragoman.assistant.session import Session
from dragoman.assistant.settings import MODEL, MODES


async def _compact(session: Session, words: str) -> str:
    del words
    before = len(session.messages)
    await compact(session)
    return f"The conversation so far, {before} messages, was summed up. The log keeps all of it."


async def _mode(session: Session, words: str) -> str:
    if not words:
        return "\n".join(
            f"- {'**' if mode == session.settings.mode else ''}{mode}{'**' if mode == session.settings.mode else ''}: "
            f"{MODES[mode].description}"
            for mode in session.choices.modes
        )
    await session.set_mode(session.choices.check_mode(words))
    return f"The mode is now {words}."


async def _model(session: Session, words: str) -> str:
    if not words:
        offered = ", ".join(session.choices.models)
        return f"This is {session.model.name}. Offered are {offered}; `/model NAME` takes any other, too."
    await session.set_option(MODEL, words)
    return f"The model is now {words}."


async def _usage(session: Session, words: str) -> str:
    del words
    spent, size = session.spent, session.model.context_size
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd is not None else ""
    context = f"{session.context_used:,} of {size:,} tokens ({100 * session.context_used // size} %)"
    return f"{spent.input:,} tokens in, {spent.output:,} out{cost}. The context holds {context}."


OWN_COMMANDS = (
    SlashCommand("compact", "Sum up the conversation, so that the model has room again", _compact),
    SlashCommand("mode", "Show or change the mode", _mode, "ask|code|plan"),
    SlashCommand("model", "Show or change the model", _model, "NAME"),
    SlashCommand("usage", "Show the tokens and the cost of the conversation", _usage),
)


async def _context(session: Session, words: str) -> str:
    del words
    return session.context.report()


async def _include(session: Session, words: str) -> str:
    answer = session.context.include(words)
    session.keep_included()
    return answer


async def _exclude(session: Session, words: str) -> str:
    answer = session.context.exclude(words)
    session.keep_included()
    return answer


CONTEXT_COMMANDS = (
    SlashCommand("context", "Show the contents of the last request to the model, and why", _context),
    SlashCommand("include", "Add a tool, a server, a rule or a reference to the model's context", _include, "NAME"),
    SlashCommand("exclude", "Take back an addition of /include", _exclude, "NAME"),
)
