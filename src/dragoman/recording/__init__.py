"""Recordings of a conversation: writing them, reading them, and redacting their secrets."""
