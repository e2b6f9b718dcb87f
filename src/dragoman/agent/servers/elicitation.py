"""A server's question to the person, passed on to the client; where the client cannot ask it, it is declined."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError
from dragoman.mcp.client import DECLINED
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_CREATE
from dragoman.protocol.unions import decode_hook

if TYPE_CHECKING:
    from dragoman.agent.update_sender import UpdateSender


async def elicit(
    updates: "UpdateSender", client: v1.ClientCapabilities, session_id: str, server: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Ask the person; the answer is an MCP ElicitResult."""
    request = _request(client, session_id, server, params)
    if request is None:
        return DECLINED
    try:
        answer = await updates.call(ELICITATION_CREATE, request)
    except (ConnectionClosed, RemoteError, InvalidResult):
        return DECLINED
    match answer:
        case v1.ElicitationAcceptAction(content=content):
            return {"action": "accept", "content": content or {}}
        case v1.ElicitationDeclineAction():
            return DECLINED
        case _:
            return {"action": "cancel"}


def _request(
    client: v1.ClientCapabilities, session_id: str, server: str, params: dict[str, Any]
) -> v1.CreateElicitationRequest | None:
    can = client.elicitation
    message = f"{server}: {params.get('message', '')}"
    if params.get("mode") == "url":
        if can is None or can.url is None or not params["url"].lower().startswith(("https://", "http://")):
            return None
        return v1.UrlElicitationForSession(
            session_id=session_id, message=message, url=params["url"], elicitation_id=params["elicitationId"]
        )
    if can is None or can.form is None:
        return None
    try:
        schema = msgspec.convert(params["requestedSchema"], v1.ElicitationSchema, dec_hook=decode_hook)
    except (msgspec.ValidationError, KeyError):
        return None
    return v1.FormElicitationForSession(session_id=session_id, message=message, requested_schema=schema)
