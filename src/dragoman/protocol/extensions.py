"""Extensions of ACP: the `_meta` keys that announce them, and a method of our agent."""

ECHO = "dragoman/echo"
"""The `_meta` key of a client that asks the agent to repeat the client's prompts with their message ids."""

NOTICE = "dragoman/notice"
"""The `_meta` key of a notice for the key of its line. A later notice with the same key replaces it."""

CALLS = "dragoman/tool_call"
"""The `_meta` key for cancelling one tool call.

An agent announces its extension method with `{"cancel": METHOD}`. A client announces that its user can cancel a tool
call with `{"cancel": true}`.
"""

TERMINALS = "dragoman/terminal"
"""The `_meta` key for cancelling one command of the agent, which ends its terminal as in version 2."""

CONNECT_MODEL = "_dragoman/models/connect"
"""The extension method of our agent that receives the key of a model."""
