"""The turns of an adversary, and the parts that consist of them.

A turn does nothing that the protocol forbids, but many things that clients do not expect.
"""

import asyncio
import uuid
from base64 import b64encode
from pathlib import Path

from dragoman.check.adversary.player import ErrorAnswerError, Part, Player
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, part, text
from dragoman.check.rule import Version
from dragoman.errors import ErrorCode

LONG_BYTES = 200_000
"""Three times the limit of simple line readers."""

SETTLE_S = 2.0
"""Time for a client to answer a request that no longer needs a decision."""

LINGER_S = 0.3
"""Time for a client to act while a turn is running."""

OUTPUT_LIMIT = 100

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def _announce(player: Player, session_id: str, title: str) -> str:
    call_id = f"call-{uuid.uuid4()}"
    kind = "tool_call_update" if player.is_v2 else "tool_call"
    player.update(session_id, kind, toolCallId=call_id, title=title, kind="other", status="pending")
    return call_id


def _permission(player: Player, session_id: str, call_id: str) -> Object:
    if player.is_v2:
        subject = {"type": "tool_call", "toolCall": {"toolCallId": call_id}}
        return {"sessionId": session_id, "title": "Run this?", "subject": subject, "options": OPTIONS}
    return {"sessionId": session_id, "toolCall": {"toolCallId": call_id}, "options": OPTIONS}


async def surprise(player: Player, session_id: str) -> str:
    """Send unknown updates, notifications and requests, and request a permission."""
    player.say(session_id, "Let us see. ")
    player.update(session_id, f"_{INVENTED}update", anything={"goes": None})
    player.notify(f"_{INVENTED}notification", {"sessionId": session_id})
    player.notify(f"$/{INVENTED}notification", {})
    await player.ask(f"_{INVENTED}method", {"sessionId": session_id}, f"a string, as an id may be, {uuid.uuid4()}")
    await player.ask(f"{INVENTED}method", {})
    call_id = _announce(player, session_id, "Ask for permission")
    answer = await player.ask(
        "session/request_permission", _permission(player, session_id, call_id), f"ask-{uuid.uuid4()}"
    )
    outcome = part(part(answer or {}, "result"), "outcome")
    status = "completed" if text(outcome, "optionId") == "yes" else "failed"
    player.update(session_id, "tool_call_update", toolCallId=call_id, status=status)
    if text(outcome, "outcome") == "cancelled":
        return "cancelled"
    player.say(session_id, "That was all.")
    return "end_turn"


async def withdraw_request(player: Player, session_id: str) -> str:
    """Request a permission and withdraw the request."""
    call_id = _announce(player, session_id, "Ask, and think better of it")
    request_id = f"taken back {uuid.uuid4()}"
    call = player.begin("session/request_permission", _permission(player, session_id, call_id), request_id)
    player.notify("$/cancel_request", {"requestId": request_id})
    await player.wait(call, SETTLE_S)
    player.update(session_id, "tool_call_update", toolCallId=call_id, status="failed")
    return "end_turn"


async def use_offers(player: Player, session_id: str) -> str:
    """Use every capability of the client, and one that it does not have."""
    if player.is_v2:
        await _show_command(player, session_id)
    else:
        await _use_files(player, session_id)
        await _use_terminals(player, session_id)
    await _elicit(player, session_id)
    player.say(session_id, "Thank you.")
    return "end_turn"


async def _show_command(player: Player, session_id: str) -> None:
    """Show a command in a terminal of a tool call. Both can be cancelled while they run."""
    call_id, terminal_id = _announce(player, session_id, "Run a command"), f"terminal-{uuid.uuid4()}"
    call, terminal = {"toolCallId": call_id}, {"terminalId": terminal_id}
    offer: Object = {"capabilities": {"cancel": {}}}
    with player.cancellable(call_id) as call_cancelled, player.cancellable(terminal_id) as terminal_cancelled:
        player.update(session_id, "terminal_update", **terminal, command="make", cwd=player.cwd or "/", **offer)
        shown = [{"type": "terminal", **terminal}]
        player.update(session_id, "tool_call_update", **call, status="in_progress", content=shown, **offer)
        player.update(session_id, "terminal_output_chunk", **terminal, data=b64encode(b"built\n").decode())
        # A client that cancels automatically does so before it answers. A user needs a moment.
        await player.ask(f"_{INVENTED}method", {"sessionId": session_id})
        await asyncio.sleep(LINGER_S)
        exit_status = {"signal": "SIGTERM"} if terminal_cancelled.is_set() else {"exitCode": 0}
        player.update(session_id, "terminal_update", **terminal, exitStatus=exit_status, capabilities=None)
        status = "cancelled" if call_cancelled.is_set() else "completed"
        player.update(session_id, "tool_call_update", **call, status=status, capabilities=None)


async def _use_files(player: Player, session_id: str) -> None:
    path = Path(player.cwd) / f"dragoman-check-{uuid.uuid4()}.txt"
    place: Object = {"sessionId": session_id, "path": str(path)}
    written = await player.ask("fs/write_text_file", {**place, "content": "one\ntwo\nthree\n"})
    if written is not None and "result" in written:
        await player.ask("fs/read_text_file", place)
        await player.ask("fs/read_text_file", {**place, "line": 2, "limit": 1})
    elif player.offers("fs.readTextFile"):
        await player.ask("fs/read_text_file", place)
    path.unlink(missing_ok=True)


async def _use_terminals(player: Player, session_id: str) -> None:
    command: Object = {"command": "echo", "args": ["ä" * OUTPUT_LIMIT], "outputByteLimit": OUTPUT_LIMIT}
    created = await player.ask("terminal/create", {"sessionId": session_id, **command})
    terminal_id = text(part(created or {}, "result"), "terminalId")
    if terminal_id is None:
        return
    other = await player.ask("terminal/create", {"sessionId": session_id, "command": "true"})
    other_id = text(part(other or {}, "result"), "terminalId")
    if other_id is not None and other_id != terminal_id:
        await player.ask("terminal/release", {"sessionId": session_id, "terminalId": other_id})
    place: Object = {"sessionId": session_id, "terminalId": terminal_id}
    for method in ("wait_for_exit", "output", "kill", "output", "release", "output"):
        await player.ask(f"terminal/{method}", place)
    await _wait_for_long_command(player, session_id)


async def _wait_for_long_command(player: Player, session_id: str) -> None:
    """Wait for a command that runs until it is killed, and check that the answer arrives only then."""
    created = await player.ask("terminal/create", {"sessionId": session_id, "command": "sleep", "args": ["60"]})
    terminal_id = text(part(created or {}, "result"), "terminalId")
    if terminal_id is None:
        return
    place: Object = {"sessionId": session_id, "terminalId": terminal_id}
    waiting = player.begin("terminal/wait_for_exit", place)
    await player.ask("terminal/output", place)
    if waiting.done():  # too early, so the next output shows that the command still runs
        await player.ask("terminal/output", place)
    await player.ask("terminal/kill", place)
    await player.wait(waiting)
    await player.ask("terminal/release", place)


async def _elicit(player: Player, session_id: str) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form: Object = {"sessionId": session_id, "mode": "form", "message": "Who are you?", "requestedSchema": schema}
    page: Object = {"sessionId": session_id, "mode": "url", "message": "Please have a look."}
    page |= {"elicitationId": f"page-{uuid.uuid4()}", "url": "https://agentclientprotocol.com"}
    if player.offers("elicitation.form"):
        await player.ask("elicitation/create", form)
    if player.offers("elicitation"):
        await player.ask("elicitation/create", page)


async def strange_lines(player: Player, session_id: str) -> str:
    """Send lines that are not messages, and a very long message."""
    player.send(b"DEBUG: this is not JSON")
    player.send(b'{"jsonrpc":"2.0","id":987654,"result":{}}')
    await player.ask(f"_{INVENTED}method", {})
    player.say(session_id, "x" * LONG_BYTES)
    await player.ask(f"_{INVENTED}method", {})
    await player.ask(f"_{INVENTED}method", {"padding": "x" * LONG_BYTES})  # a reader may skip the update
    if not player.is_v2:  # in version 2 a client may ask the user without a subject
        await player.ask("session/request_permission", {"sessionId": session_id, "options": OPTIONS})
    return "end_turn"


async def linger(player: Player, session_id: str) -> str:
    """Send some text, and end after a moment."""
    player.say(session_id, "Let me see. ")
    await asyncio.sleep(LINGER_S)
    player.say(session_id, "There is nothing to do.")
    return "end_turn"


async def wait_for_cancel(player: Player, session_id: str) -> str:
    """Request a permission, and wait until the turn is cancelled."""
    call_id = _announce(player, session_id, "Wait to be cancelled")
    asking = player.begin("session/request_permission", _permission(player, session_id, call_id), "cancel me")
    await asyncio.wait({asking, asyncio.ensure_future(player.cancelled.wait())}, return_when="FIRST_COMPLETED")
    if not player.cancelled.is_set():
        player.say(session_id, "Working on it. ")
        await player.cancelled.wait()
    if player.is_v2:
        player.notify("$/cancel_request", {"requestId": "cancel me"})
    await player.wait(asking, SETTLE_S)
    player.update(session_id, "tool_call_update", toolCallId=call_id, status="failed")
    return "cancelled"


async def fail(player: Player, session_id: str) -> str:
    """Answer with an error."""
    player.say(session_id, "This will not end well. ")
    raise ErrorAnswerError(ErrorCode.INTERNAL_ERROR, "the adversary fails, as its part says")


async def die(player: Player, session_id: str) -> str:
    """Exit in the middle of a line."""
    player.say(session_id, "These are my last wor")
    player.channel.send(b'{"jsonrpc":"2.0","method":"session/upd')
    player.channel.record("agent", event="exited 3")
    await player.channel.die()
    return "end_turn"


PARTS = {
    each.name: each
    for each in (
        Part("surprises", [surprise], greets_after_s=LINGER_S),
        Part("offers", [use_offers]),
        Part("strange-lines", [strange_lines]),
        Part("takes-back", [withdraw_request]),
        Part("is-cancelled", [wait_for_cancel, surprise]),
        Part("offers-all", [linger], is_generous=True),
        Part("fails", [fail]),
        Part("dies", [die]),
        Part("unknown-version", [surprise], version=65_535),
        Part("v2-surprises", [surprise], version=2, greets_after_s=LINGER_S),
        Part("v2-offers", [use_offers], version=2),
        Part("v2-strange-lines", [strange_lines], version=2),
        Part("v2-takes-back", [withdraw_request], version=2),
        Part("v2-is-cancelled", [wait_for_cancel, surprise], version=2),
        Part("v2-offers-all", [linger], version=2, is_generous=True),
        Part("v2-fails", [fail], version=2),
        Part("v2-dies", [die], version=2),
    )
}
"""The parts for a client that we start, one after the other. Parts of version 2 are for a client that requests it."""

TOUR_TURNS = {
    surprise: "say anything, and deny or allow the request",
    use_offers: "say anything: your client's files, terminals and forms are used",
    strange_lines: "say anything: invalid lines are sent",
    withdraw_request: "say anything: a question comes and is taken back",
    wait_for_cancel: "say anything, and cancel while you are asked",
    fail: "say anything: the answer is an error",
    die: "say anything: the agent dies",
}
"""The turns of one conversation with a client that the user operates, with the instruction for each."""

TOURS: dict[Version, Part] = {
    1: Part("tour", list(TOUR_TURNS), is_generous=True),
    2: Part("v2-tour", list(TOUR_TURNS), version=2, is_generous=True),
}
"""The parts with all turns, by version. The version 2 part answers version 1 to a client that requests it."""
