"""The tools that a session's model can use."""
