"""The workspace of a session's tools: its directories, and the access to its files and commands."""
