"""Rules about servers of agents at a URL: Streamable HTTP and WebSocket.

They are based on the proposal *Streamable HTTP & WebSocket Transport* of July 2, 2026. It is active, but not yet part
of the specification. It applies to version 1 unchanged. Version 2 adds that streams can be continued.
"""

from dragoman.check.rule import Level, Rule

PROPOSAL = "rfds/streamable-http-websocket-transport"

TRANSPORT = "1-adds-an-http-transport"
FLOW = "streamable-http-message-flow"
VALIDATION = "content-negotiation-and-validation"
ROUTING = "unified-endpoint-routing"
IDENTITY = "identity-model"


def _rule(name: str, section: str, level: Level, title: str, *text: str) -> Rule:
    exercised, fix = text
    return Rule(
        id=f"ACP-{name}",
        title=title,
        v1=f"{PROPOSAL}#{section}",
        v2=f"{PROPOSAL}#{section}",
        level=level,
        exercised=exercised,
        fix=fix,
    )


RULES = (
    _rule(
        "HTTP-001",
        TRANSPORT,
        "must",
        "A POST of initialize is answered with 200 and JSON",
        "a POST of initialize without Acp-Connection-Id",
        "Answer the POST of initialize with 200, Content-Type: application/json and the JSON-RPC response.",
    ),
    _rule(
        "HTTP-002",
        IDENTITY,
        "must",
        "The answer to initialize has Acp-Connection-Id",
        "a POST of initialize that was answered with 200",
        "Create an id for each connection, and send it in the header Acp-Connection-Id with the answer to initialize.",
    ),
    _rule(
        "HTTP-003",
        TRANSPORT,
        "disputed",
        "The result of initialize has the connection id as connectionId",
        "a POST of initialize that was answered with a result",
        "Add connectionId to the result of initialize, with the same value as the header Acp-Connection-Id.",
    ),
    _rule(
        "HTTP-004",
        ROUTING,
        "must",
        "Every other message is acknowledged with 202",
        "a POST of a request, a notification or a response, on a connection",
        "Answer the POST immediately with 202, and send the JSON-RPC response on the matching event stream.",
    ),
    _rule(
        "HTTP-005",
        TRANSPORT,
        "should",
        "A message is acknowledged with an empty body",
        "a POST that was answered with 202",
        "Leave the body of the 202 empty: clients read JSON-RPC responses from the event streams.",
    ),
    _rule(
        "HTTP-006",
        VALIDATION,
        "must",
        "A body that is not application/json is refused with 415",
        "a POST with Content-Type: text/plain",
        "Check Content-Type before the body, and answer 415 for everything except application/json.",
    ),
    _rule(
        "HTTP-007",
        VALIDATION,
        "must",
        "A batch is refused with 501",
        "a POST of a JSON array",
        "Answer 501 when the body is a JSON array.",
    ),
    _rule(
        "HTTP-008",
        ROUTING,
        "must",
        "A message without Acp-Connection-Id is refused with 400",
        "a POST of another message than initialize, without Acp-Connection-Id",
        "Answer 400 to every POST without Acp-Connection-Id, except initialize.",
    ),
    _rule(
        "HTTP-009",
        ROUTING,
        "must",
        "A message to an unknown connection is refused with 404",
        "a POST with an Acp-Connection-Id that the server never issued",
        "Answer 404 when Acp-Connection-Id names no open connection.",
    ),
    _rule(
        "HTTP-010",
        ROUTING,
        "must",
        "A message of a session without Acp-Session-Id is refused with 400",
        "a POST of session/cancel without Acp-Session-Id",
        "Require Acp-Session-Id with every message of a session, and answer 400 without it.",
    ),
    _rule(
        "HTTP-011",
        VALIDATION,
        "must",
        "A GET that accepts no event stream is refused with 406",
        "a GET with Accept: application/json",
        "Answer 406 to a GET without text/event-stream in Accept, unless it upgrades to a WebSocket.",
    ),
    _rule(
        "HTTP-012",
        ROUTING,
        "must",
        "An event stream without Acp-Connection-Id is refused with 400",
        "a GET of an event stream without Acp-Connection-Id",
        "Answer 400 to a GET that has no Acp-Connection-Id and does not upgrade to a WebSocket.",
    ),
    _rule(
        "HTTP-013",
        ROUTING,
        "must",
        "An event stream of an unknown connection is refused with 404",
        "a GET with an Acp-Connection-Id that the server never issued",
        "Answer 404 when Acp-Connection-Id names no open connection.",
    ),
    _rule(
        "HTTP-014",
        ROUTING,
        "must",
        "An event stream of an unknown session is refused with 404",
        "a GET with an unknown Acp-Session-Id, of an agent that can neither load nor "
        "resume sessions: for other agents, the "
        "proposal opens the stream before the session",
        "Answer 404 when Acp-Session-Id names no session of the connection.",
    ),
    _rule(
        "HTTP-015",
        ROUTING,
        "must",
        "A GET opens an event stream, for the connection and for each session",
        "a GET with Accept: text/event-stream and Acp-Connection-Id, and one that also has Acp-Session-Id",
        "Answer the GET immediately with 200 and Content-Type: text/event-stream, even if there is nothing to send.",
    ),
    _rule(
        "HTTP-016",
        TRANSPORT,
        "must",
        "Responses to session/new and session/load are on the stream of the connection",
        "a response to session/new or session/load",
        "Send them on the stream of the connection: the client may have no stream of the session yet.",
    ),
    _rule(
        "HTTP-017",
        TRANSPORT,
        "must",
        "Messages of a session are on the stream of that session, and on no other",
        "a prompt, with the streams of the connection and of two sessions open",
        "Send updates, requests and responses of a session on the stream that was opened with its Acp-Session-Id.",
    ),
    _rule(
        "HTTP-018",
        FLOW,
        "must",
        "Each event is one JSON-RPC message",
        "an event with data on any stream",
        "Send each complete message as the data of one event, and keep streams alive with "
        "comments (lines that begin with a colon).",
    ),
    _rule(
        "HTTP-019",
        ROUTING,
        "must",
        "DELETE of a connection is answered with 202",
        "a DELETE with Acp-Connection-Id",
        "Answer 202 to the DELETE, and end the connection.",
    ),
    _rule(
        "HTTP-020",
        ROUTING,
        "must",
        "DELETE without Acp-Connection-Id is refused with 400",
        "a DELETE without Acp-Connection-Id",
        "Answer 400 to a DELETE that names no connection.",
    ),
    _rule(
        "HTTP-021",
        FLOW,
        "must",
        "The streams of a connection end with it",
        "a DELETE of a connection whose stream is open",
        "End all event streams of a connection when it is deleted.",
    ),
    _rule(
        "HTTP-022",
        ROUTING,
        "must",
        "A connection is unknown after its DELETE",
        "a POST to a connection that was deleted",
        "Forget a deleted connection, so that later requests to it get 404.",
    ),
    _rule(
        "HTTP-023",
        IDENTITY,
        "must",
        "Connections are independent of each other",
        "two connections that use the same JSON-RPC id at the same time, one of which is then deleted",
        "Keep the requests, streams and end of each connection apart: two clients may use the same JSON-RPC ids.",
    ),
    _rule(
        "HTTP-024",
        "v1",
        "should",
        "A session outlives a broken connection",
        "a prompted session whose connection was dropped, of an agent that can load or resume sessions",
        "Keep sessions apart from connections, so that session/load on another connection finds them.",
    ),
    _rule(
        "HTTP-025",
        VALIDATION,
        "disputed",
        "HTTP/2 is supported",
        "any answer over HTTP",
        "Serve HTTP/2, by ALPN with TLS and by prior knowledge without TLS, or use a proxy that does.",
    ),
    Rule(
        id="ACP-HTTP-026",
        title="A stream resumes after Last-Event-ID, without loss or repetition",
        v2=f"{PROPOSAL}#v2",
        level="disputed",
        exercised="a stream whose events have ids, opened again with the id of the second-last event",
        fix="Keep the last events of a stream, and resume after the event that Last-Event-ID names.",
    ),
    _rule(
        "WS-001",
        "connection-establishment-get-with-upgrade",
        "must",
        "The upgrade to a WebSocket is answered with Acp-Connection-Id",
        "a GET with Upgrade: websocket that was answered with 101",
        "Create a connection on upgrade, and send its id in the header Acp-Connection-Id of the 101.",
    ),
    _rule(
        "WS-002",
        "bidirectional-messaging",
        "must",
        "Each message is one text frame",
        "any message from the server over a WebSocket",
        "Send each JSON-RPC message as one WebSocket text message, never as a binary one.",
    ),
    _rule(
        "WS-003",
        "bidirectional-messaging",
        "must",
        "Binary frames are ignored",
        "a request in a binary frame, followed by another in a text frame",
        "Drop binary frames without an answer, and leave the WebSocket open.",
    ),
    _rule(
        "WS-004",
        "connection-establishment-get-with-upgrade",
        "must",
        "Each WebSocket is its own connection",
        "two WebSockets that use the same JSON-RPC id at the same time",
        "Create a connection with its own id for each upgrade, and answer a request on its own WebSocket.",
    ),
)
