"""Commands with a leading colon: they are ours, and the agent does not see them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.chat.mentions import find_mentionable
from dragoman.cli.chat.options import SessionOption, choose, find_option, list_options, read_image
from dragoman.cli.chat.view import usage_words
from dragoman.cli.terminal.rows import Span, wrap
from dragoman.cli.terminal.tool_calls import plan_rows
from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.text import clean_text, one_line

if TYPE_CHECKING:
    from dragoman.cli.chat.conversation import ChatConversation


COMMANDS = {
    "archive": "[NUMBER|ID]: leave this session, or another one, out of lists",
    "connect": "connect a model, or show how to log in to the agent",
    "help": "show this",
    "image": "PATH: send an image with the next prompt",
    "mode": "[NAME]: show the modes, or switch",
    "model": "[NAME]: show the models, or switch",
    "new": "begin a new session",
    "plan": "show the plan",
    "quit": "leave (Ctrl-D); so do exit and quit alone",
    "resume": "[NUMBER|ID]: go on with another session, by its number in :sessions",
    "sessions": "list the sessions of this directory",
    "set": "[OPTION [VALUE]]: show all options of the agent, the values of one, or set it",
    "thoughts": "show the thoughts of the last turn",
    "title": "[WORDS]: show the title of the session, or give it another one",
    "usage": "show how full the context is",
}

_ALIASES = {"exit": "quit", "q": "quit"}

_QUIT_WORDS = frozenset({"exit", "quit", *(f":{name}" for name in ("quit", *_ALIASES))})

START = "dragoman/start"
"""The key of `_meta` by which our agent names its requests about models."""

_INPUT = """\
A line that ends in \\ goes on; Alt-Enter breaks it; \"\"\" alone begins and ends a longer text.
Tab completes, a file after @ too. Ctrl-C cancels the turn, twice leaves. Ctrl-R searches the history."""


def is_quit(text: str) -> bool:
    """Tell whether a prompt is the command to leave, or one of the bare words by which shells are left."""
    return text.strip() in _QUIT_WORDS


class UnknownCommand(DragomanError):
    """There is no local command of that name, or it needs something more."""


class AgentSwitched(Exception):
    """The person chose another agent to talk with."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        super().__init__(command[0])


class LocalCommands:
    """Runs the commands that begin with a colon."""

    def __init__(self, conversation: "ChatConversation") -> None:
        self._conversation = conversation
        self._listed: list[v1.SessionInfo] = []

    def run(self, text: str) -> bool:
        """Run a text if it is a local command, and say whether it was; raises DragomanError."""
        if is_quit(text):
            self._quit("")
        name, words = _split(text.strip())
        if text.startswith("/") and (name not in _SHARED or name in _offered(self._conversation)):
            return False
        if not text.startswith((":", "/")):
            return False
        name = _ALIASES.get(name, name)
        if name not in COMMANDS:
            raise UnknownCommand(f"there is no command :{one_line(name)}; :help shows those there are")
        getattr(self, f"_{name}")(words)
        return True

    def _archive(self, words: str) -> None:
        conversation = self._conversation
        session_id = self._find(words) if words else conversation.session.id
        conversation.background.call(conversation.background.agent.archive(session_id))
        self._listed = []
        conversation.tell(f"{one_line(session_id)} is archived; `dragoman sessions unarchive` takes that back")
        if session_id == conversation.session.id:
            conversation.enter(conversation.opener.new())

    def _connect(self, words: str) -> None:
        del words
        conversation = self._conversation
        agent = conversation.background.agent
        methods = (agent.capabilities.meta or {}).get(START)
        if not methods:
            self._show_logins()
            return
        from dragoman.cli.model_choice import ModelQuestion

        def call(name: str, params: Mapping[str, Any]) -> Any:
            return conversation.background.call(agent.call_extension(name, params))

        question = ModelQuestion(call, methods, lambda line: conversation.tell(line, ""))
        is_own = conversation.background.is_own
        try:
            other = question.ask(conversation.ask, conversation.session.id, with_agents=is_own)
        except EOFError:
            other = None
        if other is not None:
            raise AgentSwitched(list(other.command))

    def _show_logins(self) -> None:
        conversation, agent = self._conversation, self._conversation.background.agent
        if not agent.auth_methods:
            raise UnknownCommand(f"{one_line(agent.name)} offers no way to connect a model; see its own settings")
        conversation.tell(f"{one_line(agent.name)} has its own login:")
        for method in agent.auth_methods:
            conversation.tell(clean_text(f"  {method.name}: {method.description or ''}"), "")

    def _title(self, words: str) -> None:
        conversation = self._conversation
        if words:
            conversation.background.call(conversation.session.set_title(words))
        conversation.tell(one_line(conversation.session.title or "The session has no title."))

    def _help(self, words: str) -> None:
        del words
        screen = self._conversation.screen
        for name, described in COMMANDS.items():
            screen.add(wrap([Span(f":{name:<9} ", "bold"), Span(described)], screen.width, later=" " * 11))
        commands = self._conversation.session.commands
        if commands:
            screen.begin_block()
            self._conversation.tell("The agent's own:")
        for command in commands:
            row = [Span(f"/{one_line(command.name):<9} ", "bold"), Span(one_line(command.description))]
            screen.add(wrap(row, screen.width, later=" " * 11))
        screen.begin_block()
        self._conversation.tell(_INPUT)

    def _image(self, words: str) -> None:
        if not words:
            raise UnknownCommand("name a file: :image PATH")
        path = Path(os.path.expanduser(_unquote(words)))  # noqa: PTH111 -- Path.expanduser raises for an unknown user
        self._conversation.background.agent.check.prompt([image := read_image(self._conversation.opener.cwd / path)])
        self._conversation.images.append(image)
        self._conversation.tell(f"{path.name} goes with the next prompt")

    def _mode(self, words: str) -> None:
        self._choose("mode", words)

    def _model(self, words: str) -> None:
        self._choose("model", words)

    def _choose(self, category: str, words: str) -> None:
        conversation = self._conversation
        if words:
            value = conversation.background.call(choose(conversation.session, category, words))
            conversation.tell(f"The {category} is now {one_line(value)}.")
            return
        option = find_option(conversation.session, category)
        if option is None:
            raise UnknownCommand(f"the agent offers no {category}s to choose from")
        self._show_values(option)

    def _show_values(self, option: SessionOption) -> None:
        for value, name in option.values.items():
            mark = "→ " if value == option.current else "  "
            self._conversation.tell(clean_text(f"{mark}{value}{f'  {name}' if name != value else ''}"), "")

    def _set(self, words: str) -> None:
        conversation = self._conversation
        name, _, value = words.partition(" ")
        if not name:
            self._show_options()
            return
        if value.strip():
            now = conversation.background.call(choose(conversation.session, name, value.strip()))
            conversation.tell(f"{one_line(name)} is now {one_line(now)}.")
            return
        option = find_option(conversation.session, name)
        if option is None:
            raise UnknownCommand(f"the agent has no option {one_line(name)}; :set shows those there are")
        self._show_values(option)

    def _show_options(self) -> None:
        known = list_options(self._conversation.session)
        if not known:
            self._conversation.tell("The agent has no options.")
        width = max((len(one_line(option.option_id)) for option in known), default=0)
        for option in known:
            name = one_line(option.name)
            spans = [
                Span(f"{one_line(option.option_id):<{width}}  ", "bold"),
                Span(one_line(option.current)),
                Span("" if name == option.option_id else f"  {name}", "dim"),
            ]
            screen = self._conversation.screen
            screen.add(wrap(spans, screen.width, later=" " * (width + 2)))

    def _new(self, words: str) -> None:
        del words
        self._conversation.enter(self._conversation.opener.new())

    def _plan(self, words: str) -> None:
        del words
        entries = self._conversation.session.plan
        if entries:
            self._conversation.screen.add(plan_rows(entries, self._conversation.screen.width))
        else:
            self._conversation.tell("There is no plan.")

    def _quit(self, words: str) -> None:
        del words
        self._conversation.leave()

    def _sessions(self, words: str) -> None:
        del words
        conversation = self._conversation
        self._listed = conversation.opener.listed()
        if not self._listed:
            conversation.tell("There are no sessions in this directory yet.")
        for number, info in enumerate(self._listed, 1):
            mark = "→" if info.session_id == conversation.session.id else " "
            when = one_line(info.updated_at or "")[:16].replace("T", " ")
            spans = [
                Span(f"{mark}{number:>3}  "),
                Span(one_line(info.title or info.session_id)),
                Span(f"  {when}", "dim"),
            ]
            conversation.screen.add(wrap(spans, conversation.screen.width, later=" " * 6))

    def _resume(self, words: str) -> None:
        if not words:
            self._sessions("")
            if self._listed:
                self._conversation.tell(":resume NUMBER goes on with one of them")
            return
        self._conversation.enter(self._conversation.opener.reopen(self._find(words)))

    def _find(self, words: str) -> str:
        if not words.isdigit() or len(words) > 3:
            return words
        listed = self._listed or self._conversation.opener.listed()
        if not 1 <= int(words) <= len(listed):
            raise UnknownCommand(f"there is no session number {words}; :sessions shows those there are")
        return listed[int(words) - 1].session_id

    def _thoughts(self, words: str) -> None:
        del words
        self._conversation.tell(self._conversation.view.thoughts.strip() or "There were no thoughts.")

    def _usage(self, words: str) -> None:
        del words
        told = usage_words(self._conversation.session, None)
        self._conversation.tell(" · ".join(told) or "The agent has not told its usage.")


_SHARED = frozenset(("exit", "mode", "model", "quit", "thoughts"))
"""These work with a slash too, where the agent has none of that name."""


def complete(conversation: "ChatConversation", line: str, word: str) -> Sequence[str]:
    """Return the completions of a word of the input."""
    first, blank, rest = line.partition(" ")
    if word.startswith("@"):
        return [f"@{path} " for path in find_mentionable(conversation.opener.cwd, word[1:])]
    if not blank:
        offered = _offered(conversation)
        names = [f"/{name} " for name in offered] + [f":{name} " for name in COMMANDS]
        names += [f"/{name} " for name in sorted(_SHARED - set(offered))]
        return [name for name in names if name.startswith(word)]
    if first == ":set":
        name, blank, rest = rest.partition(" ")
        if not blank:
            known = [option.option_id for option in list_options(conversation.session)]
            return [f"{each} " for each in known if each.startswith(word)]
        return _values(conversation, name, rest, word)
    if first[1:] in ("mode", "model"):
        return _values(conversation, first[1:], rest, word)
    return _paths(conversation.opener.cwd, word) if first == ":image" else []


def _values(conversation: "ChatConversation", name: str, rest: str, word: str) -> list[str]:
    option = find_option(conversation.session, name)
    return [value for value in option.values if value.startswith(word)] if option and " " not in rest else []


def _paths(cwd: Path, word: str) -> list[str]:
    folder, _, start = word.rpartition("/")
    lead = f"{folder}/" if "/" in word else ""
    try:
        entries = sorted((cwd / os.path.expanduser(lead or ".")).iterdir())  # noqa: PTH111 -- as above
    except OSError:
        return []
    return [
        f"{lead}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in entries
        if entry.name.startswith(start) and (start or not entry.name.startswith("."))
    ]


def _offered(conversation: "ChatConversation") -> list[str]:
    return [one_line(command.name) for command in conversation.session.commands]


def _split(text: str) -> tuple[str, str]:
    name, _, words = text[1:].partition(" ")
    return name, words.strip()


def _unquote(words: str) -> str:
    return words[1:-1] if len(words) > 1 and words[0] == words[-1] and words[0] in "'\"" else words
