"""Commands that a version 1 agent runs itself, as terminals of version 2.

In version 1 the output of such a command is text of a tool call, which each update replaces. An agent of the kit marks
that text, in `_meta` of the item, as the output of a terminal:

    {"type": "content", "content": {"type": "text", "text": "```\nok\n```"},
     "_meta": {"dragoman/v2": {"terminal": {"terminalId": "t", "command": "make", "cwd": "/w", "capabilities": …}}}}

A version 2 client is told the terminal by `terminal_update` and `terminal_output_chunk`, and the item refers to it. The
text in the fence is the output; other text, such as "[no output]", is for version 1 alone. An agent names a field of
the terminal again only when it changes. A terminal ends with its `exitStatus`, or with its tool call.
"""

import base64

import msgspec

from dragoman.protocol.translate.envelope import OF_V2, Object, as_object, objects_in, without
from dragoman.text.fence import unfenced

_ENDED = frozenset({"completed", "failed"})
_REPEATED = frozenset({"sessionUpdate", "toolCallId", "content"})


class _ShownTerminal(msgspec.Struct):
    """A terminal whose command runs, as far as the client was told it."""

    call_id: str
    output: str = ""


class TerminalsForV2:
    """The terminals of one session, told to a version 2 client."""

    def __init__(self) -> None:
        self._running: dict[str, _ShownTerminal] = {}
        self._exited: set[str] = set()
        self._contents: dict[str, list[Object]] = {}
        """The content that was told of tool calls with a terminal."""

    def take_call(self, given: Object, made: Object) -> list[Object]:
        """Return the updates for one of a tool call: those of its terminals, and `made`, that of the call itself.

        An update that only repeats which terminals a call has is left out.
        """
        call_id = str(given.get("toolCallId"))
        told: list[Object] = []
        for item in objects_in(given.get("content")):
            if fields := terminal_of(item):
                told += self._take(call_id, fields, unfenced(str(as_object(item.get("content")).get("text"))))
        if given.get("status") in _ENDED:
            self._contents.pop(call_id, None)
            return [*told, *self._end(call_id), made]
        content = objects_in(made.get("content"))
        is_repeated = _REPEATED.issuperset(made) and self._contents.get(call_id) == content
        if told:
            self._contents[call_id] = content
        return told if is_repeated else [*told, made]

    def _take(self, call_id: str, fields: Object, output: str | None) -> list[Object]:
        terminal_id = str(fields["terminalId"])
        if terminal_id in self._exited:
            return []
        is_new = terminal_id not in self._running
        shown = self._running.setdefault(terminal_id, _ShownTerminal(call_id))
        changes = without(fields, "terminalId")
        told: list[Object] = []
        if output is not None and output != shown.output:
            if shown.output and output.startswith(shown.output):
                more = _base64(output[len(shown.output) :])
                told.append({"sessionUpdate": "terminal_output_chunk", "terminalId": terminal_id, "data": more})
            else:
                changes = {**changes, "output": {"data": _base64(output)}}
            shown.output = output
        if isinstance(changes.get("exitStatus"), dict):
            self._forget(terminal_id)
        return [*told, _update(terminal_id, changes)] if changes or is_new else told

    def _end(self, call_id: str) -> list[Object]:
        """End the terminals of a tool call that has ended: nobody can tell how, where the agent died."""
        left = [name for name, shown in self._running.items() if shown.call_id == call_id]
        for name in left:
            self._forget(name)
        return [_update(name, {"exitStatus": {}, "capabilities": None}) for name in left]

    def _forget(self, terminal_id: str) -> None:
        del self._running[terminal_id]
        self._exited.add(terminal_id)


def terminal_of(item: Object) -> Object | None:
    """Return the fields of the terminal whose output an item of a tool call shows, if it is one's."""
    carried = as_object(as_object(item.get("_meta")).get(OF_V2)).get("terminal")
    return as_object(carried) if isinstance(as_object(carried).get("terminalId"), str) else None


def _update(terminal_id: str, changes: Object) -> Object:
    return {"sessionUpdate": "terminal_update", "terminalId": terminal_id, **changes}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode(errors="replace")).decode()
