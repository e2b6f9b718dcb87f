"""The input line: readline with a saved history, completion and multi-line input.

A trailing backslash continues the line. Three quotes on their own line begin and end a longer text. With GNU readline,
Alt-Enter inserts a line break. Pasted text is kept as it is.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from dragoman.client import Elicitation, ElicitationResponse, accept, decline
from dragoman.client.services.elicitation import find_problems
from dragoman.files.private_file import PrivateFile
from dragoman.protocol import v1
from dragoman.text import one_line, visible
from dragoman.text.secret import hide_command_secrets

try:
    import readline
except ImportError:
    readline = None

MAX_HISTORY = 2000
QUOTES = '"""'

Complete = Callable[[str, str], Sequence[str]]
"""Returns the completions of a word (the second argument), given the line up to the cursor."""


class PromptInput:
    """Reads the lines that the user types."""

    def __init__(self, history: Path, complete: Complete, *, colour: bool) -> None:
        self._history = history
        self._complete = complete
        self._colour = colour
        self._matches: Sequence[str] = ()
        if readline is not None:
            self._set_up(readline)

    def read(self, prompt: str) -> str:
        """Return the text. Raises EOFError on Ctrl-D and KeyboardInterrupt on Ctrl-C."""
        line = self._line(prompt)
        if line.strip() == QUOTES:
            return self._remember(self._quoted())
        lines = [line]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self._line("· "))
        return self._remember("\n".join(lines))

    def read_answer(self, prompt: str) -> str:
        """Return one line without adding it to the history."""
        return self._line(prompt)

    def _quoted(self) -> str:
        lines: list[str] = []
        while (line := self._line("· ")).rstrip() != QUOTES:
            lines.append(line)
        return "\n".join(lines)

    def _line(self, prompt: str) -> str:
        if not self._colour:
            return input(prompt)
        # \x01 and \x02 mark characters that readline must not count as width.
        return input(f"\x01\x1b[1;32m\x02{prompt}\x01\x1b[0m\x02")

    def _set_up(self, readline: ModuleType) -> None:
        readline.set_auto_history(False)
        readline.set_completer(self._match)
        readline.set_completer_delims(" \n")
        if "libedit" in (readline.__doc__ or ""):
            readline.parse_and_bind("bind ^I rl_complete")
        else:
            readline.parse_and_bind("tab: complete")
            readline.parse_and_bind(r'"\e\C-m": "\C-v\C-j"')
            readline.parse_and_bind("set enable-bracketed-paste on")
            readline.parse_and_bind("set show-all-if-ambiguous on")
            readline.parse_and_bind("set completion-query-items 60")
        for text in self._load():
            readline.add_history(text)

    def _match(self, word: str, state: int) -> str | None:
        if state == 0 and readline is not None:
            self._matches = self._complete(readline.get_line_buffer()[: readline.get_endidx()], word)
        return self._matches[state] if state < len(self._matches) else None

    def _load(self) -> list[str]:
        try:
            lines = self._history.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        texts = [_decode(line) for line in lines[-MAX_HISTORY:]]
        if len(lines) > 2 * MAX_HISTORY:
            with suppress(OSError):  # if trimming fails, the long history still works
                PrivateFile(self._history).replace("".join(f"{line}\n" for line in lines[-MAX_HISTORY:]).encode())
        return [text for text in texts if text]

    def _remember(self, text: str) -> str:
        if not text.strip():
            return text
        kept = hide_command_secrets(text)
        if readline is not None:
            readline.add_history(kept)
        try:
            self._history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(self._history, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:  # noqa: PTH123 -- the mode
                file.write(f"{json.dumps(kept)}\n")
        except OSError as error:
            print(f"(the history cannot be saved: {error.strerror})", file=sys.stderr)
        return text


def _decode(line: str) -> str:
    try:
        text = json.loads(line)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


Ask = Callable[[str], str]
Show = Callable[[str], None]


def fill_in(elicitation: Elicitation, ask: Ask, show: Show) -> ElicitationResponse:
    """Show an elicitation and return the user's answer."""
    show(f"The agent asks: {one_line(elicitation.message)}")
    try:
        if elicitation.schema is None:
            show(f"It asks you to open this page: {visible(elicitation.url or '')}")
            return accept() if ask("Open it, then type yes [yes/no] ").strip().lower() in _YES else decline()
        show("Enter accepts the value in brackets, Ctrl-C declines.")
        return accept(_ask_fields(elicitation.schema, ask, show))
    except (KeyboardInterrupt, EOFError):
        show("declined")
        return decline()


_YES = ("y", "yes", "true", "1")


def _ask_fields(schema: v1.ElicitationSchema, ask: Ask, show: Show) -> dict[str, Any]:
    content: dict[str, Any] = {}
    required = schema.required or ()
    for name, field in schema.properties.items():
        single = v1.ElicitationSchema(properties={name: field}, required=[name] if name in required else [])
        while True:
            value = _read(field, ask(_label(name, field, is_required=name in required)))
            values = {} if value is None else {name: value}
            problems = find_problems(single, values)
            if not problems:
                content |= values
                break
            show("; ".join(map(visible, problems)))
    return content


def _label(name: str, field: v1.ElicitationPropertySchema, *, is_required: bool) -> str:
    title = one_line(getattr(field, "title", None) or name)
    described = one_line(getattr(field, "description", None) or "")
    default = getattr(field, "default", None)
    # The label shows the description, the choices and whether the field is optional, then the default in brackets.
    match field:
        case v1.StringPropertySchema():
            choices = "|".join(field.enum or [option.const for option in field.one_of or ()])
        case v1.BooleanPropertySchema():
            choices = "yes|no"
        case v1.MultiSelectPropertySchema():
            choices = "separated by commas"
        case _:
            choices = ""
    details = ", ".join(filter(None, (described, one_line(choices), "" if is_required else "optional")))
    shown = f" [{one_line(str(default))}]" if default is not None else ""
    return f"{title}{f' ({details})' if details else ''}{shown}: "


def _read(field: v1.ElicitationPropertySchema, text: str) -> Any:
    text = text.strip()
    if not text:
        return getattr(field, "default", None)
    match field:
        case v1.BooleanPropertySchema():
            return text.lower() in _YES if text.lower() in (*_YES, "n", "no", "false", "0") else text
        case v1.IntegerPropertySchema():
            return _number(int, text)
        case v1.NumberPropertySchema():
            return _number(float, text)
        case v1.MultiSelectPropertySchema():
            return [each.strip() for each in text.split(",") if each.strip()]
        case _:
            return text


def _number(kind: Callable[[str], float], text: str) -> float | str:
    try:
        return kind(text)
    except ValueError:
        return text
