"""One turn of an agent: its messages, tool calls, subagents and model requests."""
