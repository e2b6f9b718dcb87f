"""Commands that a version 1 agent runs itself, as version 2 terminals.

In version 1 the output of such a command is text in a tool call, which each update replaces. An agent built on the kit
marks that text as a terminal's output in the `_meta` of the item:

    {"type": "content", "content": {"type": "text", "text": "```\nok\n```"},
     "_meta": {"dragoman/v2": {"terminal": {"terminalId": "t", "command": "make", "cwd": "/w", "capabilities": …}}}}

A version 2 client receives `terminal_update` and `terminal_output_chunk`, and the item refers to the terminal. The text
inside the fence is the output. Other text, such as "[no output]", is only for version 1. The agent repeats a field of
the terminal only when it changes. A terminal ends with its `exitStatus`, or with its tool call.
"""

import base64

import msgspec

from dragoman.protocol.translate.envelope import OF_V2, Object, as_object, objects_in, without
from dragoman.text.fence import unfenced

_ENDED = frozenset({"completed", "failed"})
_REPEATED = frozenset({"sessionUpdate", "toolCallId", "content"})


class _ShownTerminal(msgspec.Struct):
    """A running terminal, as far as the client received it."""

    call_id: str
    output: str = ""


class TerminalsForV2:
    """The terminals of one session for a version 2 client."""

    def __init__(self) -> None:
        self._running: dict[str, _ShownTerminal] = {}
        self._exited: set[str] = set()
        self._contents: dict[str, list[Object]] = {}
        """The sent content of tool calls with a terminal."""

    def translate_call(self, call: Object, translated: Object) -> list[Object]:
        """Return the updates for a tool call update: first for its terminals, then `translated` for the call.

        Omit `translated` if it only repeats which terminals the call has.
        """
        call_id = str(call.get("toolCallId"))
        updates: list[Object] = []
        for item in objects_in(call.get("content")):
            if fields := terminal_of(item):
                updates += self._translate_terminal(
                    call_id, fields, unfenced(str(as_object(item.get("content")).get("text")))
                )
        if call.get("status") in _ENDED:
            self._contents.pop(call_id, None)
            return [*updates, *self._end(call_id), translated]
        content = objects_in(translated.get("content"))
        is_repeated = _REPEATED.issuperset(translated) and self._contents.get(call_id) == content
        if updates:
            self._contents[call_id] = content
        return updates if is_repeated else [*updates, translated]

    def _translate_terminal(self, call_id: str, fields: Object, output: str | None) -> list[Object]:
        terminal_id = str(fields["terminalId"])
        if terminal_id in self._exited:
            return []
        is_new = terminal_id not in self._running
        shown = self._running.setdefault(terminal_id, _ShownTerminal(call_id))
        changes = without(fields, "terminalId")
        updates: list[Object] = []
        if output is not None and output != shown.output:
            if shown.output and output.startswith(shown.output):
                more = _base64(output[len(shown.output) :])
                updates.append({"sessionUpdate": "terminal_output_chunk", "terminalId": terminal_id, "data": more})
            else:
                changes = {**changes, "output": {"data": _base64(output)}}
            shown.output = output
        if isinstance(changes.get("exitStatus"), dict):
            self._forget(terminal_id)
        return [*updates, _update(terminal_id, changes)] if changes or is_new else updates

    def _end(self, call_id: str) -> list[Object]:
        """End the terminals of an ended tool call. The exit status is unknown if the agent exited."""
        left = [name for name, shown in self._running.items() if shown.call_id == call_id]
        for name in left:
            self._forget(name)
        return [_update(name, {"exitStatus": {}, "capabilities": None}) for name in left]

    def _forget(self, terminal_id: str) -> None:
        del self._running[terminal_id]
        self._exited.add(terminal_id)


def terminal_of(item: Object) -> Object | None:
    """Return the terminal fields of a tool call item that shows a terminal's output, or None."""
    carried = as_object(as_object(item.get("_meta")).get(OF_V2)).get("terminal")
    return as_object(carried) if isinstance(as_object(carried).get("terminalId"), str) else None


def _update(terminal_id: str, changes: Object) -> Object:
    return {"sessionUpdate": "terminal_update", "terminalId": terminal_id, **changes}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode(errors="replace")).decode()
