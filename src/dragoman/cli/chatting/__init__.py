"""The terminal interface of `dragoman chat`."""
