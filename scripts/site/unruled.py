"""Clauses of the specification without a rule, and the reason. Most of them are not visible on the wire."""

import msgspec

from dragoman.check.rule import SITE, Version

DISPLAY = "the client's display is not on the wire"
INSIDE = "the internal work of a side is not on the wire"
UNKNOWN = "abilities that a side does not advertise are unknown from outside"


class Clause(msgspec.Struct, frozen=True):
    """A requirement of the specification in short, and the reason why it is not judged."""

    place: str
    """The page, or `page#section`."""
    asks: str
    why: str
    version: Version = 1

    @property
    def url(self) -> str:
        """The URL of the clause."""
        return f"{SITE}/protocol/v{self.version}/{self.place}"

    @property
    def page(self) -> str:
        """The page of the specification."""
        return self.place.partition("#")[0]


UNRULED = (
    Clause("initialization#version-negotiation", "The client asks for the latest version it supports", UNKNOWN),
    Clause(
        "initialization#version-negotiation",
        "The agent falls back to the latest version it supports",
        "only that it does not echo a version that does not exist is judged (ACP-INIT-003)",
    ),
    Clause("initialization#version-negotiation", "The user is shown incompatible versions", DISPLAY),
    Clause(
        "initialization#capabilities",
        "Both sides work with any combination of capabilities",
        "the other rules cover it, with the capabilities of each run",
    ),
    Clause(
        "initialization#capabilities",
        "Capabilities that are left out count as unsupported",
        "each method has its own rule for that, such as ACP-FS-001 and ACP-LOAD-101",
    ),
    Clause("initialization#client-capabilities", "Each side states for every capability whether it has it", UNKNOWN),
    Clause(
        "authentication#terminal-authentication",
        "Terminal logins run the configured program, with the method's args and env, and then reconnect",
        "the login is another process, not part of this conversation",
    ),
    Clause(
        "authentication#terminal-authentication",
        "The arguments of a terminal login lead only to a login",
        "the checker does not run logins",
    ),
    Clause(
        "authentication#logging-out",
        "Agents that advertise logout end the login",
        "the checker does not log out the user; if a recording has a logout, ACP-INIT-006 judges its answer",
    ),
    Clause("authentication#active-sessions", "Clients are ready for sessions that fail after a logout", DISPLAY),
    Clause(
        "session-setup#working-directory",
        "The directory is the base of relative paths, and one of the roots",
        "relative paths do not appear on the wire; ACP-NEW-005 judges absolute ones",
    ),
    Clause(
        "session-setup#closing-a-session",
        "Closing a session frees its resources",
        "memory and processes of the agent are not on the wire; the end of its turn is (ACP-CLOSE-001)",
    ),
    Clause(
        "session-setup#additional-workspace-roots",
        "Additional directories of an earlier connection are not restored automatically",
        INSIDE,
    ),
    Clause(
        "session-setup#mcp-servers",
        "New agents support MCP servers over HTTP",
        "it is a choice that a capability advertises; ACP-MCP-004 judges whether it is true",
    ),
    Clause("session-list#pagination", "Cursors are not parsed or kept for later", INSIDE),
    Clause("session-list#pagination", "Pages are of a reasonable size", "the specification gives no size"),
    Clause("session-list#listing-sessions", "Additional directories are not merged with earlier ones", INSIDE),
    Clause(
        "session-config-options#initial-state",
        "Clients use config options rather than modes, in the order given",
        DISPLAY,
    ),
    Clause("session-config-options#option-categories", "Categories are only a hint, and may be missing", INSIDE),
    Clause(
        "session-config-options#option-ordering",
        "The more important options come first, and ties are resolved by order",
        "only the agent knows what is important, and the display is not on the wire",
    ),
    Clause(
        "session-config-options#default-values-and-graceful-degradation",
        "Options of an unknown type are ignored",
        DISPLAY,
    ),
    Clause(
        "session-config-options#from-the-agent",
        "An update of the options contains all of them",
        "options may come and go; an answer is judged for the one that was set (ACP-CONFIG-002)",
    ),
    Clause(
        "session-config-options#relationship-to-session-modes",
        "Modes and the option for them stay the same after changes",
        "the order of both updates is free; they are compared when a session is opened (ACP-CONFIG-006)",
    ),
    Clause(
        "prompt-turn#message-ids",
        "Pieces of one message have one id",
        "only the ids themselves show where a message ends",
    ),
    Clause("prompt-turn#cancellation", "The client marks open tool calls as cancelled at once", DISPLAY),
    Clause(
        "prompt-turn#cancellation",
        "The agent stops the model and its tools as soon as possible",
        "the end of the turn is judged (ACP-CANCEL-004), but not how soon it comes",
    ),
    Clause("prompt-turn#cancellation", "The client accepts updates of tool calls after a cancel", INSIDE),
    Clause(
        "cancellation#internal-cancellation",
        "A request that a side cancels by itself is answered with -32800 as well",
        "why a request failed is not on the wire",
    ),
    Clause(
        "tool-calls#status",
        "A tool call that awaits approval is pending",
        "a running tool may need permission for its next step, and no clause forbids to ask for it then; ACP-PERM-004"
        " judges calls that run before the answer",
    ),
    Clause(
        "tool-calls#creating",
        "Tool calls that the model asks for are reported",
        "the model's requests are not on the wire; ACP-PERM-001 and ACP-TOOL-002 judge the messages",
    ),
    Clause(
        "terminals#executing-commands",
        "A terminal is returned immediately, without waiting for its command",
        "times are not judged",
    ),
    Clause("terminals#releasing-terminals", "A release kills the command", "the command is not on the wire"),
    Clause("terminals#releasing-terminals", "The output remains visible after a release", DISPLAY),
    Clause("agent-plan#creating-plans", "Plans that the model makes, and their progress, are reported", INSIDE),
    Clause(
        "agent-plan#updating-plans",
        "Each update has the whole plan",
        "entries may be removed: a shorter plan and a partial plan look the same",
    ),
    Clause("agent-plan#updating-plans", "The client replaces the plan with the new one", DISPLAY),
    Clause("content#text-content", "Text is rendered as Markdown", DISPLAY),
    Clause(
        "elicitation#user-interaction-requirements",
        "Users see who asks and why, and can review, decline and cancel",
        DISPLAY,
    ),
    Clause("elicitation#checking-support", "Agents have an alternative if a mode is not offered", INSIDE),
    Clause(
        "elicitation#creating-an-elicitation",
        "Elicitations are bound to the connection and to a verified user",
        INSIDE,
    ),
    Clause("elicitation#form-mode", "Forms are filled with defaults, and checked by both sides", INSIDE),
    Clause("elicitation#url-mode", "Data from a URL is not sent back over ACP", "it looks like any text"),
    Clause("elicitation#responses", "Agents cope with a decline, a cancel and a failure", INSIDE),
    Clause("elicitation#url-completion", "Completions of unknown elicitations are ignored", INSIDE),
    Clause(
        "elicitation#url-security",
        "URLs are shown in full, opened only on consent, where no model can see them",
        DISPLAY,
    ),
    Clause("elicitation#url-security", "The user who started an elicitation completes it", INSIDE),
    Clause(
        "extensibility#advertising-custom-capabilities",
        "Extensions are advertised in _meta of the capabilities",
        "only the author of an extension knows which capability belongs to which method",
    ),
    Clause("extensibility#the-_meta-field", "Nothing is assumed about values in _meta", INSIDE),
    Clause(
        "transports#custom-transports",
        "Other transports keep the format and the order of messages, and are documented",
        "a conversation is judged by the same rules over every transport",
    ),
    Clause("transports", "Agents and clients support stdio", "the checker starts them this way"),
    Clause(
        "transports#json-rpc-batch-messages",
        "Batches of messages are accepted",
        "the pages of the draft have them, its schema and the SDKs no longer do",
        2,
    ),
    Clause("prompt-lifecycle#cancellation", "A client marks unfinished tool calls as cancelled", DISPLAY, 2),
    Clause(
        "prompt-lifecycle#cancellation",
        "A client answers pending permission requests when it cancels",
        "in the schema the agent withdraws them (ACP-CANCEL-005), and a client may answer them before",
        2,
    ),
    Clause("prompt-lifecycle#message-ids", "Chunks append, contents replace, null clears", DISPLAY, 2),
    Clause(
        "prompt-lifecycle#session-states",
        "Repeated snapshots are not new completions",
        "a client's count of completions is not on the wire",
        2,
    ),
    Clause("tool-calls#display-only-terminals", "Chunks of output are decoded one by one, and appended", DISPLAY, 2),
    Clause("tool-calls#diffs", "A patch is sent whenever feasible", UNKNOWN, 2),
    Clause("extensibility#metadata-patches", "_meta is patched by top-level key", DISPLAY, 2),
    Clause(
        "extensibility#enum-and-tagged-union-variants",
        "Unknown values are preserved",
        "what a side keeps shows only in another conversation",
        2,
    ),
    Clause("session-setup#additional-workspace-roots", "Roots are not restored on resume", INSIDE, 2),
)
"""All of them in the order of the pages. Clauses that only version 2 has are at the end."""
