"""Local commands, which start with a colon. The agent does not see them."""

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.chat.mentions import find_mentionable
from dragoman.cli.chat.view import usage_parts
from dragoman.cli.session_options import SessionOption, choose, find_option, list_options
from dragoman.cli.terminal.rows import Span, wrap
from dragoman.cli.terminal.tool_calls import plan_rows
from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.text import one_line

if TYPE_CHECKING:
    from dragoman.cli.chat.conversation import ChatConversation

MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""More than any provider accepts. The image goes to the agent in one message."""

_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


class InvalidImageError(DragomanError):
    """A file cannot be sent as an image."""


def read_image(path: Path) -> v1.ImageContent:
    """Read an image file. Raises InvalidImageError."""
    try:
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise InvalidImageError(f"{path} is too large: the limit is {MAX_IMAGE_BYTES // 1024 // 1024} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidImageError(f"{path} cannot be read: {error.strerror}") from None
    mime_type = _find_image_type(data)
    if mime_type is None:
        raise InvalidImageError(f"{path} is not a supported image; expected PNG, JPEG, GIF or WebP")
    return v1.ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type, uri=path.absolute().as_uri())


def _find_image_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for magic, mime_type in _MAGIC if data.startswith(magic)), None)


COMMANDS = {
    "archive": "[NUMBER|ID]: archive this session or another one",
    "connect": "connect a model, or show how to log in to the agent",
    "help": "show this help",
    "image": "PATH: send an image with the next prompt",
    "mode": "[NAME]: show the modes, or switch",
    "model": "[NAME]: show the models, or switch",
    "new": "start a new session",
    "plan": "show the plan",
    "quit": "exit (Ctrl-D); the words exit and quit work without a colon",
    "resume": "[NUMBER|ID]: continue another session, by its number in :sessions",
    "sessions": "list the sessions of this directory",
    "set": "[OPTION [VALUE]]: show all options of the agent, the values of one, or set it",
    "thoughts": "show the thoughts of the last turn",
    "title": "[WORDS]: show or change the session's title",
    "usage": "show how full the context is",
}

_ALIASES = {"exit": "quit", "q": "quit"}

_QUIT_WORDS = frozenset({"exit", "quit", *(f":{name}" for name in ("quit", *_ALIASES))})

START = "dragoman/start"
"""The `_meta` key under which our agent announces its requests about models."""

_INPUT = """\
A line that ends in \\ continues on the next line, as does Alt-Enter. \"\"\" on its own line begins and ends a "
    "long text."
Tab completes commands and, after @, files. Ctrl-C cancels the turn, twice exits. Ctrl-R searches the history."""


def is_quit(text: str) -> bool:
    """Return whether the text means "quit": our command, or a bare word that leaves a shell."""
    return text.strip() in _QUIT_WORDS


class UnknownCommandError(DragomanError):
    """The local command does not exist or lacks an argument."""


class AgentSwitchedError(Exception):
    """The user chose another agent to chat with."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        super().__init__(command[0])


class LocalCommands:
    """Runs the local commands."""

    def __init__(self, conversation: "ChatConversation") -> None:
        self._conversation = conversation
        self._listed: list[v1.SessionInfo] = []

    def run(self, text: str) -> bool:
        """Run the text if it is a local command, and return whether it was. Raises DragomanError."""
        if is_quit(text):
            self._quit("")
        name, argument = _split(text.strip())
        if text.startswith("/") and (name not in _SHARED or name in _offered(self._conversation)):
            return False
        if not text.startswith((":", "/")):
            return False
        name = _ALIASES.get(name, name)
        if name not in COMMANDS:
            raise UnknownCommandError(f"there is no command :{one_line(name)}; :help lists all commands")
        getattr(self, f"_{name}")(argument)
        return True

    def _archive(self, argument: str) -> None:
        conversation = self._conversation
        session_id = self._find(argument) if argument else conversation.session.id
        conversation.background.call(conversation.background.agent.archive(session_id))
        self._listed = []
        conversation.note(f"{one_line(session_id)} is archived; `dragoman sessions unarchive` undoes that")
        if session_id == conversation.session.id:
            conversation.enter(conversation.opener.new())

    def _connect(self, _words: str) -> None:
        conversation = self._conversation
        agent = conversation.background.agent
        methods = (agent.capabilities.meta or {}).get(START)
        if not methods:
            self._show_logins()
            return
        from dragoman.cli.model_choice import ModelQuestion

        def call(name: str, params: Mapping[str, Any]) -> Any:
            return conversation.background.call(agent.call_extension(name, params))

        question = ModelQuestion(call, methods, lambda line: conversation.note(line, ""))
        is_own = conversation.background.is_own
        try:
            other = question.ask(conversation.ask, conversation.session.id, with_agents=is_own)
        except EOFError:
            other = None
        if other is not None:
            raise AgentSwitchedError(list(other.command))

    def _show_logins(self) -> None:
        conversation, agent = self._conversation, self._conversation.background.agent
        if not agent.auth_methods:
            raise UnknownCommandError(f"{one_line(agent.name)} cannot connect a model here; use its own settings")
        conversation.note(f"{one_line(agent.name)} has these login methods:")
        for method in agent.auth_methods:
            conversation.note("  " + one_line(f"{method.name}: {method.description or ''}"), "")

    def _title(self, argument: str) -> None:
        conversation = self._conversation
        if argument:
            conversation.background.call(conversation.session.set_title(argument))
        conversation.note(one_line(conversation.session.title or "The session has no title."))

    def _help(self, _words: str) -> None:
        screen = self._conversation.screen
        for name, described in COMMANDS.items():
            screen.add(wrap([Span(f":{name:<9} ", "bold"), Span(described)], screen.width, later=" " * 11))
        commands = self._conversation.session.commands
        if commands:
            screen.begin_block()
            self._conversation.note("Commands of the agent:")
        for command in commands:
            row = [Span(f"/{one_line(command.name):<9} ", "bold"), Span(one_line(command.description))]
            screen.add(wrap(row, screen.width, later=" " * 11))
        screen.begin_block()
        self._conversation.note(_INPUT)

    def _image(self, argument: str) -> None:
        if not argument:
            raise UnknownCommandError("name a file: :image PATH")
        path = Path(os.path.expanduser(_unquote(argument)))  # noqa: PTH111 -- Path.expanduser raises for an unknown user
        self._conversation.background.agent.check.prompt([image := read_image(self._conversation.opener.cwd / path)])
        self._conversation.images.append(image)
        self._conversation.note(f"{path.name} will be sent with the next prompt")

    def _mode(self, argument: str) -> None:
        self._choose("mode", argument)

    def _model(self, argument: str) -> None:
        self._choose("model", argument)

    def _choose(self, category: str, argument: str) -> None:
        conversation = self._conversation
        if argument:
            value = conversation.background.call(choose(conversation.session, category, argument))
            conversation.note(f"The {category} is now {one_line(value)}.")
            return
        option = find_option(conversation.session, category)
        if option is None:
            raise UnknownCommandError(f"the agent offers no {category}s to choose from")
        self._show_values(option)

    def _show_values(self, option: SessionOption) -> None:
        for value, name in option.values.items():
            mark = "→ " if value == option.current else "  "
            self._conversation.note(f"{mark}{one_line(value)}{f'  {one_line(name)}' if name != value else ''}", "")

    def _set(self, argument: str) -> None:
        conversation = self._conversation
        name, _, value = argument.partition(" ")
        if not name:
            self._show_options()
            return
        if value.strip():
            now = conversation.background.call(choose(conversation.session, name, value.strip()))
            conversation.note(f"{one_line(name)} is now {one_line(now)}.")
            return
        option = find_option(conversation.session, name)
        if option is None:
            raise UnknownCommandError(f"the agent has no option {one_line(name)}; :set lists them")
        self._show_values(option)

    def _show_options(self) -> None:
        known = list_options(self._conversation.session)
        if not known:
            self._conversation.note("The agent has no options.")
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

    def _new(self, _words: str) -> None:
        self._conversation.enter(self._conversation.opener.new())

    def _plan(self, _words: str) -> None:
        entries = self._conversation.session.plan
        if entries:
            self._conversation.screen.add(plan_rows(entries, self._conversation.screen.width))
        else:
            self._conversation.note("There is no plan.")

    def _quit(self, _words: str) -> None:
        self._conversation.leave()

    def _sessions(self, _words: str) -> None:
        conversation = self._conversation
        self._listed = conversation.opener.listed()
        if not self._listed:
            conversation.note("There are no sessions in this directory yet.")
        for number, info in enumerate(self._listed, 1):
            mark = "→" if info.session_id == conversation.session.id else " "
            when = one_line(info.updated_at or "")[:16].replace("T", " ")
            spans = [
                Span(f"{mark}{number:>3}  "),
                Span(one_line(info.title or info.session_id)),
                Span(f"  {when}", "dim"),
            ]
            conversation.screen.add(wrap(spans, conversation.screen.width, later=" " * 6))

    def _resume(self, argument: str) -> None:
        if not argument:
            self._sessions("")
            if self._listed:
                self._conversation.note(":resume NUMBER continues one of them")
            return
        self._conversation.enter(self._conversation.opener.reopen(self._find(argument)))

    def _find(self, argument: str) -> str:
        if not argument.isdigit() or len(argument) > 3:
            return argument
        listed = self._listed or self._conversation.opener.listed()
        if not 1 <= int(argument) <= len(listed):
            raise UnknownCommandError(f"there is no session number {argument}; :sessions lists them")
        return listed[int(argument) - 1].session_id

    def _thoughts(self, _words: str) -> None:
        self._conversation.note(self._conversation.view.thoughts.strip() or "The last turn had no thoughts.")

    def _usage(self, _words: str) -> None:
        usage = usage_parts(self._conversation.session, None)
        self._conversation.note(" · ".join(usage) or "The agent has not reported its usage.")


_SHARED = frozenset(("exit", "mode", "model", "quit", "thoughts"))
"""These also work with a slash, unless the agent has a command of that name."""


def complete(conversation: "ChatConversation", line: str, word: str) -> Sequence[str]:
    """Return the completions of a word of the input."""
    # Files complete everywhere after `@`. The first word is a command. Later words depend on that command.
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
    name, _, argument = text[1:].partition(" ")
    return name, argument.strip()


def _unquote(argument: str) -> str:
    return argument[1:-1] if len(argument) > 1 and argument[0] == argument[-1] and argument[0] in "'\"" else argument
