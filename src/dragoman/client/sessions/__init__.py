"""Sessions and turns: the client's view of a conversation."""
